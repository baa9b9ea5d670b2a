/* client/autograd/grads_index.c - gradients of operators that choose elements by numbers: what was taken from a place adds up there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/grads.h"

#include "dtensor/dtensor.h"

/* x for its layout alone: pending parts are as large as the whole, so they may as well be called whole, and need no reduction. */
static mesh_dtensor *layout_of(mesh_dtensor *x)
{
    mesh_placements p = x->placements;
    for (int d = 0; d < p.n; d++) {
        p.at[d] = p.at[d].kind == MESH_IS_PARTIAL ? mesh_replicate() : p.at[d];
    }
    return dtensor_new(x->mesh, x->shape, x->dtype, &p, tensor_ref(x->local));
}

static void take(struct grad_call *c)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { layout_of(c->node->in[0]), c->dy, c->node->in[1] };
    c->dx[0] = in[0] == NULL ? NULL : grad_op(OP_take_backward, in, &c->node->attr);
}
const struct gradient g_take = { take, { NEEDS_IN0 | NEEDS_IN1 } };

static void gather(struct grad_call *c)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { layout_of(c->node->in[0]), c->node->in[1], c->dy };
    struct op_attr attr = c->node->attr;
    attr.mode |= INDEX_FROM_ZERO;
    c->dx[0] = in[0] == NULL ? NULL : grad_op(OP_scatter_add, in, &attr);
}
const struct gradient g_gather = { gather, { NEEDS_IN0 | NEEDS_IN1 } };

static void scatter_add(struct grad_call *c)
{
    c->dx[0] = c->wants[0] ? c->dy : NULL;
    c->dx[2] = c->wants[2] ? grad_op2(OP_gather, c->dy, c->node->in[1], &c->node->attr) : NULL;
}
const struct gradient g_scatter_add = { scatter_add, { 0, 0, NEEDS_IN1 } };
