/* client/autograd/grads.c - the table of gradient functions, and the builders that formulas are written with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/grads.h"

#include "autograd/apply.h"
#include "tensor/shape.h"

static const struct gradient NO_GRADIENT = { .run = NULL };
const struct gradient CONSTANT = { .run = NULL };

/* clang-format off */
static const struct gradient *const gradients[N_OPS] = {
#define OP(name, n_in, n_out, index, partial, shape, kernel, gradient) [OP_##name] = &gradient,
#include "dtensor/ops.def"
#undef OP
};
/* clang-format on */

const struct gradient *gradient_of(enum op_id id)
{
    return gradients[id];
}

mesh_dtensor *grad_op(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr)
{
    mesh_dtensor *out[OP_MAX_OUTPUTS];
    return apply_plain(id, in, attr, out) < 0 ? NULL : out[0];
}

mesh_dtensor *grad_op1(enum op_id id, mesh_dtensor *a, const struct op_attr *attr)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { a };
    return a == NULL ? NULL : grad_op(id, in, attr);
}

mesh_dtensor *grad_op2(enum op_id id, mesh_dtensor *a, mesh_dtensor *b, const struct op_attr *attr)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { a, b };
    return a == NULL || b == NULL ? NULL : grad_op(id, in, attr);
}

mesh_dtensor *grad_scale(mesh_dtensor *x, double factor)
{
    struct op_attr attr = { .value = { factor } };
    return grad_op1(OP_mul_scalar, x, &attr);
}

mesh_dtensor *grad_transpose(mesh_dtensor *x)
{
    if (x == NULL) {
        return NULL;
    }
    struct op_attr attr = { .dim = { x->shape.ndim - 2, x->shape.ndim - 1 } };
    return grad_op1(OP_transpose, x, &attr);
}

mesh_dtensor *grad_reshape(mesh_dtensor *x, mesh_shape shape)
{
    if (x == NULL || shape_equal(x->shape, shape)) {
        return x;
    }
    struct op_attr attr = { .shape = shape };
    return grad_op1(OP_reshape, x, &attr);
}

mesh_dtensor *grad_sum_to(mesh_dtensor *x, mesh_shape shape)
{
    if (x == NULL || shape_equal(x->shape, shape)) {
        return x;
    }
    struct op_attr attr = { .shape = shape };
    return grad_op1(OP_sum_to, x, &attr);
}
