/* client/dtensor/dispatch.c - applies an operator to tensors: what was decided once for a signature is remembered.
 *
 *      inputs --facts--> shape function --> rules, cheapest combination      (decide: pure, once per signature)
 *        |                                        |
 *        '--> redistribute inputs --> kernel on local parts --> wrap          (run: every time)
 *
 * The signature has everything a decision looks at (operator, mesh, arguments, global shapes, dtypes, placements), and
 * this rank's own sizes follow from it, so a repeated operator costs one look-up above its kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/dispatch.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "dtensor/attention.h"
#include "dtensor/exchange.h"
#include "dtensor/redistribute.h"
#include "dtensor/state.h"
#include "dtensor/watch.h"
#include "dtensor/window.h"
#include "tensor/shape.h"

struct decision {
    struct op_choice choice;
    struct op_attr attr; /* normalised */
    mesh_shape out[OP_MAX_OUTPUTS], out_local[OP_MAX_OUTPUTS];
    mesh_dtype out_dtype[OP_MAX_OUTPUTS];
    int64_t offset[MESH_MAX_NDIM]; /* where this rank's part of input 0 begins */
    struct windows windows;        /* what is fetched takes the place of the inputs, once they are redistributed */
    uint32_t is_whole;             /* bit i: every rank of the job gave all of input i */
    uint32_t is_made_whole; /* bit i: every rank of the job has all of it at the latest after its redistribution */
    bool is_exchanged;      /* a reshape whose elements go from their ranks straight to those that hold the result */
};

/* Words of 64 bits: few, because they are hashed at every call. */
#define SIGNATURE_WORDS                                                                                                \
    (3 + MESH_MAX_NDIM + sizeof(struct op_attr) / 8 + OP_MAX_INPUTS * (1 + MESH_MAX_NDIM + MESH_MAX_MESH_NDIM))
struct signature {
    size_t n;
    uint64_t word[SIGNATURE_WORDS];
};

static void sign(struct signature *s, const void *words, size_t bytes)
{
    memcpy(&s->word[s->n], words, bytes);
    s->n += bytes / 8;
}

/* dtype and ndim in 4 bits each, then 12 bits per placement; a word more for each stride. */
static void sign_input(struct signature *s, const mesh_dtensor *x)
{
    uint64_t word = 0;
    if (!x) {
        sign(s, &word, sizeof word);
        return;
    }
    for (int i = 0; i < x->placements.n; i++) {
        const mesh_placement *p = &x->placements.at[i];
        word = word << 12 | (uint64_t)p->kind << 8 | (uint64_t)p->dim << 4 | (uint64_t)p->op;
    }
    word = word << 8 | (uint64_t)x->dtype << 4 | (uint64_t)x->shape.ndim;
    sign(s, &word, sizeof word);
    sign(s, x->shape.dim, (size_t)x->shape.ndim * sizeof x->shape.dim[0]);
    for (int i = 0; i < x->placements.n; i++) {
        word = (uint64_t)x->placements.at[i].split_factor;
        if (x->placements.at[i].kind == MESH_IS_STRIDED_SHARD) {
            sign(s, &word, sizeof word);
        }
    }
}

/* Most operators have none: one word says so. */
static void sign_attr(struct signature *s, const struct op_attr *attr)
{
    static const struct op_attr none;
    const size_t begin = offsetof(struct op_attr, dims), n = sizeof *attr - begin;
    const char *rest = (const char *)attr + begin; /* no padding from here on */
    bool has_rest = memcmp(rest, (const char *)&none + begin, n) != 0;
    uint64_t word = (uint64_t)attr->shape.ndim << 1 | has_rest;
    sign(s, &word, sizeof word);
    sign(s, attr->shape.dim, (size_t)attr->shape.ndim * sizeof attr->shape.dim[0]);
    if (has_rest) {
        sign(s, rest, n);
    }
}

static void sign_all(uint64_t id, int n_in, mesh_dtensor *const *in, const struct op_attr *attr,
                     struct signature *ret_signature)
{
    struct signature *s = ret_signature;
    uint64_t op[2] = { id, (uint64_t)(uintptr_t)in[0]->mesh };
    s->n = 0;
    sign(s, op, sizeof op);
    sign_attr(s, attr);
    for (int i = 0; i < n_in; i++) {
        sign_input(s, in[i]);
    }
}

_Static_assert(offsetof(struct op_attr, dims) % 8 == 0 && sizeof(struct op_attr) % 8 == 0,
               "arguments are signed in words");
_Static_assert(MESH_MAX_NDIM < 16 && MESH_BXOR < 16 && MESH_BOOL < 16 && MESH_MAX_MESH_NDIM * 12 + 8 <= 64,
               "facts fit a word");

void op_facts(const struct op_row *op, mesh_dtensor *const *in, const struct op_attr *attr, struct op_shapes *ret_facts)
{
    struct op_shapes *s = ret_facts;
    memset(s, 0, sizeof *s);
    s->name = op->name;
    s->n_in = op->n_in;
    s->n_out = op->n_out;
    s->attr = *attr;
    s->user = op->user;
    s->mesh_ndim = in[0]->mesh->ndim;
    for (int i = 0; i < op->n_in; i++) {
        s->has[i] = in[i] != NULL;
        if (in[i]) {
            s->in[i] = in[i]->shape;
            s->in_dtype[i] = in[i]->dtype;
        }
    }
}

/* One sentence more for whoever reads a refusal: what the arguments were. */
static int refuse(int r, const struct op_row *op, mesh_dtensor *const *in)
{
    char a[DTENSOR_TEXT_BYTES], b[DTENSOR_TEXT_BYTES];
    int second = op->n_in > 1 && in[1] ? 1 : 0;
    mesh_error first = *mesh_last_error();
    if (r == MESH_ENOMEM) {
        return r;
    }
    return err_set(r, "%.150s (%.60s%s%.60s)", first.message, dtensor_text(in[0], a, sizeof a), second ? " and " : "",
                   second ? dtensor_text(in[second], b, sizeof b) : "");
}

static void find_local(const mesh_device_mesh *m, const struct op_shapes *s, struct decision *inout)
{
    struct box b = { .ndim = 0 };
    if (!m->is_member) {
        for (int o = 0; o < s->n_out; o++) {
            inout->out_local[o] = MESH_SHAPE(0);
        }
        return;
    }
    for (int o = 0; o < s->n_out; o++) {
        inout->out_local[o] = layout_local_shape(s->out[o], m->size, m->coordinate, &inout->choice.out[o]);
    }
    layout_box(s->in[0], m->size, m->coordinate, &inout->choice.in[0], &b);
    memcpy(inout->offset, b.offset, sizeof inout->offset);
}

static uint32_t find_whole(const mesh_device_mesh *m, const struct op_shapes *s, const mesh_placements *in)
{
    uint32_t whole = 0;
    for (int i = 0; i < s->n_in && m->n_ranks == m->session->world_size; i++) {
        bool is_whole = s->has[i];
        for (int k = 0; k < m->ndim; k++) {
            is_whole = is_whole && in[i].at[k].kind == MESH_IS_REPLICATE;
        }
        whole |= is_whole ? 1U << i : 0;
    }
    return whole;
}

/* A view moves nothing. */
static int check_view(const mesh_dtensor *x, const struct op_shapes *s, const struct op_choice *choice)
{
    char text[DTENSOR_TEXT_BYTES], to[SHAPE_TEXT_BYTES];
    if (choice->cost <= 0) {
        return 0;
    }
    return err_set(MESH_EPLACEMENT,
                   "view: the parts of %s are not the parts of %s under any placements, so elements would have to move "
                   "between ranks; use mesh_reshape() or redistribute first",
                   dtensor_text(x, text, sizeof text), shape_text(s->out[0], to, sizeof to));
}

/* A shard of the reshaped tensor along the first dim that a shard of this one overlaps. */
static mesh_placement reshaped(const struct op_shapes *s, mesh_placement p)
{
    for (int j = 0; placement_is_shard(p) && j < s->out[0].ndim; j++) {
        if (dims_overlap(s->in[0], p.dim, s->out[0], j)) {
            return mesh_shard(j);
        }
    }
    return p.kind == MESH_IS_PARTIAL ? p : mesh_replicate();
}

/* Where no split is kept: the elements that change ranks, which is less than gathering them all. */
static void try_exchange(const mesh_device_mesh *m, const mesh_placements *now, const struct op_shapes *s,
                         struct decision *inout)
{
    static const int origin[MESH_MAX_MESH_NDIM];
    mesh_placements to = { .n = m->ndim };
    for (int i = 0; i < m->ndim; i++) {
        to.at[i] = reshaped(s, now->at[i]);
    }
    mesh_shape part = layout_local_shape(s->out[0], m->size, origin, &to);
    double bytes = (double)shape_numel(part) * (double)dtype_size(s->out_dtype[0]);
    double cost = bytes + REDISTRIBUTE_COLLECTIVE_BYTES;
    if (cost <= inout->choice.cost) {
        inout->choice = (struct op_choice){ .in = { *now }, .out = { to }, .cost = cost };
        inout->is_exchanged = true;
    }
}

/* The arguments of the kernel at this rank's coordinate. */
static void finish_attr(const struct op_row *op, mesh_dtensor *const *in, const struct op_shapes *s,
                        struct decision *inout)
{
    const mesh_device_mesh *m = in[0]->mesh;
    for (int k = 0; k < inout->windows.n; k++) {
        window_finish_attr(&inout->windows.at[k], op, in, &inout->attr);
    }
    attention_attr_at(op, s, &(struct rule_mesh){ m->ndim, m->size }, m->coordinate, inout->choice.in, &inout->attr);
}

/* The placements, and how elements get there. */
static int choose(const struct op_row *op, mesh_dtensor *const *in, const struct op_shapes *s,
                  const mesh_placements *now, struct decision *inout)
{
    const mesh_device_mesh *m = in[0]->mesh;
    int r = op->user == NULL ? window_find(op, in, s, &inout->windows, &inout->choice) : 0;
    if (r == 0 && inout->windows.n == 0) {
        r = op_choose(op, s, m->ndim, m->size, now, &inout->choice);
    }
    if (r == 0 && op->rule.of == rule_reshape && s->attr.mode == RESHAPE_IS_VIEW) {
        r = check_view(in[0], s, &inout->choice);
    } else if (r == 0 && op->rule.of == rule_reshape) {
        try_exchange(m, &now[0], s, inout);
    }
    return r;
}

static int decide(const struct op_row *op, mesh_dtensor *const *in, const struct op_attr *attr,
                  struct decision *ret_decision)
{
    const mesh_device_mesh *m = in[0]->mesh;
    struct op_shapes s;
    mesh_placements now[OP_MAX_INPUTS] = { { .n = 0 } };
    struct decision d;
    memset(&d, 0, sizeof d);
    op_facts(op, in, attr, &s);
    int r = op->shape(&s);
    for (int o = 0; r == 0 && o < op->n_out; o++) {
        r = shape_check(s.out[o], op->name);
    }
    if (r < 0) {
        return refuse(r, op, in);
    }
    for (int i = 0; i < op->n_in; i++) {
        now[i] = in[i] ? in[i]->placements : now[i];
    }
    r = choose(op, in, &s, now, &d);
    if (r < 0) {
        return r;
    }
    d.attr = s.attr;
    memcpy(d.out, s.out, sizeof d.out);
    memcpy(d.out_dtype, s.out_dtype, sizeof d.out_dtype);
    if (m->is_member) {
        finish_attr(op, in, &s, &d);
    }
    find_local(m, &s, &d);
    d.is_whole = find_whole(m, &s, now);
    d.is_made_whole = find_whole(m, &s, d.choice.in);
    *ret_decision = d;
    return 0;
}

/* A bias, a weight, further tensors to join. */
static bool may_miss(uint64_t id, int i)
{
    switch (id) {
    case OP_cat:
    case OP_layer_norm:
    case OP_rms_norm:
        return i > 0;
    case OP_linear:
    case OP_normalize_grad_input:
        return i == 2;
    default:
        return false;
    }
}

/* They exist, live on one mesh, and have all their elements. */
static int check_inputs(const struct op_row *op, uint64_t id, mesh_dtensor *const *in)
{
    for (int i = 0; i < op->n_in; i++) {
        if (in[i] && tensor_settle(in[i]->local) < 0) {
            return err_status();
        }
        if (!in[i] && !may_miss(id, i)) {
            return err_set(MESH_EINVAL, "%s: argument %d is NULL", op->name, i + 1);
        }
        if (in[i] && in[i]->mesh != in[0]->mesh) {
            char a[MESH_TEXT_BYTES], b[MESH_TEXT_BYTES];
            return err_set(MESH_EINVAL, "%s: argument 1 is on mesh %s, argument %d on mesh %s: all must be on one mesh",
                           op->name, mesh_text(in[0]->mesh, a, sizeof a), i + 1, mesh_text(in[i]->mesh, b, sizeof b));
        }
    }
    return 0;
}

static const struct mesh_tensor *whole_of(const struct decision *d, int i, const mesh_dtensor *x,
                                          const struct mesh_tensor *local)
{
    return d->is_whole >> i & 1U ? x->local : d->is_made_whole >> i & 1U ? local : NULL;
}

static int64_t row_of_places(const void *rows, int64_t i)
{
    return places_run(rows, i).offset;
}

static int run_kernel(const struct op_row *op, const struct decision *d, mesh_dtensor *const *in,
                      struct mesh_tensor *const *local, struct mesh_tensor *const *out)
{
    const mesh_device_mesh *m = in[0]->mesh;
    const mesh_placements *first = &d->choice.in[0];
    struct kernel_call call = { .attr = &d->attr, .user = op->user };
    struct places rows;
    for (int i = 0; i < op->n_in; i++) {
        call.in[i] = local[i];
        call.whole[i] = whole_of(d, i, in[i], local[i]);
    }
    for (int o = 0; o < op->n_out; o++) {
        call.out[o] = out[o];
    }
    memcpy(call.offset, d->offset, sizeof call.offset);
    if (m->is_member && in[0]->shape.ndim > 0 && placements_have_stride(first)) {
        rows = places_of(in[0]->shape.dim[0], 0, m->size, m->coordinate, first);
        call.row_of = row_of_places;
        call.rows = &rows;
    }
    return kernel_run(op->kernel, &call);
}

/* Takes the references of out, also on failure. */
static int wrap(const struct op_row *op, const struct decision *d, mesh_device_mesh *m, struct mesh_tensor **out,
                mesh_dtensor **ret_out)
{
    mesh_dtensor *result[OP_MAX_OUTPUTS] = { NULL };
    int r = 0;
    for (int o = 0; o < op->n_out; o++) {
        result[o] = dtensor_new(m, d->out[o], d->out_dtype[o], &d->choice.out[o], out[o]);
        out[o] = NULL;
        r = result[o] ? r : err_status();
    }
    for (int o = 0; o < op->n_out; o++) {
        if (r == 0) {
            ret_out[o] = result[o];
        } else if (result[o]) {
            object_release(&result[o]->object);
        }
    }
    return r;
}

static int run_exchange(const struct op_row *op, const struct decision *d, mesh_dtensor *x, mesh_dtensor **ret_out)
{
    struct exchange_end from = { x->mesh, x->shape, &d->choice.in[0] };
    struct exchange_end to = { x->mesh, d->out[0], &d->choice.out[0] };
    struct mesh_tensor *out[OP_MAX_OUTPUTS] = { exchange_run(&from, &to, x->local) };
    return out[0] ? wrap(op, d, x->mesh, out, ret_out) : err_status();
}

/* What the kernel gets of an input; the caller's reference. */
static struct mesh_tensor *bring(const struct decision *d, int i, const mesh_dtensor *x)
{
    const mesh_placements *p = &d->choice.in[i];
    struct mesh_tensor *t = redistribute_run(x, p);
    for (int k = 0; t && k < d->windows.n; k++) {
        struct mesh_tensor *fetched = window_fetch(&d->windows.at[k], i, &(struct window_input){ x, p, t });
        tensor_unref(t);
        t = fetched;
    }
    return t;
}

static int run(const struct op_row *op, const struct decision *d, mesh_dtensor *const *in, mesh_dtensor **ret_out)
{
    struct mesh_tensor *local[OP_MAX_INPUTS] = { NULL }, *out[OP_MAX_OUTPUTS] = { NULL };
    int r = 0;
    if (d->is_exchanged) {
        return run_exchange(op, d, in[0], ret_out);
    }
    for (int i = 0; r == 0 && i < op->n_in; i++) {
        local[i] = in[i] ? bring(d, i, in[i]) : NULL;
        r = in[i] && !local[i] ? err_status() : 0;
    }
    for (int o = 0; r == 0 && o < op->n_out; o++) {
        out[o] = tensor_new(d->out_local[o], d->out_dtype[o]);
        r = out[o] ? 0 : err_status();
    }
    if (r == 0 && in[0]->mesh->is_member) {
        r = run_kernel(op, d, in, local, out);
    }
    if (r == 0) {
        r = wrap(op, d, in[0]->mesh, out, ret_out);
    }
    for (int o = 0; o < op->n_out; o++) {
        tensor_unref(out[o]);
    }
    for (int i = 0; i < op->n_in; i++) {
        tensor_unref(local[i]);
    }
    return r;
}

/* A float times a number: what is decided depends on the number's sign alone, and programs multiply by ever new
 * ones. */
static bool has_factor(uint64_t id, const mesh_dtensor *x)
{
    return id == OP_mul_scalar && dtype_kind(x->dtype) == DTYPE_FLOAT;
}

static double sign_of_factor(double v)
{
    return isfinite(v) ? (double)((v > 0) - (v < 0)) : (double)INFINITY;
}

static int recall_or_decide(const struct op_row *op, uint64_t id, mesh_dtensor *const *in, const struct op_attr *attr,
                            struct decision *ret_decision)
{
    static const struct op_attr none;
    int r = check_inputs(op, id, in);
    struct signature s;
    if (r < 0) {
        return r;
    }
    struct dtensor_state *st = in[0]->mesh->state;
    attr = attr ? attr : &none;
    if (attr->shape.ndim < 0 || attr->shape.ndim > MESH_MAX_NDIM) {
        return err_set(MESH_ESHAPE, "%s: a shape of %d dims; at most %d", op->name, attr->shape.ndim, MESH_MAX_NDIM);
    }
    if (has_factor(id, in[0])) {
        struct op_attr kind = *attr;
        kind.value[0] = sign_of_factor(attr->value[0]);
        sign_all(id, op->n_in, in, &kind, &s);
    } else {
        sign_all(id, op->n_in, in, attr, &s);
    }
    if (memory_recall(st, s.word, s.n * 8, ret_decision, sizeof *ret_decision)) {
        ret_decision->attr.value[0] = has_factor(id, in[0]) ? attr->value[0] : ret_decision->attr.value[0];
        return 0;
    }
    r = decide(op, in, attr, ret_decision);
    if (r == 0) {
        memory_store(st, s.word, s.n * 8, ret_decision, sizeof *ret_decision);
    }
    return r;
}

static int refuse_exchange(const struct op_row *op, const mesh_dtensor *x, const struct decision *d)
{
    char is[DTENSOR_TEXT_BYTES], to[SHAPE_TEXT_BYTES];
    return err_set(MESH_EPLACEMENT,
                   "%s: elements of %.150s would move between ranks to make it %s: call mesh_redistribute() yourself, "
                   "explicit mode is on",
                   op->name, dtensor_text(x, is, sizeof is), shape_text(d->out[0], to, sizeof to));
}

/* As run(), under what this thread asked to see or to refuse. */
static int run_watched(const struct op_row *op, const struct decision *d, mesh_dtensor *const *in,
                       mesh_dtensor **ret_out)
{
    const char *outer = watch.op;
    int r = 0;
    for (int i = 0; r == 0 && watch.is_explicit && i < op->n_in; i++) {
        r = in[i] ? watch_implicit(op->name, i + 1, in[i], &d->choice.in[i]) : 0;
    }
    if (r == 0 && watch.is_explicit && d->is_exchanged) {
        r = refuse_exchange(op, in[0], d);
    }
    watch.op = op->name;
    r = r < 0 ? r : run(op, d, in, ret_out);
    for (int o = 0; r == 0 && watch.checks_replicas && o < op->n_out; o++) {
        r = watch_replicas(op->name, ret_out[o]);
    }
    watch.op = outer;
    return r;
}

int op_apply_row(const struct op_row *op, uint64_t id, mesh_dtensor *const *in, const struct op_attr *attr,
                 mesh_dtensor **ret_out)
{
    struct decision d;
    int r = recall_or_decide(op, id, in, attr, &d);
    if (r < 0) {
        return r;
    }
    return watch_is_on() ? run_watched(op, &d, in, ret_out) : run(op, &d, in, ret_out);
}

int op_apply(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_out)
{
    return op_apply_row(&op_table[id], (uint64_t)id, in, attr, ret_out);
}

int op_foresee(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr, struct op_outcome *ret_outcome)
{
    struct decision d;
    int r = recall_or_decide(&op_table[id], (uint64_t)id, in, attr, &d);
    if (r == 0) {
        *ret_outcome = (struct op_outcome){ .shape = d.out[0], .dtype = d.out_dtype[0], .placements = d.choice.out[0] };
    }
    return r;
}
