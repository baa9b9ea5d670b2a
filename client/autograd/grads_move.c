/* client/autograd/grads_move.c - gradients of views and of sums: each is the other's adjoint.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/grads.h"

#include "tensor/shape.h"

static void transpose(struct grad_call *c)
{
    c->dx[0] = grad_op1(OP_transpose, c->dy, &c->node->attr);
}
const struct gradient g_transpose = { transpose, { 0 } };

static void reshape(struct grad_call *c)
{
    c->dx[0] = grad_reshape(c->dy, c->node->in_shape[0]);
}
const struct gradient g_reshape = { reshape, { 0 } };

static void expand(struct grad_call *c)
{
    c->dx[0] = grad_sum_to(c->dy, c->node->in_shape[0]);
}
const struct gradient g_expand = { expand, { 0 } };

/* dy spread over the dims that were summed. */
static mesh_dtensor *spread(const struct grad_call *c)
{
    mesh_shape x = c->node->in_shape[0], kept = x;
    for (int d = 0; d < x.ndim; d++) {
        if ((c->node->attr.dims & (1U << d)) != 0) {
            kept.dim[d] = 1;
        }
    }
    struct op_attr attr = { .shape = x };
    mesh_dtensor *dy = grad_reshape(c->dy, kept);
    return dy == NULL || shape_equal(kept, x) ? dy : grad_op1(OP_expand, dy, &attr);
}

static void sum(struct grad_call *c)
{
    c->dx[0] = spread(c);
}
const struct gradient g_sum = { sum, { 0 } };

static void mean(struct grad_call *c)
{
    c->dx[0] = grad_scale(spread(c), c->node->attr.value[0]);
}
const struct gradient g_mean = { mean, { 0 } };
