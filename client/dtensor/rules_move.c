/* client/dtensor/rules_move.c - rules of operators that put elements elsewhere: permute, flip, roll, cat, narrow,
 * select, pad, repeat.
 *
 * Dims that stay as they are may be split.  A range of a split dim need not be gathered: whoever has a piece of it puts
 * the piece in its place, the others 0, and the result is a pending sum; that moves less when the range is at most half
 * of the dim.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/rules.h"

#include <math.h>

#include "base/dtype.h"
#include "base/util.h"

static void split(int in_dim, int out_dim, struct rule_list *inout)
{
    struct rule r = rule_whole();
    r.in[0] = mesh_shard(in_dim);
    r.out[0] = mesh_shard(out_dim);
    rule_add(inout, &r);
}

static void sum_of_parts(const struct op_shapes *s, int dim, struct rule_list *inout)
{
    struct rule r = rule_whole();
    if (dtype_kind(s->in_dtype[0]) == DTYPE_BOOL) {
        return;
    }
    r.in[0] = mesh_shard(dim);
    r.out[0] = mesh_partial(MESH_SUM);
    rule_add(inout, &r);
}

void rule_permute(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    for (int d = 0; d < s->out[0].ndim; d++) {
        split((int)s->attr.shape.dim[d], d, inout);
    }
}

void rule_flip(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    for (int d = 0; d < s->in[0].ndim; d++) {
        if ((s->attr.dims >> d & 1U) == 0 || s->in[0].dim[d] <= 1) {
            split(d, d, inout);
        }
    }
}

static void split_other_dims(const struct op_shapes *s, struct rule_list *inout)
{
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (d != s->attr.dim[0]) {
            split(d, d, inout);
        }
    }
}

void rule_roll(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    split_other_dims(s, inout);
}

void rule_narrow(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    int d = s->attr.dim[0];
    split_other_dims(s, inout);
    if (s->attr.mode != 0) {
        split(d, d, inout);
    } else if (2 * s->out[0].dim[d] <= s->in[0].dim[d]) {
        sum_of_parts(s, d, inout);
    }
}

void rule_select(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    int gone = s->attr.dim[0];
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (d != gone) {
            split(d, d < gone ? d : d - 1, inout);
        }
    }
    sum_of_parts(s, gone, inout);
}

/* All inputs pending op, and so the result. */
static void all_pending(const struct op_shapes *s, mesh_reduce_op op, struct rule_list *inout)
{
    struct rule r = rule_whole();
    for (int i = 0; i < s->n_in; i++) {
        r.in[i] = s->has[i] ? mesh_partial(op) : r.in[i];
    }
    r.out[0] = mesh_partial(op);
    rule_add(inout, &r);
}

void rule_cat(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    static const mesh_reduce_op ops[] = { MESH_SUM, MESH_PROD, MESH_MAX, MESH_MIN };
    (void)parts;
    for (int d = 0; d < s->in[0].ndim; d++) {
        struct rule r = rule_whole();
        if (d == s->attr.dim[0]) {
            continue;
        }
        for (int i = 0; i < s->n_in; i++) {
            r.in[i] = s->has[i] ? mesh_shard(d) : r.in[i];
        }
        r.out[0] = mesh_shard(d);
        rule_add(inout, &r);
    }
    if (dtype_kind(s->in_dtype[0]) == DTYPE_BOOL) {
        return;
    }
    for (size_t k = 0; k < ARRAY_SIZE(ops); k++) {
        all_pending(s, ops[k], inout);
    }
    if (rules_is_float(s)) {
        all_pending(s, MESH_AVG, inout);
    }
}

static void follow(mesh_reduce_op op, struct rule_list *inout)
{
    struct rule r = rule_whole();
    r.in[0] = r.out[0] = mesh_partial(op);
    rule_add(inout, &r);
}

/* The padding of every part has the value v: 0 adds up to 0, and v is its own average, maximum and minimum. */
void rule_pad(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    double v = s->attr.value[0];
    (void)parts;
    split_other_dims(s, inout);
    if (dtype_kind(s->in_dtype[0]) == DTYPE_BOOL) {
        return;
    }
    if (fpclassify(v) == FP_ZERO) {
        follow(MESH_SUM, inout);
    }
    if (isfinite(v) && rules_is_float(s)) {
        follow(MESH_AVG, inout);
    }
    follow(MESH_MAX, inout);
    follow(MESH_MIN, inout);
}

void rule_repeat(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    int lead = s->out[0].ndim - s->in[0].ndim;
    (void)parts;
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (s->in[0].dim[d] == s->out[0].dim[d + lead]) {
            split(d, d + lead, inout);
        }
    }
}

void rule_repeat_backward(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    int lead = s->in[0].ndim - s->out[0].ndim;
    (void)parts;
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (d >= lead && s->in[0].dim[d] == s->out[0].dim[d - lead]) {
            split(d, d - lead, inout);
        } else {
            sum_of_parts(s, d, inout);
        }
    }
}
