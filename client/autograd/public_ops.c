/* client/autograd/public_ops.c - the operators of mesh/ops.h but the cross entropy; each fills in an op_attr.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops.h>
#include <mesh/ops_move.h>

#include "autograd/public_call.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

MESH_API mesh_dtensor *mesh_add(mesh_dtensor *a, mesh_dtensor *b)
{
    return public_pair(__func__, OP_add, a, b, NULL);
}

MESH_API mesh_dtensor *mesh_sub(mesh_dtensor *a, mesh_dtensor *b)
{
    return public_pair(__func__, OP_sub, a, b, NULL);
}

MESH_API mesh_dtensor *mesh_mul(mesh_dtensor *a, mesh_dtensor *b)
{
    return public_pair(__func__, OP_mul, a, b, NULL);
}

MESH_API mesh_dtensor *mesh_div(mesh_dtensor *a, mesh_dtensor *b)
{
    return public_pair(__func__, OP_div, a, b, NULL);
}

MESH_API mesh_dtensor *mesh_neg(mesh_dtensor *x)
{
    return public_op1(__func__, OP_neg, x, NULL);
}

MESH_API mesh_dtensor *mesh_mul_scalar(mesh_dtensor *x, double value)
{
    return public_op1(__func__, OP_mul_scalar, x, &(struct op_attr){ .value = { value } });
}

MESH_API mesh_dtensor *mesh_add_scalar(mesh_dtensor *x, double value)
{
    return public_op1(__func__, OP_add_scalar, x, &(struct op_attr){ .value = { value } });
}

MESH_API mesh_dtensor *mesh_relu(mesh_dtensor *x)
{
    return public_op1(__func__, OP_relu, x, NULL);
}

MESH_API mesh_dtensor *mesh_gelu(mesh_dtensor *x, bool tanh_approximation)
{
    return public_op1(__func__, OP_gelu, x, &(struct op_attr){ .mode = tanh_approximation });
}

MESH_API mesh_dtensor *mesh_tanh(mesh_dtensor *x)
{
    return public_op1(__func__, OP_tanh, x, NULL);
}

MESH_API mesh_dtensor *mesh_matmul(mesh_dtensor *a, mesh_dtensor *b)
{
    return public_pair(__func__, OP_matmul, a, b, NULL);
}

MESH_API mesh_dtensor *mesh_linear(mesh_dtensor *x, mesh_dtensor *w, mesh_dtensor *bias)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, w, bias };
    return public_enter(__func__, in, 2) ? public_promoted(OP_linear, in, 0x7, NULL) : NULL;
}

MESH_API mesh_dtensor *mesh_transpose(mesh_dtensor *x, int dim0, int dim1)
{
    struct op_attr attr = { 0 };
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    int d0 = 0, d1 = 0, r = shape_dim(x->shape, dim0, "transpose", &d0);
    r = r < 0 ? r : shape_dim(x->shape, dim1, "transpose", &d1);
    attr.dim[0] = d0;
    attr.dim[1] = d1;
    return r < 0 ? scope_fail(r) : public_apply(OP_transpose, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &attr);
}

/* The one extent of -1 becomes what the others leave. */
static int fill_in_extent(mesh_shape from, mesh_shape *inout_to)
{
    mesh_shape closed = *inout_to;
    int open = -1;
    char text[SHAPE_TEXT_BYTES];
    for (int d = 0; d < inout_to->ndim; d++) {
        if (inout_to->dim[d] >= 0) {
            continue;
        }
        if (inout_to->dim[d] != -1 || open >= 0) {
            return err_set(MESH_ESHAPE, "reshape: extent %lld of dim %d: only one may be -1, the others 0 or more",
                           (long long)inout_to->dim[d], d);
        }
        open = d;
        closed.dim[d] = 1;
    }
    int r = shape_check(closed, "reshape");
    if (r < 0 || open < 0) {
        return r;
    }
    int64_t n = shape_numel(from), others = shape_numel(closed);
    if (others == 0 || n % others != 0) {
        return err_set(MESH_ESHAPE, "reshape: the %lld elements of %s do not divide by the other extents' product %lld",
                       (long long)n, shape_text(from, text, sizeof text), (long long)others);
    }
    inout_to->dim[open] = n / others;
    return 0;
}

static int check_ndim(const char *what, mesh_shape to)
{
    return to.ndim >= 0 && to.ndim <= MESH_MAX_NDIM
               ? 0
               : err_set(MESH_ESHAPE, "%s: a shape of %d dims; at most %d are supported", what, to.ndim, MESH_MAX_NDIM);
}

static mesh_dtensor *reshape(mesh_dtensor *x, mesh_shape to, int mode)
{
    int r = check_ndim("reshape", to);
    r = r < 0 ? r : fill_in_extent(x->shape, &to);
    struct op_attr attr = { .shape = to, .mode = mode };
    return r < 0 ? scope_fail(r) : public_apply(OP_reshape, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &attr);
}

MESH_API mesh_dtensor *mesh_reshape(mesh_dtensor *x, mesh_shape to)
{
    return public_enter(__func__, &x, 1) ? reshape(x, to, 0) : NULL;
}

MESH_API mesh_dtensor *mesh_view(mesh_dtensor *x, mesh_shape to)
{
    return public_enter(__func__, &x, 1) ? reshape(x, to, RESHAPE_IS_VIEW) : NULL;
}

MESH_API mesh_dtensor *mesh_expand(mesh_dtensor *x, mesh_shape to)
{
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    int r = check_ndim("expand", to);
    for (int d = 0; r == 0 && d < to.ndim; d++) {
        int from = d - (to.ndim - x->shape.ndim);
        if (to.dim[d] == -1 && from >= 0) {
            to.dim[d] = x->shape.dim[from];
        }
    }
    return r < 0 ? scope_fail(r)
                 : public_apply(OP_expand, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &(struct op_attr){ .shape = to });
}
