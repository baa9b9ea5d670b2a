/* client/tensor/box.c - copies a box (a part of a dense tensor, by offset and extent per dimension) to another tensor.
 *
 * A box is walked in bytes, so that runs contiguous on both sides become single copies whatever the dtype.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/check.h"
#include "tensor/kernels.h"
#include "tensor/shape.h"
#include "tensor/walk.h"

static struct box whole_box(const struct box *b)
{
    struct box all = { .ndim = b->ndim };
    memcpy(all.extent, b->extent, sizeof all.extent);
    return all;
}

static mesh_shape box_shape(const struct box *b)
{
    mesh_shape s = { .ndim = b->ndim };
    memcpy(s.dim, b->extent, sizeof s.dim);
    return s;
}

/* Operand 0 is `to`, operand 1 `from`. */
static void push_boxes(struct walk *w, const struct box_in *to, const struct box_in *from, size_t item_bytes)
{
    int64_t item = (int64_t)item_bytes;
    PRE(to->box->ndim == to->shape.ndim && from->box->ndim == from->shape.ndim && to->shape.ndim == from->shape.ndim);
    walk_init(w);
    for (int d = 0; d < from->box->ndim; d++) {
        int64_t strides[WALK_OPERANDS] = { shape_inner(to->shape, d) * item, shape_inner(from->shape, d) * item };
        walk_push(w, from->box->extent[d], strides);
    }
    walk_push(w, item, (int64_t[WALK_OPERANDS]){ 1, 1 });
}

/* The byte at which a box begins. */
static char *box_begin(const struct box_in *in, size_t item_bytes)
{
    int64_t begin = 0;
    for (int d = 0; d < in->box->ndim; d++) {
        begin += in->box->offset[d] * shape_inner(in->shape, d);
    }
    return (char *)in->data + begin * (int64_t)item_bytes;
}

/* The last step of a walk in bytes is 1, except for single bytes that lie apart. */
static void copy_row(char *dst, const char *src, const struct walk *w)
{
    int64_t n = walk_inner(w), step_dst = walk_step(w, 0), step_src = walk_step(w, 1);
    if (step_dst == 1 && step_src == 1) {
        memcpy(dst, src, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        dst[i * step_dst] = src[i * step_src];
    }
}

void box_copy(struct box_in to, struct box_in from, size_t item_bytes)
{
    struct walk w;
    struct walk_at at;
    push_boxes(&w, &to, &from, item_bytes);
    char *dst = box_begin(&to, item_bytes);
    const char *src = box_begin(&from, item_bytes);
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        copy_row(dst + at.offset[0], src + at.offset[1], &w);
    }
}

struct box box_along(mesh_shape s, int d, int64_t offset, int64_t extent)
{
    struct box b = { .ndim = s.ndim };
    memcpy(b.extent, s.dim, sizeof b.extent);
    b.offset[d] = offset;
    b.extent[d] = extent;
    return b;
}

void box_pack(void *dst, const void *src, mesh_shape src_shape, const struct box *b, size_t item_bytes)
{
    struct box all = whole_box(b);
    box_copy((struct box_in){ dst, box_shape(b), &all }, (struct box_in){ (void *)src, src_shape, b }, item_bytes);
}

void box_unpack(void *dst, mesh_shape dst_shape, const void *src, const struct box *b, size_t item_bytes)
{
    struct box all = whole_box(b);
    box_copy((struct box_in){ dst, dst_shape, b }, (struct box_in){ (void *)src, box_shape(b), &all }, item_bytes);
}
