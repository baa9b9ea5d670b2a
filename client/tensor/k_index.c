/* client/tensor/k_index.c - kernels that choose elements by numbers that stand in another tensor, and causal masks.
 *
 * Input 0 may be this rank's part of a dim that is split: places [offset, offset + extent) of attr.index[0].  Reading elsewhere
 * gives 0, adding elsewhere does nothing, so that the parts of all ranks add up.  A number outside the whole dim is an error; it
 * is known to all ranks when all have the same numbers (kernel_call.whole), else only this one has seen it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"
#include "tensor/walk.h"

struct range { /* of the dim that is indexed */
    const char *name;
    int64_t extent; /* the whole dim */
    int64_t offset, here;
    bool may_be_negative;
};

static struct range range_of(const char *name, const struct kernel_call *c)
{
    int d = c->attr->dim[0];
    return (struct range){ .name = name,
                           .extent = c->attr->index[0],
                           .offset = c->offset[d],
                           .here = c->in[0]->shape.dim[d],
                           .may_be_negative = (c->attr->mode & INDEX_FROM_END) != 0 };
}

static int64_t number_at(const struct mesh_tensor *index, int64_t i)
{
    switch (index->dtype) {
#define NUMBER(D, T, U, unused)                                                                                        \
    case MESH_##D:                                                                                                     \
        return (int64_t)((const T *)index->data)[i];
        INT_TYPES(NUMBER, 0)
    default:
        return -1;
    }
}

/* Place i of the index within this rank's part; not in [0, here) when another rank has it. */
static int64_t place(const struct range *r, const struct mesh_tensor *index, int64_t i)
{
    int64_t at = number_at(index, i);
    return (at < 0 ? at + r->extent : at) - r->offset;
}

static bool is_here(const struct range *r, int64_t at)
{
    return at >= 0 && at < r->here;
}

/* Input k holds the numbers. */
static int check_numbers(const struct kernel_call *c, const struct range *r, int k)
{
    bool is_known_to_all = c->whole[k] != NULL;
    const struct mesh_tensor *index = is_known_to_all ? c->whole[k] : c->in[k];
    int64_t least = r->may_be_negative ? -r->extent : 0;
    for (int64_t i = 0; i < index->n; i++) {
        int64_t at = number_at(index, i);
        if (at < least || at >= r->extent) {
            return (is_known_to_all ? err_set : err_set_local)(
                MESH_EINVAL, "%s: index %lld (number %lld of %sthe index tensor) is outside [%lld, %lld)", r->name,
                (long long)at, (long long)i, is_known_to_all ? "" : "this rank's part of ", (long long)least,
                (long long)r->extent);
        }
    }
    return 0;
}

/* --- whole slices: x [outer, extent, inner], index [n] <-> y [outer, n, inner] -------------------------------------- */

int k_take(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0], *index = c->in[1];
    struct range range = range_of(c->attr->mode & INDEX_IS_EMBEDDING ? "embedding" : "index_select", c);
    int d = c->attr->dim[0], r = check_numbers(c, &range, 1);
    size_t slice = (size_t)shape_inner(x->shape, d) * dtype_size(x->dtype);
    int64_t n_outer = shape_outer(x->shape, d);
    char *to = c->out[0]->data;
    for (int64_t o = 0; r == 0 && o < n_outer; o++) {
        const char *from = (const char *)x->data + (size_t)(o * range.here) * slice;
        for (int64_t i = 0; i < index->n; i++, to += slice) {
            int64_t at = place(&range, index, i);
            if (is_here(&range, at)) {
                memcpy(to, from + (size_t)at * slice, slice);
            } else {
                memset(to, 0, slice);
            }
        }
    }
    return r;
}

#define ADD_SLICE(D, T, U, unused)                                                                                     \
    static void add_slice_##D(void *to, const void *from, int64_t n)                                                   \
    {                                                                                                                  \
        T *restrict t = to;                                                                                            \
        const T *restrict f = from;                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            t[i] = (T)((U)t[i] + (U)f[i]);                                                                             \
        }                                                                                                              \
    }
NUMBER_TYPES(ADD_SLICE, 0)

typedef void (*add_slice)(void *to, const void *from, int64_t n);
#define ADD_SLICE_ENTRY(D, T, U, unused) [MESH_##D] = add_slice_##D,
static const add_slice add_slices[N_DTYPES] = { NUMBER_TYPES(ADD_SLICE_ENTRY, 0) };

int k_take_backward(const struct kernel_call *c)
{
    const struct mesh_tensor *dy = c->in[1], *index = c->in[2];
    struct mesh_tensor *out = c->out[0];
    struct range range = range_of("take_backward", c);
    int d = c->attr->dim[0], r = check_numbers(c, &range, 2);
    size_t item = dtype_size(dy->dtype);
    int64_t inner = shape_inner(out->shape, d), n_outer = shape_outer(out->shape, d);
    const char *from = dy->data;
    add_slice add = add_slices[dy->dtype];
    if (add == NULL) {
        return unsupported_dtype("the gradient of an embedding or index_select", dy->dtype);
    }
    memset(out->data, 0, tensor_bytes(out));
    for (int64_t o = 0; r == 0 && o < n_outer; o++) {
        char *to = (char *)out->data + (size_t)(o * range.here * inner) * item;
        for (int64_t i = 0; i < index->n; i++, from += (size_t)inner * item) {
            int64_t at = place(&range, index, i);
            if (is_here(&range, at)) {
                add(to + (size_t)(at * inner) * item, from, inner);
            }
        }
    }
    return r;
}

/* --- single elements: index [.., n, ..] as y, the other dims of x at least as long ---------------------------------- */

/* Steps through index (operand 0) and x (operand 1, at place 0 of dim d). */
static void walk_elements(struct walk *w, mesh_shape index, mesh_shape x, int d)
{
    int64_t stride_index[MESH_MAX_NDIM], stride_x[MESH_MAX_NDIM];
    int64_t a = 1, b = 1;
    for (int k = index.ndim - 1; k >= 0; k--) {
        stride_index[k] = a;
        stride_x[k] = k == d ? 0 : b;
        a *= index.dim[k];
        b *= x.dim[k];
    }
    walk_init(w);
    for (int k = 0; k < index.ndim; k++) {
        walk_push(w, index.dim[k], (int64_t[WALK_OPERANDS]){ stride_index[k], stride_x[k] });
    }
}

int k_gather(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0], *index = c->in[1];
    struct range range = range_of("gather", c);
    int d = c->attr->dim[0], r = check_numbers(c, &range, 1);
    size_t item = dtype_size(x->dtype);
    int64_t stride = shape_inner(x->shape, d);
    struct walk w;
    struct walk_at at;
    walk_elements(&w, index->shape, x->shape, d);
    int64_t n = walk_inner(&w), step_y = walk_step(&w, 0), step_x = walk_step(&w, 1);
    for (bool more = r == 0 && walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        for (int64_t i = 0; i < n; i++) {
            int64_t y = at.offset[0] + i * step_y, p = place(&range, index, y);
            int64_t from = at.offset[1] + i * step_x + p * stride;
            char *to = (char *)c->out[0]->data + (size_t)y * item;
            if (is_here(&range, p)) {
                memcpy(to, (const char *)x->data + (size_t)from * item, item);
            } else {
                memset(to, 0, item);
            }
        }
    }
    return r;
}

#define ADD_ELEMENTS(D, T, U, unused)                                                                                  \
    static void add_elements_##D(const struct kernel_call *c, const struct range *r, const struct walk *w,             \
                                 const struct walk_at *at)                                                             \
    {                                                                                                                  \
        T *out = c->out[0]->data;                                                                                      \
        const T *src = c->in[2]->data;                                                                                 \
        int64_t stride = shape_inner(c->in[0]->shape, c->attr->dim[0]);                                                \
        int64_t n = walk_inner(w), step_src = walk_step(w, 0), step_out = walk_step(w, 1);                             \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            int64_t from = at->offset[0] + i * step_src, p = place(r, c->in[1], from);                                 \
            int64_t to = at->offset[1] + i * step_out + p * stride;                                                    \
            if (is_here(r, p)) {                                                                                       \
                out[to] = (T)((U)out[to] + (U)src[from]);                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
NUMBER_TYPES(ADD_ELEMENTS, 0)

typedef void (*add_elements)(const struct kernel_call *c, const struct range *r, const struct walk *w,
                             const struct walk_at *at);
#define ADD_ELEMENTS_ENTRY(D, T, U, unused) [MESH_##D] = add_elements_##D,
static const add_elements add_elements_of[N_DTYPES] = { NUMBER_TYPES(ADD_ELEMENTS_ENTRY, 0) };

int k_scatter_add(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0], *index = c->in[1];
    struct mesh_tensor *out = c->out[0];
    struct range range = range_of("scatter_add", c);
    int r = check_numbers(c, &range, 1);
    add_elements add = add_elements_of[x->dtype];
    struct walk w;
    struct walk_at at;
    if (add == NULL) {
        return unsupported_dtype("scatter_add", x->dtype);
    }
    if ((c->attr->mode & INDEX_FROM_ZERO) != 0) {
        memset(out->data, 0, tensor_bytes(out));
    } else if (out->n > 0) {
        memcpy(out->data, x->data, tensor_bytes(out));
    }
    walk_elements(&w, index->shape, x->shape, c->attr->dim[0]);
    for (bool more = r == 0 && walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        add(c, &range, &w, &at);
    }
    return r;
}

int k_one_hot(const struct kernel_call *c)
{
    const struct mesh_tensor *index = c->in[0];
    int64_t n_classes = c->attr->index[0], *out = c->out[0]->data;
    struct range range = { .name = "one_hot", .extent = n_classes, .here = n_classes };
    int r = check_numbers(c, &range, 0);
    memset(out, 0, tensor_bytes(c->out[0]));
    for (int64_t i = 0; r == 0 && i < index->n; i++) {
        out[i * n_classes + number_at(index, i)] = 1;
    }
    return r;
}
