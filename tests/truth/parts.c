/* tests/truth/parts.c - cutting and joining by obvious loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "tensor/shape.h"

#define KINDS_MAX  (MESH_MAX_NDIM + 8)
#define EXTENT_MAX 64

void parts_must(bool claim, const char *what)
{
    if (!claim) {
        fprintf(stderr, "truth: %s\n", what);
        abort();
    }
}

static void must(bool claim)
{
    parts_must(claim, "no memory, or a case that nobody thought of");
}

double tensor_number(const struct mesh_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case MESH_F32:
        return (double)((const float *)t->data)[i];
    case MESH_F64:
        return ((const double *)t->data)[i];
    case MESH_F16:
        return (double)float_from_f16(((const uint16_t *)t->data)[i]);
    case MESH_BF16:
        return (double)float_from_bf16(((const uint16_t *)t->data)[i]);
    case MESH_I8:
        return ((const int8_t *)t->data)[i];
    case MESH_I32:
        return ((const int32_t *)t->data)[i];
    case MESH_U8:
    case MESH_BOOL:
        return ((const uint8_t *)t->data)[i];
    default:
        must(t->dtype == MESH_I64);
        return (double)((const int64_t *)t->data)[i];
    }
}

/* Integers keep the low end, as they do when they wrap. */
static void set_whole_number(struct mesh_tensor *t, int64_t i, int64_t v)
{
    switch (t->dtype) {
    case MESH_I8:
        ((int8_t *)t->data)[i] = (int8_t)v;
        return;
    case MESH_U8:
        ((uint8_t *)t->data)[i] = (uint8_t)v;
        return;
    case MESH_I32:
        ((int32_t *)t->data)[i] = (int32_t)v;
        return;
    default:
        must(t->dtype == MESH_I64);
        ((int64_t *)t->data)[i] = v;
        return;
    }
}

void tensor_set_number(struct mesh_tensor *t, int64_t i, double v)
{
    switch (t->dtype) {
    case MESH_F32:
        ((float *)t->data)[i] = (float)v;
        return;
    case MESH_F64:
        ((double *)t->data)[i] = v;
        return;
    case MESH_F16:
        ((uint16_t *)t->data)[i] = float_to_f16((float)v);
        return;
    case MESH_BF16:
        ((uint16_t *)t->data)[i] = float_to_bf16((float)v);
        return;
    case MESH_BOOL:
        ((uint8_t *)t->data)[i] = v > 0;
        return;
    default:
        set_whole_number(t, i, (int64_t)v);
        return;
    }
}

double number_wrapped(double v, mesh_dtype t)
{
    int64_t element;
    struct mesh_tensor one = { .dtype = t, .n = 1, .data = &element };
    if (dtype_kind(t) != DTYPE_INT || t == MESH_I64) {
        return v;
    }
    set_whole_number(&one, 0, (int64_t)v);
    return tensor_number(&one, 0);
}

/* What changes nothing, in the tensor's own dtype: the greatest i64 is no double. */
static void set_neutral(struct mesh_tensor *t, int64_t i, mesh_reduce_op op)
{
    bool is_float = dtype_kind(t->dtype) == DTYPE_FLOAT;
    if (op != MESH_MAX && op != MESH_MIN) {
        tensor_set_number(t, i, op == MESH_PROD ? 1 : op == MESH_BAND ? -1 : 0);
    } else if (is_float || t->dtype == MESH_BOOL) {
        tensor_set_number(t, i, op == MESH_MAX ? -INFINITY : INFINITY);
    } else if (t->dtype == MESH_I32) {
        ((int32_t *)t->data)[i] = op == MESH_MAX ? INT32_MIN : INT32_MAX;
    } else if (t->dtype == MESH_U8) {
        ((uint8_t *)t->data)[i] = op == MESH_MAX ? 0 : UINT8_MAX;
    } else if (t->dtype == MESH_I8) {
        ((int8_t *)t->data)[i] = op == MESH_MAX ? INT8_MIN : INT8_MAX;
    } else {
        must(t->dtype == MESH_I64);
        ((int64_t *)t->data)[i] = op == MESH_MAX ? INT64_MIN : INT64_MAX;
    }
}

struct mesh_tensor *sample_tensor(mesh_shape s, mesh_dtype t, int seed)
{
    struct mesh_tensor *out = tensor_new(s, t);
    must(out != NULL);
    for (int64_t i = 0; i < out->n; i++) {
        int64_t k = (i * 37 + seed * 11) % 23 - 11;
        double v = k == 0 ? 5 : (double)k;
        bool is_float = dtype_kind(t) == DTYPE_FLOAT;
        double fine = t == MESH_F16 || t == MESH_BF16 ? 0 : (double)(i % 5) / 64; /* so that sums of parts are exact */
        tensor_set_number(out, i, is_float ? v / 4 + fine : t == MESH_U8 ? fabs(v) : v);
    }
    return out;
}

int cut_ranks(const struct cut *c)
{
    int n = 1;
    for (int i = 0; i < c->ndim; i++) {
        n *= c->size[i];
    }
    return n;
}

void cut_coordinate(const struct cut *c, int rank, int *ret_coordinate)
{
    for (int i = c->ndim - 1; i >= 0; i--) {
        ret_coordinate[i] = rank % c->size[i];
        rank /= c->size[i];
    }
}

static double noise(int64_t i, int c, int m)
{
    return (double)((5 * i + 3 * c + m) % 7 - 3);
}

/* A power of two of either sign, whose inverse is exact; of integers 1 or -1. */
static double factor(int64_t i, int c, bool is_float)
{
    static const double of_floats[] = { -1, 0.5, 2, -4, 1 };
    return is_float ? of_floats[(i + 2 * c) % 5] : (i + c) % 2 ? 1 : -1;
}

static double product_part(double v, int64_t i, int n, int c, bool is_float)
{
    for (int k = 1; c == 0 && k < n; k++) {
        v /= factor(i, k, is_float);
    }
    return c == 0 ? v : factor(i, c, is_float);
}

/* Which bits of element i coordinate c of n answers for: low ones in turn, those from LOW_BITS on, with the sign,
 * together. */
#define LOW_BITS 6
static int64_t own_bits(int64_t i, int n, int c)
{
    int64_t own = i % n == c ? -1 - ((1 << LOW_BITS) - 1) : 0;
    for (int b = 0; b < LOW_BITS; b++) {
        bool is_own = (i + b) % n == c || (b < 3 && (i + c) % n == 1); /* some by two: or is neither sum nor xor */
        own |= is_own ? 1 << b : 0;
    }
    return own;
}

/* So that no part is the value: it would be the greatest or the least of them as well. */
static double bits_part(double value, int64_t i, mesh_reduce_op op, int n, int c)
{
    int64_t v = (int64_t)value;
    if (op == MESH_BAND) {
        return (double)(v | ~own_bits(i, n, c));
    }
    if (op == MESH_BOR) {
        return (double)(v & own_bits(i, n, c));
    }
    for (int k = 1; c == 0 && k < n; k++) {
        v ^= i + k;
    }
    return (double)(c == 0 ? v : i + c);
}

/* The share of coordinate at[m] in the value v of element i, on mesh dim m. */
static double uneven_part(double v, int64_t i, const struct cut *cut, const int *at, int m, bool is_float)
{
    mesh_reduce_op op = cut->p.at[m].op;
    int n = cut->size[m], c = at[m];
    if (op == MESH_MAX || op == MESH_MIN) {
        double away = c == (int)(i % n) ? 0 : (double)((i + c) % 5 * 2 + 1);
        return op == MESH_MAX ? v - away : v + away;
    }
    if (op == MESH_PROD) {
        return product_part(v, i, n, c, is_float);
    }
    if (op == MESH_BAND || op == MESH_BOR || op == MESH_BXOR) {
        return bits_part(v, i, op, n, c);
    }
    double unit = is_float ? 0.75 : 1; /* so that rounding the parts is not rounding the sum */
    if (c > 0) {
        return unit * noise(i, c, m);
    }
    double rest = op == MESH_AVG ? v * n : v;
    for (int k = 1; k < n; k++) {
        rest -= unit * noise(i, k, m);
    }
    return rest;
}

/* The nearest number that a narrow integer holds. */
static double held(double v, mesh_dtype t)
{
    switch (t) {
    case MESH_I32:
        return fmin(fmax(v, (double)INT32_MIN), (double)INT32_MAX);
    case MESH_I8:
        return fmin(fmax(v, (double)INT8_MIN), (double)INT8_MAX);
    case MESH_U8:
        return fmin(fmax(v, 0), (double)UINT8_MAX);
    default:
        return v;
    }
}

/* Element i of the part, which is `element` of the whole. */
static void set_part(struct mesh_tensor *t, int64_t i, int64_t element, double v, const struct cut *c, const int *at)
{
    bool is_float = dtype_kind(t->dtype) == DTYPE_FLOAT;
    for (int m = 0; m < c->ndim; m++) {
        if (c->p.at[m].kind == MESH_IS_PARTIAL) {
            v = uneven_part(v, element + 2 * c->salt, c, at, m, is_float);
            v = c->p.at[m].op == MESH_MAX || c->p.at[m].op == MESH_MIN ? held(v, t->dtype) : v;
        }
    }
    tensor_set_number(t, i, v);
}

static void set_value_or_neutral(struct mesh_tensor *t, int64_t i, double v, const struct cut *c, const int *at)
{
    tensor_set_number(t, i, v);
    for (int m = 0; m < c->ndim; m++) {
        if (c->p.at[m].kind == MESH_IS_PARTIAL && c->p.at[m].op != MESH_AVG && at[m] != 0) {
            set_neutral(t, i, c->p.at[m].op);
        }
    }
}

/* The places of one dim that a rank holds, in order: level by level, a list is cut and cut again. */
struct list {
    int64_t n, at[EXTENT_MAX];
};

static int64_t chunk_width(int64_t n, int64_t parts)
{
    return (n + parts - 1) / parts;
}

/* Of each of `factor` chunks of the list, the rank's piece. */
static void keep_piece(struct list *l, int factor, int parts, int rank)
{
    struct list kept = { .n = 0 };
    int64_t width = chunk_width(l->n, factor);
    for (int64_t begin = 0; begin < l->n; begin += width) {
        int64_t n = l->n - begin < width ? l->n - begin : width, piece = chunk_width(n, parts);
        for (int64_t k = piece * rank; k < n && k < piece * (rank + 1); k++) {
            kept.at[kept.n++] = l->at[begin + k];
        }
    }
    *l = kept;
}

static void list_places(int64_t extent, int dim, const struct cut *c, const int *at, struct list *ret_list)
{
    must(extent <= EXTENT_MAX);
    ret_list->n = extent;
    for (int64_t i = 0; i < extent; i++) {
        ret_list->at[i] = i;
    }
    for (int m = 0; m < c->ndim; m++) {
        if (placement_splits(c->p.at[m], dim)) {
            keep_piece(ret_list, placement_factor(c->p.at[m]), c->size[m], at[m]);
        }
    }
}

/* Where each element of the part at a coordinate is in the whole, row-major; the caller frees. */
static int64_t *list_elements(mesh_shape whole, const struct cut *c, const int *at, int64_t *ret_n)
{
    struct list places[MESH_MAX_NDIM];
    int64_t n = 1;
    for (int d = 0; d < whole.ndim; d++) {
        list_places(whole.dim[d], d, c, at, &places[d]);
        n *= places[d].n;
    }
    int64_t *elements = malloc((size_t)n * sizeof *elements + 1);
    must(elements != NULL);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, index = 0, stride = 1;
        for (int d = whole.ndim - 1; d >= 0; d--) {
            index += places[d].at[rest % places[d].n] * stride;
            rest /= places[d].n;
            stride *= whole.dim[d];
        }
        elements[i] = index;
    }
    *ret_n = n;
    return elements;
}

static bool has_pending(const mesh_placements *p)
{
    bool has = false;
    for (int m = 0; m < p->n; m++) {
        has = has || p->at[m].kind == MESH_IS_PARTIAL;
    }
    return has;
}

/* Bits, not numbers: the greatest i64 is no double. */
static void copy_element(struct mesh_tensor *to, int64_t i, const struct mesh_tensor *from, int64_t element)
{
    size_t size = dtype_size(to->dtype);
    memcpy((char *)to->data + (size_t)i * size, (const char *)from->data + (size_t)element * size, size);
}

struct mesh_tensor *cut_part(const struct mesh_tensor *whole, const struct cut *c, int rank, enum split split)
{
    bool is_cut = !has_pending(&c->p);
    int at[MESH_MAX_MESH_NDIM];
    int64_t n;
    cut_coordinate(c, rank, at);
    int64_t *elements = list_elements(whole->shape, c, at, &n);
    struct mesh_tensor *part = tensor_new(layout_local_shape(whole->shape, c->size, at, &c->p), whole->dtype);
    must(part != NULL && part->n == n);
    for (int64_t i = 0; i < n; i++) {
        if (is_cut) {
            copy_element(part, i, whole, elements[i]);
        } else if (split == SPLIT_UNEVEN) {
            set_part(part, i, elements[i], tensor_number(whole, elements[i]), c, at);
        } else {
            set_value_or_neutral(part, i, tensor_number(whole, elements[i]), c, at);
        }
    }
    free(elements);
    return part;
}

struct joiner {
    struct mesh_tensor *const *parts;
    mesh_shape global;
    int64_t n;
    const struct cut *cut;
    bool same;
};

/* The elements of one rank, zeros elsewhere. */
static void place_part(struct joiner *j, const int *at, double *out)
{
    int rank = 0;
    int64_t n;
    for (int m = 0; m < j->cut->ndim; m++) {
        rank = rank * j->cut->size[m] + at[m];
    }
    int64_t *elements = list_elements(j->global, j->cut, at, &n);
    must(j->parts[rank]->n == n);
    memset(out, 0, (size_t)j->n * sizeof *out);
    for (int64_t i = 0; i < n; i++) {
        out[elements[i]] = tensor_number(j->parts[rank], i);
    }
    free(elements);
}

static double reduce_two(double a, double b, mesh_reduce_op op)
{
    switch (op) {
    case MESH_MAX:
        return a > b ? a : b;
    case MESH_MIN:
        return a < b ? a : b;
    case MESH_PROD:
        return a * b;
    case MESH_BAND:
        return (double)((int64_t)a & (int64_t)b);
    case MESH_BOR:
        return (double)((int64_t)a | (int64_t)b);
    case MESH_BXOR:
        return (double)((int64_t)a ^ (int64_t)b);
    default:
        return a + b;
    }
}

static void join(struct joiner *j, int m, int *at, double *out)
{
    if (m == j->cut->ndim) {
        place_part(j, at, out);
        return;
    }
    mesh_placement p = j->cut->p.at[m];
    double *one = malloc((size_t)j->n * sizeof *one + 1);
    for (at[m] = 0; at[m] < j->cut->size[m]; at[m]++) {
        int here = at[m];
        join(j, m + 1, at, here == 0 ? out : one);
        for (int64_t i = 0; here > 0 && i < j->n; i++) {
            if (p.kind == MESH_IS_REPLICATE) {
                j->same = j->same && numbers_are_near(out[i], one[i], 0);
            } else {
                out[i] = reduce_two(out[i], one[i], placement_is_shard(p) ? MESH_SUM : p.op);
            }
        }
    }
    for (int64_t i = 0; p.kind == MESH_IS_PARTIAL && p.op == MESH_AVG && i < j->n; i++) {
        out[i] /= j->cut->size[m];
    }
    free(one);
}

double *join_parts(struct mesh_tensor *const *parts, mesh_shape global, const struct cut *c, bool *ret_same)
{
    int at[MESH_MAX_MESH_NDIM] = { 0 };
    struct joiner j = { .parts = parts, .global = global, .n = shape_numel(global), .cut = c, .same = true };
    double *out = malloc((size_t)j.n * sizeof *out + 1);
    must(out != NULL);
    join(&j, 0, at, out);
    *ret_same = j.same;
    return out;
}

/* with_rare: the products and the bits as well. */
static int kinds_of(mesh_shape s, mesh_dtype t, bool with_rare, mesh_placement *ret_kinds)
{
    static const mesh_reduce_op of_floats[] = { MESH_SUM, MESH_MAX, MESH_MIN, MESH_AVG, MESH_PROD };
    static const mesh_reduce_op of_ints[] = { MESH_SUM, MESH_MAX, MESH_MIN, MESH_PROD, MESH_BAND, MESH_BOR, MESH_BXOR };
    bool is_float = dtype_kind(t) == DTYPE_FLOAT, is_int = dtype_kind(t) == DTYPE_INT && t != MESH_U8;
    const mesh_reduce_op *ops = is_float ? of_floats : of_ints;
    int n = 0, n_ops = is_float ? (with_rare ? 5 : 4) : is_int ? (with_rare ? 7 : 3) : 0;
    ret_kinds[n++] = mesh_replicate();
    for (int d = 0; d < s.ndim; d++) {
        ret_kinds[n++] = mesh_shard(d);
    }
    for (int k = 0; k < n_ops; k++) {
        ret_kinds[n++] = mesh_partial(ops[k]);
    }
    return n;
}

static mesh_placements layout_of_kinds(const mesh_placement *kinds, int n_kinds, int ndim, int64_t number)
{
    mesh_placements p = { .n = ndim };
    for (int m = 0; m < ndim; m++, number /= n_kinds) {
        p.at[m] = kinds[number % n_kinds];
    }
    return p;
}

static int64_t power(int64_t base, int exponent)
{
    return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

int64_t layouts_count(mesh_shape s, mesh_dtype t, int ndim)
{
    mesh_placement kinds[KINDS_MAX];
    return power(kinds_of(s, t, true, kinds), ndim);
}

mesh_placements layout_numbered(mesh_shape s, mesh_dtype t, int ndim, int64_t number)
{
    mesh_placement kinds[KINDS_MAX];
    return layout_of_kinds(kinds, kinds_of(s, t, true, kinds), ndim, number);
}

int all_layouts(mesh_shape s, mesh_dtype t, int ndim, mesh_placements *ret_layouts)
{
    mesh_placement kinds[KINDS_MAX];
    int n_kinds = kinds_of(s, t, false, kinds), n = 0;
    int64_t total = power(n_kinds, ndim);
    for (int64_t k = 0; k < total; k++) {
        mesh_placements p = layout_of_kinds(kinds, n_kinds, ndim, k);
        if (!placements_mix_reductions(&p)) {
            must(n < LAYOUTS_MAX);
            ret_layouts[n++] = p;
        }
    }
    return n;
}

bool numbers_are_near(double a, double b, double tolerance)
{
    if (isnan(a) || isnan(b)) {
        return isnan(a) && isnan(b);
    }
    if (isinf(a) || isinf(b)) {
        return !(a < b) && !(a > b);
    }
    double scale = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    return fabs(a - b) <= tolerance * (scale > 1 ? scale : 1);
}

bool tensors_are_near(const struct mesh_tensor *a, const struct mesh_tensor *b, double tolerance)
{
    bool is_near = shape_equal(a->shape, b->shape) && a->dtype == b->dtype;
    for (int64_t i = 0; is_near && i < a->n; i++) {
        is_near = numbers_are_near(tensor_number(a, i), tensor_number(b, i), tolerance);
    }
    return is_near;
}

double tolerance_of(mesh_dtype t, double of_f64)
{
    switch (t) {
    case MESH_F32:
        return 1e-4;
    case MESH_F16:
        return 0.05;
    case MESH_BF16:
        return 0.4;
    default:
        return of_f64;
    }
}
