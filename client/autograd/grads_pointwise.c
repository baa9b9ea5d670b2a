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
    c->dx[0] = grad_op2(OP_relu_backward, c->dy, c->node->out, NULL); /* which is above 0 where the input is */
}
const struct gradient g_relu = { relu, { NEEDS_OUT } };

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

/* For a tie by half each: the slope by b is the slope by a with the inputs exchanged. */
static void extreme(struct grad_call *c, enum op_id backward)
{
    for (int i = 0; i < 2; i++) {
        if (c->wants[i]) {
            mesh_dtensor *in[OP_MAX_INPUTS] = { c->dy, c->node->in[i], c->node->in[1 - i] };
            c->dx[i] = to_input(c, i, grad_op(backward, in, NULL));
        }
    }
}

static void maximum(struct grad_call *c)
{
    extreme(c, OP_maximum_backward);
}
const struct gradient g_maximum = { maximum, { NEEDS_IN0 | NEEDS_IN1, NEEDS_IN0 | NEEDS_IN1 } };

static void minimum(struct grad_call *c)
{
    extreme(c, OP_minimum_backward);
}
const struct gradient g_minimum = { minimum, { NEEDS_IN0 | NEEDS_IN1, NEEDS_IN0 | NEEDS_IN1 } };

static void pow_(struct grad_call *c)
{
    static const enum op_id backward[] = { OP_pow_backward, OP_pow_backward_exponent };
    mesh_dtensor *in[OP_MAX_INPUTS] = { c->dy, c->node->in[0], c->node->in[1] };
    for (int i = 0; i < 2; i++) {
        if (c->wants[i]) {
            c->dx[i] = to_input(c, i, grad_op(backward[i], in, NULL));
        }
    }
}
const struct gradient g_pow = { pow_, { NEEDS_IN0 | NEEDS_IN1, NEEDS_IN0 | NEEDS_IN1 } };

static void lerp(struct grad_call *c)
{
    double weight = c->node->attr.value[0];
    for (int i = 0; i < 2; i++) {
        if (c->wants[i]) {
            c->dx[i] = to_input(c, i, grad_scale(c->dy, i == 0 ? 1 - weight : weight));
        }
    }
}
const struct gradient g_lerp = { lerp, { 0 } };

/* dy where the mask is false, else 0. */
static mesh_dtensor *unmasked(mesh_dtensor *dy, mesh_dtensor *mask)
{
    return grad_op2(OP_masked_fill, dy, mask, &(struct op_attr){ .value = { 0 } });
}

static void where(struct grad_call *c)
{
    mesh_dtensor *is_a = c->node->in[0];
    if (c->wants[1]) {
        c->dx[1] = to_input(c, 1, unmasked(c->dy, grad_op1(OP_logical_not, is_a, NULL)));
    }
    if (c->wants[2]) {
        c->dx[2] = to_input(c, 2, unmasked(c->dy, is_a));
    }
}
const struct gradient g_where = { where, { 0, NEEDS_IN0, NEEDS_IN0 } };

static void masked_fill(struct grad_call *c)
{
    if (c->wants[0]) {
        c->dx[0] = to_input(c, 0, unmasked(c->dy, c->node->in[1]));
    }
}
const struct gradient g_masked_fill = { masked_fill, { NEEDS_IN1 } };

static void tril(struct grad_call *c)
{
    c->dx[0] = grad_op1(OP_tril, c->dy, &c->node->attr);
}
const struct gradient g_tril = { tril, { 0 } };

static void triu(struct grad_call *c)
{
    c->dx[0] = grad_op1(OP_triu, c->dy, &c->node->attr);
}
const struct gradient g_triu = { triu, { 0 } };

/* --- functions of one number: tensor/unary.def -------------------------------------------------------------------- */

#define UNARY(name, shape, rule, via, value, slope)                                                                    \
    static void slope_of_##name(struct grad_call *c)                                                                   \
    {                                                                                                                  \
        mesh_dtensor *a = NEEDS_##via == NEEDS_OUT ? c->node->out : c->node->in[0];                                    \
        c->dx[0] = grad_op2(OP_##name##_backward, c->dy, a, &c->node->attr);                                           \
    }                                                                                                                  \
    const struct gradient g_##name = { slope_of_##name, { NEEDS_##via } };
#include "tensor/unary.def"
