/* client/autograd/public_index.c - the operators of mesh/ops_index.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_index.h>

#include "autograd/public_call.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

/* The first input is indexed along dim; those of the set `values` become of one dtype. */
static mesh_dtensor *along(enum op_id id, mesh_dtensor **in, uint32_t values, int dim, int mode)
{
    int d = 0, r = shape_dim(in[0]->shape, dim, op_table[id].name, &d);
    struct op_attr attr = { .mode = mode };
    attr.dim[0] = d;
    return r < 0 ? scope_fail(r) : public_promoted(id, in, values, &attr);
}

MESH_API mesh_dtensor *mesh_index_select(mesh_dtensor *x, mesh_dtensor *index, int dim)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, index };
    if (!public_enter(__func__, in, 2)) {
        return NULL;
    }
    if (index->shape.ndim != 1) {
        char text[SHAPE_TEXT_BYTES];
        return scope_fail(err_set(MESH_ESHAPE, "index_select: the index is %s: it must have one dim",
                                  shape_text(index->shape, text, sizeof text)));
    }
    return along(OP_index_select, in, 0x1, dim, INDEX_FROM_END);
}

MESH_API mesh_dtensor *mesh_take_along_dim(mesh_dtensor *x, mesh_dtensor *index, int dim)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, index };
    return public_enter(__func__, in, 2) ? along(OP_gather, in, 0x1, dim, INDEX_FROM_END) : NULL;
}

MESH_API mesh_dtensor *mesh_scatter_add(mesh_dtensor *x, mesh_dtensor *index, mesh_dtensor *src, int dim)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, index, src };
    return public_enter(__func__, in, 3) ? along(OP_scatter_add, in, 0x5, dim, INDEX_FROM_END) : NULL;
}

MESH_API mesh_dtensor *mesh_embedding(mesh_dtensor *weight, mesh_dtensor *ids)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { weight, ids };
    if (!public_enter(__func__, in, 2)) {
        return NULL;
    }
    if (weight->shape.ndim != 2) {
        char text[SHAPE_TEXT_BYTES];
        return scope_fail(err_set(MESH_ESHAPE, "embedding: the weight is %s: it must be [rows, width]",
                                  shape_text(weight->shape, text, sizeof text)));
    }
    return along(OP_embedding, in, 0x1, 0, INDEX_IS_EMBEDDING);
}

MESH_API mesh_dtensor *mesh_one_hot(mesh_dtensor *index, int64_t num_classes)
{
    return public_op1(__func__, OP_one_hot, index, &(struct op_attr){ .index = { num_classes } });
}
