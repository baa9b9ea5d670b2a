/* client/autograd/grads_matmul.c - gradients of the matrix products:   y = a b:  da = dy b', db = a' dy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/grads.h"

/* A 1-d operand counts as one row (a) or one column (b); here as a matrix, so that one formula serves all. */
static mesh_shape as_matrix(mesh_shape s, bool is_column)
{
    if (s.ndim != 1) {
        return s;
    }
    return is_column ? MESH_SHAPE(s.dim[0], 1) : MESH_SHAPE(1, s.dim[0]);
}

/* dy with the dims back that a 1-d operand does not leave in the result. */
static mesh_dtensor *result_as_matrix(const struct grad_call *c)
{
    mesh_shape a = c->node->in_shape[0], b = c->node->in_shape[1], y = c->dy->shape;
    if (a.ndim == 1) { /* [*, n] -> [*, 1, n]; y has at least room for it: operands have at most MESH_MAX_NDIM dims */
        int last = b.ndim == 1 ? y.ndim : y.ndim - 1;
        y.dim[y.ndim] = last < y.ndim ? y.dim[last] : 1;
        y.dim[last] = 1;
        y.ndim++;
    }
    if (b.ndim == 1) {
        y.dim[y.ndim++] = 1;
    }
    return grad_reshape(c->dy, y);
}

static mesh_dtensor *gradient_of_a(const struct grad_call *c, mesh_dtensor *dy)
{
    mesh_shape a = c->node->in_shape[0];
    mesh_dtensor *b = grad_reshape(c->node->in[1], as_matrix(c->node->in_shape[1], true));
    mesh_dtensor *da = grad_op2(OP_matmul, dy, grad_transpose(b), NULL);
    return grad_reshape(grad_sum_to(da, as_matrix(a, false)), a);
}

static mesh_dtensor *gradient_of_b(const struct grad_call *c, mesh_dtensor *dy)
{
    mesh_shape b = c->node->in_shape[1];
    mesh_dtensor *a = grad_reshape(c->node->in[0], as_matrix(c->node->in_shape[0], false));
    if (b.ndim <= 2) { /* one matrix for all leading dims of a: the sum over them is part of the product */
        return grad_reshape(grad_op2(OP_linear_grad_weight, a, dy, NULL), b);
    }
    mesh_dtensor *db = grad_op2(OP_matmul, grad_transpose(a), dy, NULL);
    return grad_sum_to(db, b);
}

static void matmul(struct grad_call *c)
{
    mesh_dtensor *dy = result_as_matrix(c);
    if (c->wants[0]) {
        c->dx[0] = gradient_of_a(c, dy);
    }
    if (c->wants[1]) {
        c->dx[1] = gradient_of_b(c, dy);
    }
}
const struct gradient g_matmul = { matmul, { NEEDS_IN1, NEEDS_IN0 } };

/* dy as it is on a mesh dim that y = x w' is split over by its inputs: whatever is pending there is reduced once, and
 * not by each of the gradients. */
static mesh_dtensor *reduced_once(const struct grad_call *c)
{
    mesh_placements p = c->dy->placements;
    const mesh_placements *x = &c->node->in_placements[0], *w = &c->node->in_placements[1];
    int last = c->node->in_shape[0].ndim - 1;
    for (int d = 0; d < p.n; d++) {
        if (p.at[d].kind != MESH_IS_PARTIAL || !c->wants[0] || !c->wants[1]) {
            continue;
        }
        if (x->at[d].kind == MESH_IS_SHARD && x->at[d].dim < last) {
            p.at[d] = x->at[d];
        } else if (w->at[d].kind == MESH_IS_SHARD) {
            p.at[d] = w->at[d].dim == 0 ? mesh_shard(last) : mesh_replicate();
        }
    }
    return dtensor_redistribute(c->dy, &p);
}

static void linear(struct grad_call *c)
{
    mesh_dtensor *dy = reduced_once(c);
    if (c->wants[0]) {
        c->dx[0] = grad_op2(OP_linear_grad_input, dy, c->node->in[1], NULL);
    }
    if (c->wants[1]) {
        c->dx[1] = grad_op2(OP_linear_grad_weight, dy, c->node->in[0], NULL);
    }
    if (c->wants[2]) {
        c->dx[2] = grad_sum_to(dy, c->node->in_shape[2]);
    }
}
const struct gradient g_linear = { linear, { NEEDS_IN1, NEEDS_IN0, 0 } };
