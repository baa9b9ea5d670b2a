/* tests/truth/conformance_read.c - a JSON object of an oracle file as a test case.
 *
 * What is not JSON of the documented form is malformed; what is well-formed but beyond us (another dtype, an attribute the
 * operator does not take) is a case that fails, with the reason in `unsupported`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/conformance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct test_case *c;
    const char *why; /* malformed: the first reason */
};

static bool malformed(struct reading *r, const char *why)
{
    r->why = r->why == NULL ? why : r->why;
    return false;
}

static void unsupported(struct reading *r, const char *what, const char *value)
{
    if (r->c->unsupported[0] == '\0') {
        snprintf(r->c->unsupported, sizeof r->c->unsupported, "%s: %s", what, value);
    }
}

/* --- small values ------------------------------------------------------------------------------------------------- */

static bool read_shape(json_t *list, mesh_shape *ret_shape)
{
    mesh_shape s = { .ndim = (int)json_array_size(list) };
    if (!json_is_array(list) || json_array_size(list) > MESH_MAX_NDIM) {
        return false;
    }
    for (int d = 0; d < s.ndim; d++) {
        json_t *extent = json_array_get(list, (size_t)d);
        if (!json_is_integer(extent)) {
            return false;
        }
        s.dim[d] = json_integer_value(extent);
    }
    *ret_shape = s;
    return true;
}

static bool has_no_negative(mesh_shape s)
{
    for (int d = 0; d < s.ndim; d++) {
        if (s.dim[d] < 0) {
            return false;
        }
    }
    return true;
}

bool placement_read(const char *text, mesh_placement *ret_placement)
{
    static const struct {
        const char *text;
        mesh_reduce_op op;
    } partials[] = { { "P(sum)", MESH_SUM },
                     { "P(avg)", MESH_AVG },
                     { "P(max)", MESH_MAX },
                     { "P(min)", MESH_MIN },
                     { "P(prod)", MESH_PROD } };
    int dim = 0, length = 0;
    if (strcmp(text, "R") == 0) {
        *ret_placement = mesh_replicate();
        return true;
    }
    if (sscanf(text, "S(%d)%n", &dim, &length) == 1 && length > 0 && text[length] == '\0') {
        *ret_placement = mesh_shard(dim);
        return true;
    }
    for (size_t i = 0; i < sizeof partials / sizeof partials[0]; i++) {
        if (strcmp(text, partials[i].text) == 0) {
            *ret_placement = mesh_partial(partials[i].op);
            return true;
        }
    }
    return false;
}

static bool read_placements(struct reading *r, json_t *list, mesh_placements *ret_placements)
{
    mesh_placements p = { .n = (int)json_array_size(list) };
    if (!json_is_array(list) || p.n != r->c->mesh.ndim) {
        return malformed(r, "placements is not a list with one entry per mesh dim");
    }
    for (int m = 0; m < p.n; m++) {
        const char *text = json_string_value(json_array_get(list, (size_t)m));
        if (text == NULL) {
            return malformed(r, "a placement is not a string");
        }
        if (!placement_read(text, &p.at[m])) {
            p.at[m] = mesh_replicate();
            unsupported(r, "unknown placement", text);
        }
    }
    *ret_placements = p;
    return true;
}

static mesh_dtype dtype_read(const char *name)
{
    static const struct {
        const char *name;
        mesh_dtype dtype;
    } dtypes[] = { { "f32", MESH_F32 }, { "f64", MESH_F64 }, { "i8", MESH_I8 },    { "u8", MESH_U8 },
                   { "i32", MESH_I32 }, { "i64", MESH_I64 }, { "bool", MESH_BOOL } };
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(name, dtypes[i].name) == 0) {
            return dtypes[i].dtype;
        }
    }
    return (mesh_dtype)0;
}

/* --- tensors ------------------------------------------------------------------------------------------------------- */

static bool read_number(json_t *item, double *ret_number)
{
    const char *word = json_string_value(item);
    if (word != NULL) {
        *ret_number = strcmp(word, "nan") == 0 ? NAN : strcmp(word, "inf") == 0 ? INFINITY : -INFINITY;
        return strcmp(word, "nan") == 0 || strcmp(word, "inf") == 0 || strcmp(word, "-inf") == 0;
    }
    *ret_number = json_is_boolean(item) ? json_boolean_value(item) : json_number_value(item);
    return json_is_boolean(item) || json_is_number(item);
}

/* data, of v's shape and dtype */
static bool read_data(struct reading *r, json_t *list, struct value *v)
{
    v->n = numel(v->shape);
    if (!json_is_array(list) || (int64_t)json_array_size(list) != v->n) {
        return malformed(r, "data is not a list of as many numbers as the shape has elements");
    }
    v->data = calloc((size_t)v->n + 1, sizeof(int64_t));
    if (v->data == NULL) {
        return malformed(r, "out of memory");
    }
    for (int64_t i = 0; i < v->n; i++) {
        json_t *item = json_array_get(list, (size_t)i);
        double number;
        if (!read_number(item, &number) || (!is_float(v->dtype) && !isfinite(number))) {
            return malformed(r, "data holds something that is not a number of its dtype");
        }
        if (v->dtype == MESH_I64 && json_is_integer(item)) {
            ((int64_t *)v->data)[i] = json_integer_value(item); /* beyond what double holds, too */
        } else {
            number_put(v->dtype, v->data, i, number);
        }
    }
    return true;
}

/* shape, dtype, data; placements where they are given */
static bool read_value(struct reading *r, json_t *object, struct value *ret_value)
{
    const char *dtype = json_string_value(json_object_get(object, "dtype"));
    json_t *list = json_object_get(object, "placements");
    if (!json_is_object(object) || dtype == NULL) {
        return malformed(r, "a tensor is not an object with a dtype");
    }
    if (!read_shape(json_object_get(object, "shape"), &ret_value->shape) || !has_no_negative(ret_value->shape)) {
        return malformed(r, "a tensor's shape is not a list of at most 8 extents");
    }
    ret_value->dtype = dtype_read(dtype);
    if (ret_value->dtype == 0) {
        unsupported(r, "unknown dtype", dtype);
        return true;
    }
    return read_data(r, json_object_get(object, "data"), ret_value) &&
           (list == NULL || read_placements(r, list, &ret_value->placements));
}

static bool read_inputs(struct reading *r, json_t *list)
{
    struct test_case *c = r->c;
    if (!json_is_array(list) || json_array_size(list) > CASE_MAX_INPUTS) {
        return malformed(r, "\"in\" is not a list of at most 8 tensors");
    }
    c->n_in = (int)json_array_size(list);
    if (c->n_in < c->row->min_inputs || c->n_in > c->row->max_inputs) {
        unsupported(r, "number of inputs", "not what the operator takes");
    }
    for (int i = 0; i < c->n_in; i++) {
        json_t *item = json_array_get(list, (size_t)i);
        c->is_absent[i] = json_is_null(item);
        if (c->is_absent[i]) {
            continue;
        }
        if (!read_value(r, item, &c->in[i])) {
            return false;
        }
        if (json_object_get(item, "placements") == NULL) {
            return malformed(r, "an input has no placements");
        }
    }
    return true;
}

static bool read_outputs(struct reading *r, json_t *list)
{
    if (!json_is_array(list) || json_array_size(list) > CASE_MAX_OUTPUTS) {
        return malformed(r, "\"out\" is not a list of at most 4 tensors");
    }
    r->c->n_out = (int)json_array_size(list);
    for (int i = 0; i < r->c->n_out; i++) {
        if (!read_value(r, json_array_get(list, (size_t)i), &r->c->out[i])) {
            return false;
        }
    }
    return true;
}

static bool read_gradients(struct reading *r, json_t *list)
{
    if (list == NULL) {
        return true;
    }
    if (!json_is_array(list) || (int)json_array_size(list) != r->c->n_in) {
        return malformed(r, "\"grad\" is not a list with one entry per input");
    }
    for (int i = 0; i < r->c->n_in; i++) {
        json_t *item = json_array_get(list, (size_t)i);
        r->c->has_gradient[i] = !json_is_null(item);
        if (r->c->has_gradient[i] && !read_value(r, item, &r->c->gradient[i])) {
            return false;
        }
    }
    return true;
}

static bool read_local(struct reading *r, json_t *object, struct local_part *ret_local)
{
    ret_local->value.dtype = r->c->in[0].dtype;
    if (!read_shape(json_object_get(object, "shape"), &ret_local->value.shape) ||
        !has_no_negative(ret_local->value.shape) ||
        !read_shape(json_object_get(object, "offset"), &ret_local->offset)) {
        return malformed(r, "an entry of \"locals\" has no shape or no offset");
    }
    return read_data(r, json_object_get(object, "data"), &ret_local->value);
}

/* An entry per rank, in any order. */
static bool read_locals(struct reading *r, json_t *list)
{
    if ((int)json_array_size(list) != r->c->n_ranks || r->c->n_in != 1) {
        return malformed(r, "\"locals\" has not one entry per rank, or there is not one input");
    }
    r->c->locals = calloc((size_t)r->c->n_ranks, sizeof *r->c->locals);
    for (size_t i = 0; r->c->locals != NULL && i < json_array_size(list); i++) {
        json_t *rank = json_object_get(json_array_get(list, i), "rank");
        int64_t at = json_integer_value(rank);
        if (!json_is_integer(rank) || at < 0 || at >= r->c->n_ranks || r->c->locals[at].value.data != NULL) {
            return malformed(r, "an entry of \"locals\" has no rank of its own");
        }
        if (!read_local(r, json_array_get(list, i), &r->c->locals[at])) {
            return false;
        }
    }
    return r->c->locals != NULL;
}

/* --- attributes ---------------------------------------------------------------------------------------------------- */

enum attr_kind { A_BOOL, A_INT, A_INT64, A_NUMBER, A_SHAPE, A_APPROXIMATE, A_REDUCTION, A_PLACEMENTS };

static const struct attr_field {
    const char *name;
    enum attr_kind kind;
    size_t at; /* in struct case_attr */
} attr_fields[] = {
    { "dims", A_SHAPE, offsetof(struct case_attr, dims) },
    { "correction", A_NUMBER, offsetof(struct case_attr, correction) },
    { "p", A_NUMBER, offsetof(struct case_attr, p) },
    { "eps", A_NUMBER, offsetof(struct case_attr, eps) },
    { "k", A_INT64, offsetof(struct case_attr, k) },
    { "normalized_dims", A_INT, offsetof(struct case_attr, normalized_dims) },
    { "descending", A_BOOL, offsetof(struct case_attr, descending) },
    { "keepdim", A_BOOL, offsetof(struct case_attr, keepdim) },
    { "dim", A_INT, offsetof(struct case_attr, dim) },
    { "dim0", A_INT, offsetof(struct case_attr, dim0) },
    { "dim1", A_INT, offsetof(struct case_attr, dim1) },
    { "shape", A_SHAPE, offsetof(struct case_attr, shape) },
    { "value", A_NUMBER, offsetof(struct case_attr, value) },
    { "approximate", A_APPROXIMATE, offsetof(struct case_attr, approximate_tanh) },
    { "reduction", A_REDUCTION, offsetof(struct case_attr, reduction) },
    { "ignore_index", A_INT64, offsetof(struct case_attr, ignore_index) },
    { "label_smoothing", A_NUMBER, offsetof(struct case_attr, label_smoothing) },
    { "to", A_PLACEMENTS, offsetof(struct case_attr, to) },
    { "shift", A_INT64, offsetof(struct case_attr, shift) },
    { "start", A_INT64, offsetof(struct case_attr, start) },
    { "length", A_INT64, offsetof(struct case_attr, length) },
    { "index", A_INT64, offsetof(struct case_attr, index) },
    { "split_size", A_INT64, offsetof(struct case_attr, split_size) },
    { "num_classes", A_INT64, offsetof(struct case_attr, num_classes) },
    { "pad", A_SHAPE, offsetof(struct case_attr, pad) },
    { "repeats", A_SHAPE, offsetof(struct case_attr, repeats) },
    { "is_causal", A_BOOL, offsetof(struct case_attr, is_causal) },
    { "min", A_NUMBER, offsetof(struct case_attr, min) },
    { "max", A_NUMBER, offsetof(struct case_attr, max) },
    { "negative_slope", A_NUMBER, offsetof(struct case_attr, negative_slope) },
    { "weight", A_NUMBER, offsetof(struct case_attr, weight) },
    { "exponent", A_NUMBER, offsetof(struct case_attr, exponent) },
    { "diagonal", A_INT64, offsetof(struct case_attr, diagonal) },
};

static bool read_reduction(const char *word, mesh_reduction *ret_reduction)
{
    static const char *const words[] = {
        [MESH_REDUCTION_MEAN] = "mean", [MESH_REDUCTION_SUM] = "sum", [MESH_REDUCTION_NONE] = "none"
    };
    for (size_t i = 0; word != NULL && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret_reduction = (mesh_reduction)i;
            return true;
        }
    }
    return false;
}

static bool read_field(struct reading *r, const struct attr_field *f, json_t *value, void *to)
{
    const char *word = json_string_value(value);
    switch (f->kind) {
    case A_BOOL:
        *(bool *)to = json_is_true(value);
        return json_is_boolean(value);
    case A_INT:
        *(int *)to = (int)json_integer_value(value);
        return json_is_integer(value);
    case A_INT64:
        *(int64_t *)to = json_integer_value(value);
        return json_is_integer(value);
    case A_NUMBER:
        return read_number(value, to);
    case A_SHAPE: /* null: everything */
        return json_is_null(value) || read_shape(value, to);
    case A_APPROXIMATE:
        *(bool *)to = word != NULL && strcmp(word, "tanh") == 0;
        return *(bool *)to || (word != NULL && strcmp(word, "none") == 0);
    case A_REDUCTION:
        return read_reduction(word, to);
    case A_PLACEMENTS:
        return read_placements(r, value, to);
    }
    return false;
}

static bool is_word_of(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(list, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool read_attr(struct reading *r, const char *name, json_t *value)
{
    if (!is_word_of(r->c->row->attrs, name)) {
        unsupported(r, "attribute that the operator does not take", name);
        return true;
    }
    for (size_t i = 0; i < sizeof attr_fields / sizeof attr_fields[0]; i++) {
        if (strcmp(attr_fields[i].name, name) == 0) {
            return read_field(r, &attr_fields[i], value, (char *)&r->c->attr + attr_fields[i].at) ||
                   malformed(r, "an attribute has a value of another kind than expected");
        }
    }
    return malformed(r, "conformance_ops.def names an attribute that conformance_read.c does not know");
}

static bool read_attrs(struct reading *r, json_t *object)
{
    const char *name;
    json_t *value;
    r->c->attr = (struct case_attr){ .ignore_index = -100, .min = -INFINITY, .max = INFINITY };
    if (object != NULL && !json_is_object(object)) {
        return malformed(r, "\"attr\" is not an object");
    }
    json_object_foreach(object, name, value)
    {
        if (!json_is_null(value) && !read_attr(r, name, value)) {
            return false;
        }
    }
    return true;
}

/* --- the case ------------------------------------------------------------------------------------------------------ */

static bool read_mesh(struct reading *r, json_t *list)
{
    mesh_shape mesh;
    int64_t n_ranks = 1;
    if (!read_shape(list, &mesh) || mesh.ndim == 0 || mesh.ndim > MESH_MAX_MESH_NDIM) {
        return malformed(r, "\"mesh\" is not a list of 1 to 4 extents");
    }
    for (int m = 0; m < mesh.ndim; m++) {
        if (mesh.dim[m] < 1 || mesh.dim[m] > CASE_MAX_RANKS || (n_ranks *= mesh.dim[m]) > CASE_MAX_RANKS) {
            return malformed(r, "\"mesh\" has no ranks, or more than 64");
        }
    }
    r->c->mesh = mesh;
    r->c->n_ranks = (int)n_ranks;
    return true;
}

static bool read_tolerance(struct reading *r, json_t *list)
{
    if (json_array_size(list) != 2 || !read_number(json_array_get(list, 0), &r->c->rtol) ||
        !read_number(json_array_get(list, 1), &r->c->atol)) {
        return malformed(r, "\"tol\" is not a pair of numbers");
    }
    return true;
}

static bool read_case(struct reading *r, json_t *object)
{
    const char *id = json_string_value(json_object_get(object, "id"));
    json_t *locals = json_object_get(object, "locals");
    if (id == NULL) {
        return malformed(r, "there is no \"id\"");
    }
    snprintf(r->c->id, sizeof r->c->id, "%s", id);
    return read_mesh(r, json_object_get(object, "mesh")) && read_inputs(r, json_object_get(object, "in")) &&
           read_attrs(r, json_object_get(object, "attr")) && read_tolerance(r, json_object_get(object, "tol")) &&
           (locals != NULL ? read_locals(r, locals)
                           : read_outputs(r, json_object_get(object, "out")) &&
                                 read_gradients(r, json_object_get(object, "grad")));
}

bool case_read(json_t *object, const struct op_row *row, struct test_case *ret_case, const char **ret_why)
{
    *ret_case = (struct test_case){ .row = row };
    struct reading r = { .c = ret_case };
    if (read_case(&r, object)) {
        return true;
    }
    *ret_why = r.why != NULL ? r.why : "not of the documented form";
    case_fini(ret_case);
    return false;
}

void case_fini(struct test_case *c)
{
    for (int i = 0; i < CASE_MAX_INPUTS; i++) {
        free(c->in[i].data);
        free(c->gradient[i].data);
    }
    for (int i = 0; i < CASE_MAX_OUTPUTS; i++) {
        free(c->out[i].data);
    }
    for (int i = 0; c->locals != NULL && i < c->n_ranks; i++) {
        free(c->locals[i].value.data);
    }
    free(c->locals);
    free(c->line);
}
