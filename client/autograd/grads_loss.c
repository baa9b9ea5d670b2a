/* client/autograd/grads_loss.c - gradients of softmax and of the cross entropy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/grads.h"

static void softmax(struct grad_call *c)
{
    c->dx[0] = grad_op2(OP_softmax_backward, c->dy, c->node->out, &c->node->attr);
}
const struct gradient g_softmax = { softmax, { NEEDS_OUT } };

static void log_softmax(struct grad_call *c)
{
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
