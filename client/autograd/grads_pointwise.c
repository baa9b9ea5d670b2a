/* client/autograd/grads_pointwise.c - gradients of the elementwise operators, summed where an input was broadcast.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/grads.h"

static mesh_dtensor *to_input(const struct grad_call *c, int i, mesh_dtensor *dx)
{
    return grad_sum_to(dx, c->node->in_shape[i]);
}

static void add(struct grad_call *c)
{
    if (c->wants[0]) {
        c->dx[0] = to_input(c, 0, c->dy);
    }
    if (c->wants[1]) {
        c->dx[1] = to_input(c, 1, c->dy);
    }
}
const struct gradient g_add = { add, { 0 } };

static void sub(struct grad_call *c)
{
    if (c->wants[0]) {
        c->dx[0] = to_input(c, 0, c->dy);
    }
    if (c->wants[1]) {
        c->dx[1] = grad_op1(OP_neg, to_input(c, 1, c->dy), NULL);
    }
}
const struct gradient g_sub = { sub, { 0 } };

static void mul(struct grad_call *c)
{
    for (int i = 0; i < 2; i++) {
        if (c->wants[i]) {
            c->dx[i] = to_input(c, i, grad_op2(OP_mul, c->dy, c->node->in[1 - i], NULL));
        }
    }
}
const struct gradient g_mul = { mul, { NEEDS_IN1, NEEDS_IN0 } };

/* d(a/b) = da / b - db (a/b) / b */
static void div_(struct grad_call *c)
{
    mesh_dtensor *quotient = grad_op2(OP_div, c->dy, c->node->in[1], NULL);
    if (c->wants[0]) {
        c->dx[0] = to_input(c, 0, quotient);
    }
    if (c->wants[1]) {
        mesh_dtensor *product = grad_op2(OP_mul, quotient, c->node->out, NULL);
        c->dx[1] = grad_op1(OP_neg, to_input(c, 1, product), NULL);
    }
}
const struct gradient g_div = { div_, { NEEDS_IN1, NEEDS_IN1 | NEEDS_OUT } };

static void neg(struct grad_call *c)
{
    c->dx[0] = grad_op1(OP_neg, c->dy, NULL);
}
const struct gradient g_neg = { neg, { 0 } };

static void mul_scalar(struct grad_call *c)
{
    c->dx[0] = grad_scale(c->dy, c->node->attr.value[0]);
}
const struct gradient g_mul_scalar = { mul_scalar, { 0 } };

static void add_scalar(struct grad_call *c)
{
    c->dx[0] = c->dy;
}
const struct gradient g_add_scalar = { add_scalar, { 0 } };

static void relu(struct grad_call *c)
{
    c->dx[0] = grad_op2(OP_relu_backward, c->dy, c->node->in[0], NULL);
}
const struct gradient g_relu = { relu, { NEEDS_IN0 } };

static void gelu(struct grad_call *c)
{
    c->dx[0] = grad_op2(OP_gelu_backward, c->dy, c->node->in[0], &c->node->attr);
}
const struct gradient g_gelu = { gelu, { NEEDS_IN0 } };

static void tanh_(struct grad_call *c)
{
    c->dx[0] = grad_op2(OP_tanh_backward, c->dy, c->node->out, NULL);
}
const struct gradient g_tanh = { tanh_, { NEEDS_OUT } };
