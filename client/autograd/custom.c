/* client/autograd/custom.c - runs the functions of an operator that a program registered.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/custom.h"

#include "autograd/grads.h"
#include "base/error.h"
#include "base/util.h"
#include "core/scope.h"
#include "tensor/shape.h"

mesh_op_args custom_args(const struct op_attr *attr)
{
    return (mesh_op_args){ .value = { attr->value[0], attr->value[1] }, .index = { attr->index[0], attr->index[1] } };
}

int custom_kernel(const struct kernel_call *c)
{
    const struct mesh_op *op = c->user;
    mesh_op_call call = { .out = c->out[0], .args = custom_args(c->attr), .user = op->class_.user };
    for (int i = 0; i < op->class_.n_in; i++) {
        call.in[i] = (mesh_tensor *)(uintptr_t)c->in[i]; /* the public accessors take no const */
    }
    for (int d = 0; d < MESH_MAX_NDIM; d++) {
        call.offset[d] = c->offset[d];
    }
    int r = op->class_.kernel(&call);
    return r < 0 ? err_set_local(r, "%s: its kernel failed with %s", op->name, mesh_status_name((mesh_status)r)) : 0;
}

/* What the program gave for input i, summed down to its shape where the input was broadcast.  NULL: error set. */
static mesh_dtensor *fit(const struct mesh_op *op, const struct grad_node *node, int i, mesh_dtensor *dx)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    mesh_shape both, want = node->in_shape[i];
    if (dx == NULL) {
        err_set(MESH_EINVAL, "%s: its gradient function left dx[%d] NULL, which is wanted", op->name, i);
        return NULL;
    }
    if (shape_broadcast(want, dx->shape, op->name, &both) < 0 || !shape_equal(both, dx->shape)) {
        err_set(MESH_ESHAPE, "%s: its gradient function gave a dx[%d] of %s, in[%d] is %s", op->name, i,
                shape_text(dx->shape, a, sizeof a), i, shape_text(want, b, sizeof b));
        return NULL;
    }
    return tensor_settle(dx->local) < 0 ? NULL : grad_sum_to(dx, want);
}

static void take_all(struct grad_call *c, const struct mesh_op *op, const mesh_op_gradient *g)
{
    for (int i = 0; i < op->class_.n_in; i++) {
        c->dx[i] = c->wants[i] ? fit(op, c->node, i, g->dx[i]) : NULL;
        if (c->wants[i] && c->dx[i] == NULL) {
            return;
        }
    }
}

void custom_gradient(struct grad_call *c)
{
    const struct mesh_op *op = container_of(c->node->gradient, struct mesh_op, gradient);
    mesh_op_gradient g = {
        .dy = c->dy, .out = c->node->out, .args = custom_args(&c->node->attr), .user = op->class_.user
    };
    for (int i = 0; i < op->class_.n_in; i++) {
        g.in[i] = c->node->in[i];
        g.wants[i] = c->wants[i];
    }
    bool was_on = tape_set(false);
    int r = op->class_.gradient(&g);
    tape_set(was_on);
    if (!scope_enter("mesh_backward")) { /* what failed in there is the error */
        return;
    }
    if (r < 0) {
        err_set(r, "%s: its gradient function failed with %s", op->name, mesh_status_name((mesh_status)r));
        return;
    }
    take_all(c, op, &g);
}
