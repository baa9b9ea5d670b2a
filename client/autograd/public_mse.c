/* client/autograd/public_mse.c - the squared error.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_reduce.h>

#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "autograd/sharded.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

static int check(const mesh_dtensor *x, const mesh_dtensor *target, mesh_reduction reduction)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if ((int)reduction < MESH_REDUCTION_MEAN || reduction > MESH_REDUCTION_NONE) {
        return err_set(MESH_EINVAL, "mse_loss: %d is no mesh_reduction", (int)reduction);
    }
    return shape_equal(x->shape, target->shape)
               ? 0
               : err_set(MESH_ESHAPE, "mse_loss: %s and %s: broadcast them with mesh_expand() if that is meant",
                         shape_text(x->shape, a, sizeof a), shape_text(target->shape, b, sizeof b));
}

static int mse_loss(mesh_dtensor **in, mesh_reduction reduction, mesh_dtensor **ret_loss)
{
    int r = check(in[0], in[1], reduction);
    struct op_attr all = { .dims = (UINT32_C(1) << in[0]->shape.ndim) - 1 };
    r = r < 0 ? r : promote(&op_table[OP_squared_difference], in, 0x3, NULL);
    for (int i = 0; r == 0 && i < 2; i++) { /* once, not again for the gradient */
        in[i] = settled(in[i]);
        r = in[i] != NULL ? 0 : err_status();
    }
    r = r < 0 ? r : ag_apply(OP_squared_difference, in, NULL, ret_loss);
    if (r < 0 || reduction == MESH_REDUCTION_NONE) {
        return r;
    }
    mesh_dtensor *rows[OP_MAX_INPUTS] = { *ret_loss };
    all.value[0] = reduction == MESH_REDUCTION_MEAN ? 1 / (double)shape_numel(in[0]->shape) : 0;
    return ag_apply(reduction == MESH_REDUCTION_MEAN ? OP_mean : OP_sum, rows, &all, ret_loss);
}

MESH_API mesh_dtensor *mesh_mse_loss(mesh_dtensor *x, mesh_dtensor *target, mesh_reduction reduction)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, target }, *out[OP_MAX_OUTPUTS] = { NULL };
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, in, 2)) {
        return NULL;
    }
    int r = mse_loss(in, reduction, out);
    return public_result(mark, r < 0 ? scope_fail(r) : out[0]);
}
