/* client/autograd/public_matrix.c - the operators of mesh/ops_matrix.h, composed of simpler ones.
 *
 * Their layouts and gradients are those of the parts.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_matrix.h>

#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

MESH_API mesh_dtensor *mesh_bmm(mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { a, b };
    if (!public_enter(__func__, in, 2)) {
        return NULL;
    }
    if (a->shape.ndim != 3 || b->shape.ndim != 3 || a->shape.dim[0] != b->shape.dim[0]) {
        char x[SHAPE_TEXT_BYTES], y[SHAPE_TEXT_BYTES];
        return scope_fail(err_set(MESH_ESHAPE, "bmm: %s x %s: [b, m, k] and [b, k, n] with one b are needed",
                                  shape_text(a->shape, x, sizeof x), shape_text(b->shape, y, sizeof y)));
    }
    return public_promoted(OP_matmul, in, 0x3, NULL);
}

MESH_API mesh_dtensor *mesh_addmm(mesh_dtensor *bias, mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { a, b, bias }, *product = NULL;
    mesh_shape all = { .ndim = 0 };
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, in, 3)) {
        return NULL;
    }
    int r = 0;
    if (a->shape.ndim != 2 || b->shape.ndim != 2) {
        char x[SHAPE_TEXT_BYTES], y[SHAPE_TEXT_BYTES];
        r = err_set(MESH_ESHAPE, "addmm: %s x %s: two matrices are needed", shape_text(a->shape, x, sizeof x),
                    shape_text(b->shape, y, sizeof y));
    }
    r = r < 0 ? r : shape_broadcast(bias->shape, MESH_SHAPE(a->shape.dim[0], b->shape.dim[1]), "addmm", &all);
    if (r == 0 && !shape_equal(all, MESH_SHAPE(a->shape.dim[0], b->shape.dim[1]))) {
        char x[SHAPE_TEXT_BYTES];
        r = err_set(MESH_ESHAPE, "addmm: a bias of %s does not broadcast to the product's [%lld,%lld]",
                    shape_text(bias->shape, x, sizeof x), (long long)a->shape.dim[0], (long long)b->shape.dim[1]);
    }
    r = r < 0 ? r : promote(&op_table[OP_matmul], in, 0x7, NULL);
    r = r < 0 ? r : ag_apply(OP_matmul, (mesh_dtensor *[OP_MAX_INPUTS]){ in[0], in[1] }, NULL, &product);
    mesh_dtensor *y =
        r < 0 ? scope_fail(r) : public_apply(OP_add, (mesh_dtensor *[OP_MAX_INPUTS]){ in[2], product }, NULL);
    return public_result(mark, y);
}
