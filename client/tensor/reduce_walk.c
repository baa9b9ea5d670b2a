/* client/tensor/reduce_walk.c - rows of a tensor that is being reduced.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/reduce_walk.h"

#include "base/dtype.h"
#include "tensor/shape.h"
#include "tensor/walk.h"

enum { X, OUT, INDEX };

/* Pushes the dims with their strides in x, in the result and in the flat index; returns the index of the first
 * element. */
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

static struct reduce_row row_at(const struct walk *w, const struct walk_at *at, const struct mesh_tensor *x)
{
    return (struct reduce_row){ .x = (const char *)x->data + at->offset[X] * (int64_t)dtype_size(x->dtype),
                                .n = walk_inner(w),
                                .out = at->offset[OUT],
                                .out_step = walk_step(w, OUT),
                                .index = at->offset[INDEX],
                                .index_step = walk_step(w, INDEX) };
}

void reduce_walk(const struct mesh_tensor *x, uint32_t dims, const struct reduce_place *place, reduce_row_fn row,
                 void *state)
{
    struct walk w;
    struct walk_at at;
    walk_init(&w);
    int64_t first = push_dims(&w, x, dims, place);
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        struct reduce_row r = row_at(&w, &at, x);
        r.index += first;
        row(state, &r);
    }
}

/* All n_rows rows from `all` on, REDUCE_STACK at a time; their flat indices are so far apart. */
static void call_stack(const struct reduce_row *all, int64_t n_rows, int64_t index_step, size_t item, reduce_row_fn row,
                       void *state)
{
    struct reduce_row r = *all;
    for (int64_t i = 0; i < n_rows; i += r.is_stack ? REDUCE_STACK : 1) {
        r.x = (const char *)all->x + i * all->row_step * (int64_t)item;
        r.index = all->index + i * index_step;
        r.is_stack = i + REDUCE_STACK <= n_rows;
        row(state, &r);
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
        struct reduce_row r = row_at(&w, &at, x);
        int64_t n_rows = is_stack ? w.extent[d] : 1;
        if (is_stack) {
            r.row_step = w.stride[d][X];
            call_stack(&r, n_rows, w.stride[d][INDEX], dtype_size(x->dtype), row, state);
        } else {
            row(state, &r);
        }
        for (int64_t k = 0; more && k < n_rows; k++) {
            more = walk_next(&w, &at);
        }
    }
}
