/* client/tensor/k_arrange.c - kernels that put elements into another order or place: permute, flip, roll, cat, narrow,
 * select, pad, repeat and the adjoint of repeat.
 *
 * All but the last are strided copies of boxes, which know an element by its size only.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/check.h"
#include "base/dtype.h"
#include "base/util.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"
#include "tensor/turn.h"
#include "tensor/walk.h"

struct strides {
    int64_t at[MESH_MAX_NDIM];
};

static struct strides dense(mesh_shape s)
{
    struct strides r = { .at = { 0 } };
    int64_t stride = 1;
    for (int d = s.ndim - 1; d >= 0; d--) {
        r.at[d] = stride;
        stride *= s.dim[d];
    }
    return r;
}

#define COPY_ROW(name, bytes)                                                                                          \
    static void name(char *restrict to, int64_t to_step, const char *restrict from, int64_t from_step, int64_t n)      \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            memcpy(to + i * to_step * bytes, from + i * from_step * bytes, bytes);                                     \
        }                                                                                                              \
    }
COPY_ROW(copy_row_1, 1)
COPY_ROW(copy_row_2, 2)
COPY_ROW(copy_row_4, 4)
COPY_ROW(copy_row_8, 8)

/* The dim of w, other than its last, along which neighbours of operand 1 lie side by side while along the last those of
 * operand 0 do: both together are a matrix to turn.  -1: there is none. */
static int turning_dim(const struct walk *w)
{
    int d = walk_step(w, 0) == 1 && walk_step(w, 1) != 1 ? w->ndim - 2 : -1;
    while (d >= 0 && w->stride[d][1] != 1) {
        d--;
    }
    return d;
}

/* Copies the box of w, whose dim d is a turning_dim(), as matrices. */
static void copy_turned(const struct walk *w, int d, char *to, const char *from, size_t item)
{
    struct walk outer;
    struct walk_at at;
    walk_init(&outer);
    for (int k = 0; k < w->ndim - 1; k++) {
        if (k != d) {
            walk_push(&outer, w->extent[k], w->stride[k]);
        }
    }
    struct turn t = { .to_step = w->stride[d][0],
                      .from_step = walk_step(w, 1),
                      .rows = walk_inner(w),
                      .columns = w->extent[d],
                      .item = item };
    for (bool more = walk_first(&outer, &at); more; more = walk_next(&outer, &at)) {
        for (int64_t i = 0; i < walk_inner(&outer); i++) {
            t.to = to + (at.offset[0] + i * walk_step(&outer, 0)) * (int64_t)item;
            t.from = from + (at.offset[1] + i * walk_step(&outer, 1)) * (int64_t)item;
            turn_matrix(&t);
        }
    }
}

/* Copies a box of elements; each side has a first element and strides (in elements) of its own. */
static void copy_box(mesh_shape box, char *to, const struct strides *to_strides, const char *from,
                     const struct strides *from_strides, size_t item)
{
    struct walk w;
    struct walk_at at;
    walk_init(&w);
    for (int d = 0; d < box.ndim; d++) {
        walk_push(&w, box.dim[d], (int64_t[WALK_OPERANDS]){ to_strides->at[d], from_strides->at[d] });
    }
    int64_t n = walk_inner(&w), to_step = walk_step(&w, 0), from_step = walk_step(&w, 1), bytes = (int64_t)item;
    bool is_run = n == 1 || (to_step == 1 && from_step == 1);
    int turning = turning_dim(&w);
    PRE(item == 1 || item == 2 || item == 4 || item == 8);
    if (turning >= 0 && !w.is_empty) {
        copy_turned(&w, turning, to, from, item);
        return;
    }
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        char *t = to + at.offset[0] * bytes;
        const char *f = from + at.offset[1] * bytes;
        if (is_run) {
            memcpy(t, f, (size_t)n * item);
        } else {
            (item == 4   ? copy_row_4
             : item == 8 ? copy_row_8
             : item == 1 ? copy_row_1
                         : copy_row_2)(t, to_step, f, from_step, n);
        }
    }
}

/* Copies a box between two dense tensors: from begins at from_begin along dim d, to at to_begin. */
static void copy_along(struct mesh_tensor *to, int64_t to_begin, const struct mesh_tensor *from, int64_t from_begin,
                       int d, int64_t length)
{
    struct strides to_strides = dense(to->shape), from_strides = dense(from->shape);
    mesh_shape box = from->shape;
    int64_t item = (int64_t)dtype_size(from->dtype);
    box.dim[d] = length;
    copy_box(box, (char *)to->data + to_begin * to_strides.at[d] * item, &to_strides,
             (const char *)from->data + from_begin * from_strides.at[d] * item, &from_strides, (size_t)item);
}

/* A permutation that only swaps two dims goes by tiles. */
static bool is_swap(const mesh_shape *dims, struct op_attr *ret_attr)
{
    int n = 0;
    for (int d = 0; d < dims->ndim; d++) {
        if (dims->dim[d] != d && n < 2) {
            ret_attr->dim[n] = d;
        }
        n += dims->dim[d] != d;
    }
    return n == 2;
}

int k_permute(const struct kernel_call *c)
{
    struct op_attr swap = { .keepdim = 0 };
    if (is_swap(&c->attr->shape, &swap)) {
        struct kernel_call call = *c;
        call.attr = &swap;
        return k_transpose(&call);
    }
    const struct mesh_tensor *x = c->in[0];
    struct mesh_tensor *out = c->out[0];
    struct strides to = dense(out->shape), of_x = dense(x->shape), from = { .at = { 0 } };
    for (int d = 0; d < out->shape.ndim; d++) {
        from.at[d] = of_x.at[c->attr->shape.dim[d]];
    }
    copy_box(out->shape, out->data, &to, x->data, &from, dtype_size(x->dtype));
    return 0;
}

int k_flip(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    struct strides to = dense(x->shape), from = to;
    int64_t first = 0;
    for (int d = 0; d < x->shape.ndim; d++) {
        if ((c->attr->dims >> d & 1U) != 0) {
            first += (x->shape.dim[d] - 1) * from.at[d];
            from.at[d] = -from.at[d];
        }
    }
    if (x->n > 0) {
        size_t item = dtype_size(x->dtype);
        copy_box(x->shape, c->out[0]->data, &to, (const char *)x->data + first * (int64_t)item, &from, item);
    }
    return 0;
}

int k_roll(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    int d = c->attr->dim[0];
    int64_t n = x->shape.dim[d], shift = n == 0 ? 0 : (c->attr->index[0] % n + n) % n;
    copy_along(c->out[0], shift, x, 0, d, n - shift);
    copy_along(c->out[0], 0, x, n - shift, d, shift);
    return 0;
}

int k_cat(const struct kernel_call *c)
{
    int d = c->attr->dim[0];
    int64_t begin = 0;
    for (int i = 0; i < OP_MAX_INPUTS && c->in[i] != NULL; i++) {
        int64_t length = c->in[i]->shape.dim[d];
        copy_along(c->out[0], begin, c->in[i], 0, d, length);
        begin += length;
    }
    return 0;
}

/* What this rank has of the wanted range [start, start + length) of dim d, put where it belongs; zero elsewhere.  A
 * rank that has all of the dim has all of the range. */
static void copy_range(const struct kernel_call *c, struct mesh_tensor *out, int64_t start, int64_t length)
{
    const struct mesh_tensor *x = c->in[0];
    int d = c->attr->dim[0];
    int64_t offset = c->offset[d], begin = MAX(start, offset), end = MIN(start + length, offset + x->shape.dim[d]);
    if (end - begin < length) {
        memset(out->data, 0, tensor_bytes(out));
    }
    if (begin < end) {
        copy_along(out, begin - start, x, begin - offset, d, end - begin);
    }
}

int k_narrow(const struct kernel_call *c)
{
    if (c->attr->mode != 0) { /* all of the dim, however it is split */
        return k_copy(c);
    }
    copy_range(c, c->out[0], c->attr->index[0], c->attr->index[1]);
    return 0;
}

int k_select(const struct kernel_call *c)
{
    struct mesh_tensor kept = *c->out[0]; /* with the dim that goes */
    kept.shape = c->in[0]->shape;
    kept.shape.dim[c->attr->dim[0]] = 1;
    copy_range(c, &kept, c->attr->index[0], 1);
    return 0;
}

int k_pad(const struct kernel_call *c)
{
    struct mesh_tensor *out = c->out[0];
    int r = 0;
    if (c->attr->value[0] < 0 || c->attr->value[0] > 0 || c->attr->value[0] != c->attr->value[0]) {
        struct box whole = { .ndim = out->shape.ndim };
        memcpy(whole.extent, out->shape.dim, sizeof whole.extent);
        r = tensor_fill(out, out->shape, &whole, &(struct fill){ .kind = FILL_VALUE, .a = c->attr->value[0] });
    } else if (out->n > c->in[0]->n) {
        memset(out->data, 0, tensor_bytes(out));
    }
    if (r == 0) {
        int d = c->attr->dim[0];
        copy_along(out, c->attr->index[0], c->in[0], 0, d, c->in[0]->shape.dim[d]);
    }
    return r;
}

/* --- repeat ------------------------------------------------------------------------------------------------------- */

/* What stands once at `run` (bytes) is written n times in a row: doubled, so that most of it is large copies. */
static void repeat_run(char *run, size_t bytes, int64_t n)
{
    size_t all = (size_t)n * bytes, done = bytes;
    while (done < all) {
        size_t more = MIN(done, all - done);
        memcpy(run + done, run, more);
        done += more;
    }
}

/* Within every block of the corner x of out, dim d has been filled for its first `extent` places: fills the rest of
 * it. */
static void repeat_along(struct mesh_tensor *out, mesh_shape x, int d)
{
    struct strides strides = dense(out->shape);
    size_t item = dtype_size(out->dtype), run = (size_t)(x.dim[d] * strides.at[d]) * item;
    struct walk w;
    struct walk_at at;
    walk_init(&w);
    for (int k = 0; k < d; k++) {
        walk_push(&w, x.dim[k], (int64_t[WALK_OPERANDS]){ strides.at[k] });
    }
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        for (int64_t i = 0; i < walk_inner(&w); i++) {
            char *block = (char *)out->data + (size_t)(at.offset[0] + i * walk_step(&w, 0)) * item;
            repeat_run(block, run, out->shape.dim[d] / x.dim[d]);
        }
    }
}

/* x with as many dims as `to`. */
static mesh_shape with_leading(mesh_shape x, int ndim)
{
    mesh_shape s = { .ndim = ndim };
    for (int d = 0; d < ndim; d++) {
        int from = d - (ndim - x.ndim);
        s.dim[d] = from >= 0 ? x.dim[from] : 1;
    }
    return s;
}

int k_repeat(const struct kernel_call *c)
{
    struct mesh_tensor *out = c->out[0];
    mesh_shape x = with_leading(c->in[0]->shape, out->shape.ndim);
    struct strides to = dense(out->shape), from = dense(x);
    if (out->n == 0) {
        return 0;
    }
    copy_box(x, out->data, &to, c->in[0]->data, &from, dtype_size(out->dtype));
    for (int d = x.ndim - 1; d >= 0; d--) {
        if (out->shape.dim[d] != x.dim[d]) {
            repeat_along(out, x, d);
        }
    }
    return 0;
}

#define FOLD(D, T, U, unused)                                                                                          \
    static void fold_row_##D(void *to, const void *from, int64_t n, int64_t period, int64_t first)                     \
    {                                                                                                                  \
        T *t = to;                                                                                                     \
        const T *f = from;                                                                                             \
        for (int64_t i = 0; i < n; i += period - first, first = 0) {                                                   \
            int64_t end = MIN(period - first, n - i);                                                                  \
            for (int64_t k = 0; k < end; k++) {                                                                        \
                t[first + k] = (T)((U)t[first + k] + (U)f[i + k]);                                                     \
            }                                                                                                          \
        }                                                                                                              \
    }
NUMBER_TYPES(FOLD, 0)

/* The first of n elements is element `first` of the period. */
typedef void (*fold_row)(void *to, const void *from, int64_t n, int64_t period, int64_t first);
#define FOLD_ENTRY(D, T, U, unused) [MESH_##D] = fold_row_##D,
static const fold_row fold_rows[N_DTYPES] = { NUMBER_TYPES(FOLD_ENTRY, 0) };

/* The place in the period where this rank's part of dy begins in dim d.  A dim that is not folded begins where x does;
 * so does one of which a rank has just one period (rules_fit_together() sees to it). */
static int64_t fold_begin(const struct kernel_call *c, mesh_shape x, int d)
{
    return c->in[0]->shape.dim[d] != x.dim[d] ? c->offset[d] % x.dim[d] : 0;
}

/* Where the row of dy with these leading indices belongs, in elements; advances them. */
static int64_t fold_place(const struct kernel_call *c, mesh_shape x, int64_t *index)
{
    mesh_shape dy = c->in[0]->shape;
    int64_t at = 0;
    for (int d = 0; d < dy.ndim - 1; d++) {
        at = at * x.dim[d] + (fold_begin(c, x, d) + index[d]) % x.dim[d];
    }
    for (int d = dy.ndim - 2; d >= 0; d--) {
        if (++index[d] < dy.dim[d]) {
            break;
        }
        index[d] = 0;
    }
    return at * x.dim[dy.ndim - 1];
}

int k_repeat_backward(const struct kernel_call *c)
{
    const struct mesh_tensor *dy = c->in[0];
    struct mesh_tensor *out = c->out[0];
    size_t item = dtype_size(dy->dtype);
    int64_t index[MESH_MAX_NDIM] = { 0 };
    fold_row fold = fold_rows[dy->dtype];
    if (fold == NULL) {
        return unsupported_dtype("repeat_backward", dy->dtype);
    }
    memset(out->data, 0, tensor_bytes(out));
    if (dy->n == 0) {
        return 0;
    }
    if (dy->shape.ndim == 0) {
        fold(out->data, dy->data, 1, 1, 0);
        return 0;
    }
    mesh_shape x = with_leading(out->shape, dy->shape.ndim);
    int last = dy->shape.ndim - 1;
    int64_t row = dy->shape.dim[last], n_rows = dy->n / row;
    for (int64_t i = 0; i < n_rows; i++) {
        char *to = (char *)out->data + (size_t)fold_place(c, x, index) * item;
        fold(to, (const char *)dy->data + (size_t)(i * row) * item, row, x.dim[last], fold_begin(c, x, last));
    }
    return 0;
}
