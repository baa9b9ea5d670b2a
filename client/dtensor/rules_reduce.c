/* client/dtensor/rules_reduce.c - rules of reductions, of their pieces, and of normalisation.
 *
 * A dim that stays may be split.  A dim that goes may be split where the parts' results complete each other: then the
 * result is pending.  Where they do not (a variance, say), the operator is put together from pieces that do; see
 * autograd/sharded.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/rules.h"

#include "base/dtype.h"
#include "base/util.h"

static bool goes(const struct op_shapes *s, int d)
{
    return (s->attr.dims >> d & 1U) != 0;
}

/* pending: of each output when a dim that goes is split; NULL: such a dim is whole.  All inputs are split along a dim
 * that stays, only the first along one that goes (the others have extent 1 there). */
static void reduction(const struct op_shapes *s, const mesh_reduce_op *pending, struct rule_list *inout)
{
    int to = 0;
    for (int d = 0; d < s->in[0].ndim; d++) {
        struct rule r = rule_whole();
        for (int i = 0; i < s->n_in; i++) {
            r.in[i] = i == 0 || !goes(s, d) ? mesh_shard(d) : mesh_replicate();
        }
        for (int o = 0; o < s->n_out; o++) {
            r.out[o] = !goes(s, d) ? mesh_shard(to) : (pending != NULL ? mesh_partial(pending[o]) : mesh_replicate());
        }
        if (!goes(s, d) || pending != NULL) {
            rule_add(inout, &r);
        }
        to += !goes(s, d) || s->attr.keepdim;
    }
}

/* f of pending parts is pending alike: the reduction is of the same kind. */
static void follow(mesh_reduce_op op, struct rule_list *inout)
{
    struct rule r = rule_whole();
    r.in[0] = r.out[0] = mesh_partial(op);
    rule_add(inout, &r);
}

void rule_amax(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    reduction(s, (mesh_reduce_op[]){ MESH_MAX }, inout);
    follow(MESH_MAX, inout);
}

void rule_amin(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    reduction(s, (mesh_reduce_op[]){ MESH_MIN }, inout);
    follow(MESH_MIN, inout);
}

/* Integers that become wider would wrap too early. */
void rule_prod(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    reduction(s, (mesh_reduce_op[]){ MESH_PROD }, inout);
    if (s->in_dtype[0] == s->out_dtype[0]) {
        follow(MESH_PROD, inout);
    }
}

void rule_nonzero_prod(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    reduction(s, (mesh_reduce_op[]){ MESH_PROD, MESH_SUM }, inout);
}

void rule_all(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    reduction(s, (mesh_reduce_op[]){ MESH_MIN }, inout);
    if (dtype_kind(s->in_dtype[0]) == DTYPE_BOOL) {
        follow(MESH_MIN, inout);
    }
}

void rule_any(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    reduction(s, (mesh_reduce_op[]){ MESH_MAX }, inout);
    if (dtype_kind(s->in_dtype[0]) == DTYPE_BOOL) {
        follow(MESH_MAX, inout);
    }
}

void rule_sums(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    reduction(s, (mesh_reduce_op[]){ MESH_SUM, MESH_SUM }, inout);
}

void rule_lowest(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    reduction(s, (mesh_reduce_op[]){ MESH_MIN }, inout);
}

void rule_reduce_whole(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    reduction(s, NULL, inout);
}

/* x [..., normalized dims], then weight and bias of the normalized dims: the leading dims may be split. */
void rule_normalize(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    for (int d = 0; d < s->in[0].ndim - (int)s->attr.index[0]; d++) {
        struct rule r = rule_whole();
        r.in[0] = r.out[0] = mesh_shard(d);
        rule_add(inout, &r);
    }
}

/* dy and x, then perhaps weight: as above; the gradient of the weight is summed over the leading dims. */
void rule_normalize_grad(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    for (int d = 0; d < s->in[1].ndim - (int)s->attr.index[0]; d++) {
        struct rule r = rule_whole();
        r.in[0] = r.in[1] = mesh_shard(d);
        r.out[0] = s->n_in == 3 ? mesh_shard(d) : mesh_partial(MESH_SUM);
        rule_add(inout, &r);
    }
}

static int class_dim(mesh_shape x)
{
    return x.ndim == 1 ? 0 : 1;
}

/* Row dim t of the target is dim t or t + 1 of the log-probabilities. */
static int row_dim(int t)
{
    return t == 0 ? 0 : t + 1;
}

/* Input i pending, and so the first result: the loss is linear in it.  What it is divided by is counted alike on all
 * ranks. */
static void linear_in(int i, struct rule_list *inout)
{
    static const mesh_reduce_op ops[] = { MESH_SUM, MESH_AVG };
    for (size_t k = 0; k < ARRAY_SIZE(ops); k++) {
        struct rule r = rule_whole();
        r.in[i] = r.out[0] = mesh_partial(ops[k]);
        rule_add(inout, &r);
    }
}

/* Rows or classes may be split: each class's shard adds what it knows. */
void rule_nll_loss(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    struct rule r = rule_whole();
    for (int t = 0; t < s->in[1].ndim; t++) {
        r.in[0] = mesh_shard(row_dim(t));
        r.in[1] = mesh_shard(t);
        for (int o = 0; o < s->n_out; o++) {
            r.out[o] = s->n_out == 1 ? mesh_shard(t) : mesh_partial(MESH_SUM);
        }
        rule_add(inout, &r);
    }
    r = rule_whole();
    r.in[0] = mesh_shard(class_dim(s->in[0]));
    for (int o = 0; o < s->n_out; o++) {
        r.out[o] = mesh_partial(MESH_SUM);
    }
    rule_add(inout, &r);
    linear_in(0, inout);
}

void rule_nll_grad(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    struct rule r = rule_whole();
    for (int t = 0; t < s->in[2].ndim; t++) {
        r.in[0] = r.out[0] = mesh_shard(row_dim(t));
        r.in[1] = s->in[1].ndim == 0 ? mesh_replicate() : mesh_shard(t);
        r.in[2] = mesh_shard(t);
        rule_add(inout, &r);
    }
    r = rule_whole();
    r.in[0] = r.out[0] = mesh_shard(class_dim(s->in[0]));
    rule_add(inout, &r);
    linear_in(1, inout);
}
