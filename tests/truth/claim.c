/* tests/truth/claim.c - runs a kernel on every rank's parts and joins what comes out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/claim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "dtensor/attention.h"
#include "tensor/shape.h"

#define TOLERANCE 1e-11 /* f64: a few dozen operations, each within 2^-53 */

static struct cut cut_of(const struct claim *c, const mesh_placements *p)
{
    struct cut cut = { .ndim = c->ndim, .p = *p };
    memcpy(cut.size, c->size, (size_t)c->ndim * sizeof cut.size[0]);
    return cut;
}

static bool takes_result_shape(enum op_id op)
{
    return op == OP_reshape || op == OP_expand || op == OP_sum_to || op == OP_repeat || op == OP_repeat_backward ||
           op == OP_conv2d_grad_input || op == OP_conv2d_grad_weight;
}

bool claim_is_of_whole(enum op_id op)
{
    return op == OP_attention || op == OP_attention_grad_q || op == OP_attention_grad_kv || op == OP_conv2d ||
           op == OP_conv2d_grad_input || op == OP_conv2d_grad_weight || op == OP_narrow || op == OP_select ||
           op == OP_amax || op == OP_amin || op == OP_index_of || op == OP_repeat_backward;
}

static void find_offset(const struct claim *c, int rank, struct kernel_call *inout)
{
    struct cut cut = cut_of(c, &c->in[0]);
    struct box b = { .ndim = 0 };
    int at[MESH_MAX_MESH_NDIM];
    cut_coordinate(&cut, rank, at);
    layout_box(c->trial->shapes.in[0], c->size, at, &c->in[0], &b);
    memcpy(inout->offset, b.offset, sizeof inout->offset);
}

static void find_attr(const struct claim *c, int rank, struct op_attr *inout)
{
    struct cut cut = cut_of(c, &c->in[0]);
    int at[MESH_MAX_MESH_NDIM];
    cut_coordinate(&cut, rank, at);
    attention_attr_at(c->trial->op, &c->trial->shapes, &(struct rule_mesh){ c->ndim, c->size }, at, c->in, inout);
}

#define SLACK 1024 /* elements */

/* Kernels trust that shapes agree: a guess gets tensors with room behind them, full of what no right result has. */
static struct mesh_tensor *tensor_with_slack(mesh_shape s, mesh_dtype t)
{
    struct mesh_tensor *x = tensor_new(MESH_SHAPE(shape_numel(s) + SLACK), t);
    parts_must(x != NULL, "no memory");
    memset(x->data, 0xFF, tensor_bytes(x)); /* NaN, or -1 */
    x->n = shape_numel(s);
    x->shape = s;
    return x;
}

static struct mesh_tensor *with_slack(struct mesh_tensor *x)
{
    struct mesh_tensor *y = tensor_with_slack(x->shape, x->dtype);
    memcpy(y->data, x->data, tensor_bytes(x));
    tensor_unref(x);
    return y;
}

struct local { /* one rank's call */
    struct op_shapes shapes;
    struct op_attr attr;
    struct kernel_call call;
};

static void cut_tensors(const struct claim *c, int rank, struct local *inout, struct mesh_tensor **ret_out)
{
    const struct trial *t = c->trial;
    int at[MESH_MAX_MESH_NDIM];
    for (int i = 0; i < t->sample->n_in; i++) {
        struct cut cut = cut_of(c, &c->in[i]);
        cut.salt = i;
        struct mesh_tensor *x = cut_part(t->in[i], &cut, rank, c->split);
        x = c->is_guess ? with_slack(x) : x;
        inout->call.in[i] = x;
        inout->shapes.has[i] = true;
        inout->shapes.in[i] = x->shape;
        inout->shapes.in_dtype[i] = x->dtype;
    }
    for (int o = 0; o < t->op->n_out; o++) {
        struct cut cut = cut_of(c, &c->out[o]);
        cut_coordinate(&cut, rank, at);
        mesh_shape part = layout_local_shape(t->shapes.out[o], c->size, at, &c->out[o]);
        inout->call.out[o] = ret_out[o] = (c->is_guess ? tensor_with_slack : tensor_new)(part, t->shapes.out_dtype[o]);
    }
}

static bool fits_shapes(const struct claim *c, struct local *l)
{
    const struct trial *t = c->trial;
    if (!c->is_guess && claim_is_of_whole(t->sample->op)) {
        return true;
    }
    bool fits = t->op->shape(&l->shapes) == 0;
    for (int o = 0; fits && o < t->op->n_out; o++) {
        fits = shape_equal(l->shapes.out[o], l->call.out[o]->shape);
    }
    return fits;
}

/* The kernel on one rank's parts; false when they do not even fit together. */
static bool run_rank(const struct claim *c, int rank, struct mesh_tensor **ret_out)
{
    const struct trial *t = c->trial;
    struct local l = { .shapes = { .name = t->op->name, .n_in = t->op->n_in, .n_out = t->op->n_out },
                       .attr = t->shapes.attr };
    cut_tensors(c, rank, &l, ret_out);
    if (takes_result_shape(t->sample->op)) {
        l.attr.shape = ret_out[0]->shape;
    }
    l.shapes.attr = l.attr;
    l.call.attr = &l.attr;
    find_attr(c, rank, &l.attr);
    find_offset(c, rank, &l.call);
    bool fits = fits_shapes(c, &l) && kernel_run(t->op->kernel, &l.call) == 0;
    for (int i = 0; i < t->sample->n_in; i++) {
        tensor_unref((struct mesh_tensor *)l.call.in[i]);
    }
    return fits;
}

static bool joins_to(const struct claim *c, struct mesh_tensor *const *parts, int o)
{
    struct cut cut = cut_of(c, &c->out[o]);
    bool same = false;
    double *got = join_parts(parts, c->trial->shapes.out[o], &cut, &same);
    const struct mesh_tensor *want = c->trial->out[o];
    double tolerance = tolerance_of(trial_precision(c->trial), TOLERANCE);
    for (int64_t i = 0; same && i < want->n; i++) {
        same = numbers_are_near(number_wrapped(got[i], want->dtype), tensor_number(want, i), tolerance);
    }
    free(got);
    return same;
}

bool claim_holds(const struct claim *c)
{
    struct mesh_tensor *parts[OP_MAX_OUTPUTS][PARTS_MAX_RANKS] = { { NULL } };
    struct cut any = { .ndim = c->ndim };
    memcpy(any.size, c->size, (size_t)c->ndim * sizeof any.size[0]);
    int n_ranks = cut_ranks(&any), n_out = c->trial->op->n_out;
    bool is_right = true;
    for (int rank = 0; is_right && rank < n_ranks; rank++) {
        struct mesh_tensor *out[OP_MAX_OUTPUTS] = { NULL };
        is_right = run_rank(c, rank, out);
        for (int o = 0; o < n_out; o++) {
            parts[o][rank] = out[o];
        }
    }
    for (int o = 0; is_right && o < n_out; o++) {
        is_right = joins_to(c, parts[o], o);
    }
    for (int o = 0; o < n_out; o++) {
        for (int rank = 0; rank < n_ranks; rank++) {
            tensor_unref(parts[o][rank]);
        }
    }
    return is_right;
}

const char *claim_text(const struct claim *c, char *buf, size_t cap)
{
    const struct trial *t = c->trial;
    char one[96], shape[SHAPE_TEXT_BYTES];
    size_t at = (size_t)snprintf(buf, cap, "%s", t->op->name);
    for (int i = 0; i < t->sample->n_in; i++) {
        at += (size_t)snprintf(buf + at, cap - at, " %s%s%s", dtype_name(t->in[i]->dtype),
                               shape_text(t->in[i]->shape, shape, sizeof shape),
                               mesh_placements_text(c->in[i], one, sizeof one));
    }
    for (int o = 0; o < t->op->n_out; o++) {
        at += (size_t)snprintf(buf + at, cap - at, " -> %s", mesh_placements_text(c->out[o], one, sizeof one));
    }
    for (int m = 0; m < c->ndim; m++) {
        at += (size_t)snprintf(buf + at, cap - at, m == 0 ? " on %d" : "x%d", c->size[m]);
    }
    snprintf(buf + at, cap - at, ", split %d", (int)c->split);
    return buf;
}

void claim_add_rule(struct claim *c, const struct rule *r)
{
    int m = c->ndim++;
    for (int i = 0; i < OP_MAX_INPUTS; i++) {
        c->in[i].n = c->ndim;
        c->in[i].at[m] = r->in[i];
    }
    for (int o = 0; o < OP_MAX_OUTPUTS; o++) {
        c->out[o].n = c->ndim;
        c->out[o].at[m] = r->out[o];
    }
}

bool claim_is_layout(const struct claim *c)
{
    const struct trial *t = c->trial;
    for (int i = 0; i < t->op->n_in; i++) {
        if (placements_mix_reductions(&c->in[i])) {
            return false;
        }
    }
    for (int o = 0; o < t->op->n_out; o++) {
        if (placements_mix_reductions(&c->out[o])) {
            return false;
        }
    }
    return rules_fit_together(t->op->rule.of, &t->shapes, &(struct rule_mesh){ c->ndim, c->size }, c->in, c->out);
}
