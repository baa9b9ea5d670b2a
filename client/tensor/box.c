/* client/tensor/box.c - copies a box (a part of a dense tensor, by offset and extent per dimension) to dense memory, and back.
 *
 * A box is walked in bytes, so that runs contiguous on both sides become single copies whatever the dtype.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/check.h"
#include "tensor/kernels.h"
#include "tensor/shape.h"
#include "tensor/walk.h"

/* Operand 0 is the dense side, operand 1 the whole tensor; returns the byte at which the box begins in the latter. */
static int64_t push_box(struct walk *w, mesh_shape whole, const struct box *b, size_t item_bytes)
{
    PRE(b->ndim == whole.ndim);
    mesh_shape part = { .ndim = b->ndim };
    memcpy(part.dim, b->extent, sizeof part.dim);
    int64_t item = (int64_t)item_bytes, begin = 0;
    walk_init(w);
    for (int d = 0; d < b->ndim; d++) {
        int64_t stride = shape_inner(whole, d) * item;
        begin += b->offset[d] * stride;
        walk_push(w, b->extent[d], (int64_t[WALK_OPERANDS]){ shape_inner(part, d) * item, stride });
    }
    walk_push(w, item, (int64_t[WALK_OPERANDS]){ 1, 1 });
    return begin;
}

/* The last step of a walk in bytes is 1, except for single bytes that lie apart. */
static void copy_row(void *dst, const void *src, const struct walk *w, int dst_operand)
{
    int64_t n = walk_inner(w), step_dst = walk_step(w, dst_operand), step_src = walk_step(w, 1 - dst_operand);
    if (step_dst == 1 && step_src == 1) {
        memcpy(dst, src, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        ((char *)dst)[i * step_dst] = ((const char *)src)[i * step_src];
    }
}

void box_pack(void *dst, const void *src, mesh_shape src_shape, const struct box *b, size_t item_bytes)
{
    struct walk w;
    struct walk_at at;
    int64_t begin = push_box(&w, src_shape, b, item_bytes);
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        copy_row((char *)dst + at.offset[0], (const char *)src + begin + at.offset[1], &w, 0);
    }
}

void box_unpack(void *dst, mesh_shape dst_shape, const void *src, const struct box *b, size_t item_bytes)
{
    struct walk w;
    struct walk_at at;
    int64_t begin = push_box(&w, dst_shape, b, item_bytes);
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        copy_row((char *)dst + begin + at.offset[1], (const char *)src + at.offset[0], &w, 1);
    }
}
