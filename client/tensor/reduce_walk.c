/* client/tensor/reduce_walk.c - rows of a tensor that is being reduced.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/reduce_walk.h"

#include "base/dtype.h"
#include "tensor/shape.h"
#include "tensor/walk.h"

enum { X, OUT, INDEX };

/* Pushes the dims with their strides in x, in the result and in the flat index; returns the index of the first element. */
static int64_t push_dims(struct walk *w, const struct mesh_tensor *x, uint32_t dims, const struct reduce_place *place)
{
    int64_t kept[MESH_MAX_NDIM], index[MESH_MAX_NDIM], out_stride = 1, index_stride = 1, first = 0;
    for (int d = x->shape.ndim - 1; d >= 0; d--) {
        bool goes = (dims >> d & 1U) != 0;
        kept[d] = goes ? 0 : out_stride;
        index[d] = goes ? index_stride : 0;
        out_stride *= goes ? 1 : x->shape.dim[d];
        first += goes && place != NULL ? place->offset[d] * index_stride : 0;
        index_stride *= goes ? (place != NULL ? place->whole.dim[d] : x->shape.dim[d]) : 1;
    }
    for (int d = 0; d < x->shape.ndim; d++) {
        walk_push(w, x->shape.dim[d], (int64_t[WALK_OPERANDS]){ shape_inner(x->shape, d), kept[d], index[d] });
    }
    return first;
}

void reduce_walk(const struct mesh_tensor *x, uint32_t dims, const struct reduce_place *place, reduce_row_fn row,
                 void *state)
{
    struct walk w;
    struct walk_at at;
    int64_t item = (int64_t)dtype_size(x->dtype);
    walk_init(&w);
    int64_t first = push_dims(&w, x, dims, place);
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        row(state, &(struct reduce_row){ .x = (const char *)x->data + at.offset[X] * item,
                                         .n = walk_inner(&w),
                                         .out = at.offset[OUT],
                                         .out_step = walk_step(&w, OUT),
                                         .index = first + at.offset[INDEX],
                                         .index_step = walk_step(&w, INDEX) });
    }
}
