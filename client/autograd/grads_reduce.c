/* client/autograd/grads_reduce.c - gradients of reductions, scans and sorts.
 *
 * dy and the result y are brought to x's shape with extent 1 where dims went; the rest broadcasts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/sharded.h"

#include "autograd/apply.h"
#include "dtensor/along_sort.h"

static mesh_dtensor *kept(const struct grad_call *c, mesh_dtensor *y)
{
    return grad_reshape(y, kept_shape(c->node->in_shape[0], c->node->attr.dims));
}

/* Equal elements share alike. */
static void extreme(struct grad_call *c)
{
    mesh_dtensor *x = completed(c->node->in[0]);
    mesh_dtensor *is_best = grad_op2(OP_equal_mask, x, kept(c, completed(c->node->out)), NULL);
    mesh_dtensor *share = grad_op2(OP_div, kept(c, c->dy), sum_kept(is_best, c->node->attr.dims), NULL);
    c->dx[0] = grad_op2(OP_mul, is_best, share, NULL);
}
const struct gradient g_amax = { extreme, { NEEDS_IN0 | NEEDS_OUT } };
const struct gradient g_amin = { extreme, { NEEDS_IN0 | NEEDS_OUT } };

/* dx = dy times the product of the others, from the product of what is not 0 and the number of zeros. */
static void prod(struct grad_call *c)
{
    mesh_dtensor *x = completed(c->node->in[0]), *in[OP_MAX_INPUTS] = { x }, *out[OP_MAX_OUTPUTS];
    struct op_attr attr = { .dims = c->node->attr.dims, .keepdim = 1 };
    if (x == NULL || apply_plain(OP_nonzero_prod, in, &attr, out) < 0) {
        return;
    }
    in[0] = grad_op2(OP_mul, kept(c, c->dy), completed(out[0]), NULL);
    in[1] = x;
    in[2] = completed(out[1]);
    c->dx[0] = in[0] == NULL || in[2] == NULL ? NULL : grad_op(OP_prod_share, in, NULL);
}
const struct gradient g_prod = { prod, { NEEDS_IN0 } };

/* dx = dy 2 (x - mean) / (n - correction) */
static void var(struct grad_call *c)
{
    mesh_dtensor *x = completed(c->node->in[0]), *mean = x == NULL ? NULL : mean_kept(x, c->node->attr.dims);
    mesh_dtensor *slope = grad_scale(kept(c, c->dy), 2 * c->node->attr.value[1]);
    c->dx[0] = grad_op2(OP_mul, grad_op2(OP_sub, x, mean, NULL), slope, NULL);
}
const struct gradient g_var = { var, { NEEDS_IN0 } };

static void norm(struct grad_call *c)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { kept(c, c->dy), c->node->in[0], kept(c, c->node->out) };
    c->dx[0] = in[0] == NULL || in[2] == NULL ? NULL : grad_op(OP_norm_backward, in, &c->node->attr);
}
const struct gradient g_norm = { norm, { NEEDS_IN0 | NEEDS_OUT } };

/* dx = dy exp(x - y); a line of -inf has no slope. */
static void logsumexp(struct grad_call *c)
{
    struct op_attr attr = { .mode = 2 };
    mesh_dtensor *p = grad_op2(OP_exp_shifted, c->node->in[0], kept(c, c->node->out), &attr);
    c->dx[0] = grad_op2(OP_mul, kept(c, c->dy), p, NULL);
}
const struct gradient g_logsumexp = { logsumexp, { NEEDS_IN0 | NEEDS_OUT } };

static void cumsum(struct grad_call *c)
{
    struct op_attr attr = { .dim = { c->node->attr.dim[0] }, .mode = !c->node->attr.mode };
    c->dx[0] = cumsum_of(c->dy, &attr);
}
const struct gradient g_cumsum = { cumsum, { 0 } };

/* in[1] are the indices that were found. */
static void sort(struct grad_call *c)
{
    int dim = c->node->attr.dim[0];
    mesh_dtensor *found = c->node->in[1];
    struct op_attr attr = { .dim = { dim }, .index = { c->node->in_shape[0].dim[dim] } };
    if (is_sharded_along(found, UINT32_C(1) << dim)) { /* a sort that left the dim spread over ranks */
        mesh_dtensor *dy = dtensor_redistribute(c->dy, &found->placements);
        c->dx[0] = dy == NULL ? NULL : along_put(dy, found, dim);
    } else {
        c->dx[0] = grad_op2(OP_put_along, c->dy, found, &attr);
    }
}
const struct gradient g_sort = { sort, { NEEDS_IN1 } };

static void squared_difference(struct grad_call *c)
{
    mesh_dtensor *d = grad_op2(OP_sub, c->node->in[0], c->node->in[1], NULL);
    mesh_dtensor *slope = grad_scale(grad_op2(OP_mul, c->dy, d, NULL), 2);
    c->dx[0] = c->wants[0] ? grad_sum_to(slope, c->node->in_shape[0]) : NULL;
    c->dx[1] = c->wants[1] ? grad_op1(OP_neg, grad_sum_to(slope, c->node->in_shape[1]), NULL) : NULL;
}
const struct gradient g_squared_difference = { squared_difference, { NEEDS_IN0 | NEEDS_IN1, NEEDS_IN0 | NEEDS_IN1 } };
