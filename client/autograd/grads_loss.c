/* client/autograd/grads_loss.c - gradients of softmax and of the cross entropy.
 *
 * Where the classes are sharded, what runs over a line is a sum over its shards.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/sharded.h"

static uint32_t line_of(const struct grad_call *c)
{
    return UINT32_C(1) << c->node->attr.dim[0];
}

/* dx = y (dy - sum(dy y)) */
static void softmax(struct grad_call *c)
{
    mesh_dtensor *y = c->node->out;
    if (is_sharded_along(y, line_of(c))) {
        mesh_dtensor *dy = dtensor_redistribute(c->dy, &y->placements), *both = grad_op2(OP_mul, dy, y, NULL);
        mesh_dtensor *sum = both == NULL ? NULL : sum_kept(both, line_of(c));
        c->dx[0] = grad_op2(OP_mul, y, grad_op2(OP_sub, dy, sum, NULL), NULL);
        return;
    }
    c->dx[0] = grad_op2(OP_softmax_backward, c->dy, c->node->out, &c->node->attr);
}
const struct gradient g_softmax = { softmax, { NEEDS_OUT } };

/* dx = dy - exp(y) sum(dy) */
static void log_softmax(struct grad_call *c)
{
    mesh_dtensor *y = c->node->out;
    if (is_sharded_along(y, line_of(c))) {
        mesh_dtensor *dy = dtensor_redistribute(c->dy, &y->placements);
        mesh_dtensor *sum = dy == NULL ? NULL : sum_kept(dy, line_of(c));
        mesh_dtensor *share = grad_op2(OP_mul, grad_op1(OP_exp, y, NULL), sum, NULL);
        c->dx[0] = grad_op2(OP_sub, dy, share, NULL);
        return;
    }
    c->dx[0] = grad_op2(OP_log_softmax_backward, c->dy, c->node->out, &c->node->attr);
}
const struct gradient g_log_softmax = { log_softmax, { NEEDS_OUT } };

/* By the logits; the target is a number of a class.  dy is the factor of every row, or of each. */
static void cross_entropy(struct grad_call *c)
{
    const struct grad_node *node = c->node;
    mesh_dtensor *in[OP_MAX_INPUTS] = { c->dy, node->in[0], node->in[1] };
    c->dx[0] = grad_op(OP_cross_entropy_grad, in, &node->attr);
}
const struct gradient g_cross_entropy_rows = { cross_entropy, { NEEDS_IN0 | NEEDS_IN1 } };
const struct gradient g_cross_entropy_sum = { cross_entropy, { NEEDS_IN0 | NEEDS_IN1 } };

/* By the log-probabilities. */
static void nll_loss(struct grad_call *c)
{
    const struct grad_node *node = c->node;
    struct op_attr attr = node->attr;
    mesh_dtensor *in[OP_MAX_INPUTS] = { node->in[0], c->dy, node->in[1] };
    attr.mode = 0;
    c->dx[0] = grad_op(OP_nll_grad, in, &attr);
}
const struct gradient g_nll_loss = { nll_loss, { NEEDS_IN0 | NEEDS_IN1 } };

/* By logits whose classes are sharded; in[2] are the log-probabilities.  Nothing is sent. */
static void sharded_cross_entropy(struct grad_call *c)
{
    const struct grad_node *node = c->node;
    struct op_attr attr = node->attr;
    mesh_dtensor *in[OP_MAX_INPUTS] = { node->in[2], c->dy, node->in[1] };
    attr.mode = 1;
    c->dx[0] = grad_op(OP_nll_grad, in, &attr);
}
const struct gradient g_sharded_cross_entropy = { sharded_cross_entropy, { NEEDS_IN1 | NEEDS_IN2 } };
