/* client/tensor/k_move.c - kernels that move elements without looking at them: only the size of an item matters.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/check.h"
#include "base/dtype.h"
#include "base/util.h"
#include "tensor/kernels.h"
#include "tensor/shape.h"
#include "tensor/turn.h"
#include "tensor/walk.h"

/* --- transpose: [a,m,b,n,c] -> [a,n,b,m,c], the two swapped dimensions being m and n ------------------------------- */

struct swap {
    int64_t m, b, n;
    size_t item; /* bytes of c elements */
};

/* Runs of c elements: row by row of the result. */
static void swap_any(void *out, const void *in, const struct swap *s, int64_t b)
{
    for (int64_t j = 0; j < s->n; j++) {
        for (int64_t i = 0; i < s->m; i++) {
            memcpy((char *)out + (size_t)((j * s->b + b) * s->m + i) * s->item,
                   (const char *)in + (size_t)((i * s->b + b) * s->n + j) * s->item, s->item);
        }
    }
}

static bool is_one_element(size_t item)
{
    return item == 1 || item == 2 || item == 4 || item == 8;
}

/* in[m,b,n] -> out[n,b,m] for one b. */
static void swap(void *out, const void *in, const struct swap *s, int64_t b)
{
    if (!is_one_element(s->item)) {
        swap_any(out, in, s, b);
        return;
    }
    turn_matrix(&(struct turn){ .to = (char *)out + (size_t)(b * s->m) * s->item,
                                .from = (const char *)in + (size_t)(b * s->n) * s->item,
                                .to_step = s->b * s->m,
                                .from_step = s->b * s->n,
                                .rows = s->m,
                                .columns = s->n,
                                .item = s->item });
}

int k_transpose(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    int d0 = MIN(c->attr->dim[0], c->attr->dim[1]), d1 = MAX(c->attr->dim[0], c->attr->dim[1]);
    if (d0 == d1 || x->n == 0) {
        return k_copy(c);
    }
    struct swap s = { .m = x->shape.dim[d0],
                      .b = shape_inner(x->shape, d0) / shape_inner(x->shape, d1 - 1), /* the extents between them */
                      .n = x->shape.dim[d1],
                      .item = (size_t)shape_inner(x->shape, d1) * dtype_size(x->dtype) };
    size_t block = (size_t)(s.m * s.b * s.n) * s.item;
    int64_t n_blocks = shape_outer(x->shape, d0);
    for (int64_t a = 0; a < n_blocks; a++) {
        for (int64_t b = 0; b < s.b; b++) {
            char *out = (char *)c->out[0]->data + (size_t)a * block;
            const char *in = (const char *)x->data + (size_t)a * block;
            swap(out, in, &s, b);
        }
    }
    return 0;
}

/* --- expand -------------------------------------------------------------------------------------------------------- */

/* Writes one item n times: doubles what is there already, so that most of it is large copies. */
static void repeat_item(char *restrict out, const char *restrict item, size_t item_bytes, int64_t n)
{
    size_t bytes = (size_t)n * item_bytes, done = item_bytes;
    memcpy(out, item, item_bytes);
    while (done < bytes) {
        size_t more = MIN(done, bytes - done);
        memcpy(out + done, out, more);
        done += more;
    }
}

int k_expand(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    struct mesh_tensor *out = c->out[0];
    size_t item = dtype_size(x->dtype);
    int64_t stride_x[MESH_MAX_NDIM], stride_out[MESH_MAX_NDIM];
    struct walk w;
    struct walk_at at;
    PRE(x->dtype == out->dtype);
    shape_strides(x->shape, out->shape, stride_x);
    shape_strides(out->shape, out->shape, stride_out);
    walk_init(&w);
    for (int d = 0; d < out->shape.ndim; d++) {
        walk_push(&w, out->shape.dim[d], (int64_t[WALK_OPERANDS]){ stride_out[d], stride_x[d] });
    }
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        char *to = (char *)out->data + (size_t)at.offset[0] * item;
        const char *from = (const char *)x->data + (size_t)at.offset[1] * item;
        if (walk_step(&w, 1) == 1) {
            memcpy(to, from, (size_t)walk_inner(&w) * item);
        } else {
            repeat_item(to, from, item, walk_inner(&w));
        }
    }
    return 0;
}
