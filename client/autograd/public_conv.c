/* client/autograd/public_conv.c - mesh_conv2d() and the gradients of a convolution.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_matrix.h>

#include "autograd/grads.h"
#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

static void conv2d(struct grad_call *c)
{
    struct op_attr attr = c->node->attr;
    if (c->wants[0]) {
        attr.shape = c->node->in_shape[0];
        c->dx[0] = grad_op2(OP_conv2d_grad_input, c->dy, c->node->in[1], &attr);
    }
    if (c->wants[1]) {
        attr.shape = c->node->in_shape[1];
        c->dx[1] = grad_op2(OP_conv2d_grad_weight, c->dy, c->node->in[0], &attr);
    }
}
const struct gradient g_conv2d = { conv2d, { NEEDS_IN1, NEEDS_IN0 } };

/* One number for each channel of the result. */
static mesh_dtensor *as_channels(mesh_dtensor *bias)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { bias };
    return public_apply(OP_reshape, in, &(struct op_attr){ .shape = MESH_SHAPE(bias->shape.dim[0], 1, 1) });
}

static int check_bias(const mesh_dtensor *weight, const mesh_dtensor *bias)
{
    char b[SHAPE_TEXT_BYTES];
    if (bias == NULL || weight->shape.ndim != 4) { /* the latter is for the operator to say */
        return 0;
    }
    return bias->shape.ndim == 1 && bias->shape.dim[0] == weight->shape.dim[0]
               ? 0
               : err_set(MESH_ESHAPE, "conv2d: the bias is %s: one number for each of %lld channels is needed",
                         shape_text(bias->shape, b, sizeof b), (long long)weight->shape.dim[0]);
}

MESH_API mesh_dtensor *mesh_conv2d_opt(mesh_dtensor *x, mesh_dtensor *weight, mesh_dtensor *bias,
                                       const mesh_conv2d_options *o)
{
    static const mesh_conv2d_options defaults = { .size = sizeof defaults };
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, weight, bias };
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, in, bias != NULL ? 3 : 2)) {
        return NULL;
    }
    o = o != NULL ? o : &defaults;
    struct op_attr attr = { .index = { o->padding[0], o->padding[1] },
                            .groups = o->groups,
                            .dilation = { o->dilation[0], o->dilation[1] } };
    for (int d = 0; d < 2; d++) {
        attr.dim[d] = o->stride[d] != 0 ? o->stride[d] : 1;
    }
    int r = check_bias(weight, bias);
    r = r < 0 ? r : promote(&op_table[OP_conv2d], in, 0x7, &attr);
    bias = in[2];
    in[2] = NULL;
    mesh_dtensor *y = r < 0 ? scope_fail(r) : public_apply(OP_conv2d, in, &attr);
    mesh_dtensor *b = y == NULL || bias == NULL ? NULL : as_channels(bias);
    if (bias != NULL) {
        y = b == NULL ? NULL : public_apply(OP_add, (mesh_dtensor *[OP_MAX_INPUTS]){ y, b }, NULL);
    }
    return public_result(mark, y);
}
