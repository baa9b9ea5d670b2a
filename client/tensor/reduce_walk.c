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

static void call_row(const struct walk *w, const struct walk_at *at, const struct mesh_tensor *x, reduce_row_fn row,
                     struct reduce_row *r, void *state)
{
    r->x = (const char *)x->data + at->offset[X] * (int64_t)dtype_size(x->dtype);
    r->n = walk_inner(w);
    r->out = at->offset[OUT];
    r->out_step = walk_step(w, OUT);
    row(state, r);
}

void reduce_walk(const struct mesh_tensor *x, uint32_t dims, const struct reduce_place *place, reduce_row_fn row,
                 void *state)
{
    struct walk w;
    struct walk_at at;
    walk_init(&w);
    int64_t first = push_dims(&w, x, dims, place);
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        struct reduce_row r = { .index = first + at.offset[INDEX], .index_step = walk_step(&w, INDEX) };
        call_row(&w, &at, x, row, &r, state);
    }
}

void reduce_walk_stacked(const struct mesh_tensor *x, uint32_t dims, reduce_row_fn row, void *state)
{
    struct walk w;
    struct walk_at at;
    walk_init(&w);
    (void)push_dims(&w, x, dims, NULL);
    int d = w.ndim - 2; /* of the rows */
    bool is_stack = d >= 0 && w.stride[d][OUT] == 0 && walk_step(&w, OUT) == 1;
    for (bool more = walk_first(&w, &at); more;) {
        bool has_four = is_stack && at.index[d] + REDUCE_STACK <= w.extent[d];
        struct reduce_row r = { .is_stack = has_four, .row_step = d >= 0 ? w.stride[d][X] : 0 };
        call_row(&w, &at, x, row, &r, state);
        for (int k = 0; more && k < (has_four ? REDUCE_STACK : 1); k++) {
            more = walk_next(&w, &at);
        }
    }
}
