/* client/dtensor/shapes_move.c - shape functions of operators that put elements elsewhere, or choose them by numbers.
 *
 * Dims come normalised or negative, and leave normalised; sizes of the whole that a kernel needs on its part are added to the
 * arguments here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/shapes.h"

#include "base/dtype.h"
#include "base/error.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"

static void result(struct op_shapes *s, mesh_shape shape)
{
    s->out[0] = shape;
    s->out_dtype[0] = s->in_dtype[0];
}

/* dim[0] within the dims of input 0. */
static int find_dim(struct op_shapes *s)
{
    int d = 0, r = shape_dim(s->in[0], s->attr.dim[0], s->name, &d);
    s->attr.dim[0] = d;
    return r;
}

static int need_index(const struct op_shapes *s, int i)
{
    return dtype_kind(s->in_dtype[i]) == DTYPE_INT
               ? 0
               : err_set(MESH_EINVAL, "%s: argument %d is %s: an index tensor has an integer dtype", s->name, i + 1,
                         dtype_name(s->in_dtype[i]));
}

int op_shape_permute(struct op_shapes *s)
{
    mesh_shape x = s->in[0], out = x, *dims = &s->attr.shape;
    uint32_t seen = 0;
    if (dims->ndim != x.ndim) {
        return err_set(MESH_ESHAPE, "%s: %d dims given for a tensor of %d", s->name, dims->ndim, x.ndim);
    }
    for (int d = 0; d < x.ndim; d++) {
        int from = 0, r = shape_dim(x, dims->dim[d], s->name, &from);
        if (r < 0) {
            return r;
        }
        if ((seen >> from & 1U) != 0) {
            return err_set(MESH_EINVAL, "%s: dim %d is named twice", s->name, from);
        }
        seen |= 1U << from;
        dims->dim[d] = from;
        out.dim[d] = x.dim[from];
    }
    result(s, out);
    return 0;
}

int op_shape_flip(struct op_shapes *s)
{
    if (s->attr.dims >> s->in[0].ndim != 0) {
        return err_set(MESH_EINVAL, "%s: a dim that a tensor of %d dims does not have", s->name, s->in[0].ndim);
    }
    result(s, s->in[0]);
    return 0;
}

int op_shape_roll(struct op_shapes *s)
{
    result(s, s->in[0]);
    return find_dim(s);
}

int op_shape_cat(struct op_shapes *s)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    mesh_shape out = s->in[0];
    int r = find_dim(s), dim = s->attr.dim[0];
    for (int i = 1; r == 0 && i < s->n_in && s->has[i]; i++) {
        bool fits = s->in[i].ndim == out.ndim;
        for (int d = 0; fits && d < out.ndim; d++) {
            fits = d == dim || s->in[i].dim[d] == out.dim[d];
        }
        if (!fits) {
            return err_set(MESH_ESHAPE, "%s: %s and %s along dim %d: all other extents must be equal", s->name,
                           shape_text(s->in[0], a, sizeof a), shape_text(s->in[i], b, sizeof b), dim);
        }
        out.dim[dim] += s->in[i].dim[dim];
        r = shape_same_dtypes(s, 0x1 | UINT32_C(1) << i);
    }
    result(s, out);
    return r;
}

int op_shape_narrow(struct op_shapes *s)
{
    char text[SHAPE_TEXT_BYTES];
    mesh_shape out = s->in[0];
    int r = find_dim(s), dim = s->attr.dim[0];
    if (r < 0) {
        return r;
    }
    int64_t n = out.dim[dim], start = s->attr.index[0], length = s->attr.index[1];
    start += start < 0 ? n : 0;
    if (length < 0 || start < 0 || start > n || length > n - start) {
        return err_set(MESH_EINVAL, "%s: %lld places from place %lld on are not within dim %d of %s", s->name,
                       (long long)length, (long long)s->attr.index[0], dim, shape_text(out, text, sizeof text));
    }
    s->attr.index[0] = start;
    s->attr.mode = length == n;
    out.dim[dim] = length;
    result(s, out);
    return 0;
}

int op_shape_select(struct op_shapes *s)
{
    char text[SHAPE_TEXT_BYTES];
    mesh_shape x = s->in[0], out = { .ndim = 0 };
    int r = find_dim(s), dim = s->attr.dim[0];
    if (r < 0) {
        return r;
    }
    int64_t n = x.dim[dim], at = s->attr.index[0];
    if (at < -n || at >= n) {
        return err_set(MESH_EINVAL, "%s: index %lld is outside dim %d of %s", s->name, (long long)at, dim,
                       shape_text(x, text, sizeof text));
    }
    s->attr.index[0] = at < 0 ? at + n : at;
    for (int d = 0; d < x.ndim; d++) {
        if (d != dim) {
            out.dim[out.ndim++] = x.dim[d];
        }
    }
    result(s, out);
    return 0;
}

int op_shape_pad(struct op_shapes *s)
{
    mesh_shape out = s->in[0];
    int r = find_dim(s), dim = s->attr.dim[0];
    int64_t before = s->attr.index[0], after = s->attr.index[1], most = INT64_MAX / 4;
    if (r < 0) {
        return r;
    }
    if (before < 0 || after < 0 || before > most || after > most) {
        return err_set(MESH_EINVAL, "%s: %lld and %lld places: neither may be negative (mesh_narrow() cuts off)",
                       s->name, (long long)before, (long long)after);
    }
    if (!number_fits(s->in_dtype[0], s->attr.value[0])) {
        return err_set(MESH_EINVAL, "%s: %s cannot hold the value %g", s->name, dtype_name(s->in_dtype[0]),
                       s->attr.value[0]);
    }
    out.dim[dim] += before + after;
    result(s, out);
    return 0;
}

/* small fits large, every dim a whole number of times. */
static int check_repeats(const struct op_shapes *s, mesh_shape small, mesh_shape large)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    int lead = large.ndim - small.ndim;
    bool fits = lead >= 0;
    for (int d = 0; fits && d < small.ndim; d++) {
        int64_t n = small.dim[d], m = large.dim[d + lead];
        fits = n == m || (n > 0 && m % n == 0);
    }
    return fits ? 0
                : err_set(MESH_ESHAPE, "%s: %s does not fit %s a whole number of times in every dim", s->name,
                          shape_text(small, a, sizeof a), shape_text(large, b, sizeof b));
}

int op_shape_repeat(struct op_shapes *s)
{
    int r = shape_check(s->attr.shape, s->name);
    result(s, s->attr.shape);
    return r < 0 ? r : check_repeats(s, s->in[0], s->attr.shape);
}

int op_shape_repeat_backward(struct op_shapes *s)
{
    int r = shape_needs_numbers(s);
    r = r < 0 ? r : shape_check(s->attr.shape, s->name);
    result(s, s->attr.shape);
    return r < 0 ? r : check_repeats(s, s->attr.shape, s->in[0]);
}

/* x with dim[0] replaced by the dims of the index. */
static int taken(const struct op_shapes *s, mesh_shape index, mesh_shape *ret_shape)
{
    mesh_shape out = { .ndim = 0 }, x = s->in[0];
    if (x.ndim + index.ndim - 1 > MESH_MAX_NDIM) {
        return err_set(MESH_ESHAPE, "%s: the result would have %d dims; at most %d", s->name, x.ndim + index.ndim - 1,
                       MESH_MAX_NDIM);
    }
    for (int d = 0; d < x.ndim; d++) {
        if (d != s->attr.dim[0]) {
            out.dim[out.ndim++] = x.dim[d];
            continue;
        }
        for (int k = 0; k < index.ndim; k++) {
            out.dim[out.ndim++] = index.dim[k];
        }
    }
    *ret_shape = out;
    return 0;
}

int op_shape_take(struct op_shapes *s)
{
    mesh_shape out = { .ndim = 0 };
    int r = find_dim(s);
    r = r < 0 ? r : need_index(s, 1);
    r = r < 0 ? r : taken(s, s->in[1], &out);
    if (r == 0) {
        s->attr.index[0] = s->in[0].dim[s->attr.dim[0]];
    }
    result(s, out);
    return r;
}

int op_shape_take_backward(struct op_shapes *s)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    mesh_shape dy = { .ndim = 0 };
    int r = shape_needs_numbers(s);
    r = r < 0 ? r : find_dim(s);
    r = r < 0 ? r : need_index(s, 2);
    r = r < 0 ? r : shape_same_dtypes(s, 0x3);
    r = r < 0 ? r : taken(s, s->in[2], &dy);
    if (r == 0 && !shape_equal(dy, s->in[1])) {
        r = err_set(MESH_ESHAPE, "%s: dy is %s, not %s", s->name, shape_text(s->in[1], a, sizeof a),
                    shape_text(dy, b, sizeof b));
    }
    if (r == 0) {
        s->attr.index[0] = s->in[0].dim[s->attr.dim[0]];
    }
    result(s, s->in[0]);
    return r;
}

/* The index has the dims of x, no longer than x's except along dim[0]. */
static int check_elements(struct op_shapes *s)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    int r = find_dim(s), dim = s->attr.dim[0];
    r = r < 0 ? r : need_index(s, 1);
    bool fits = s->in[0].ndim == s->in[1].ndim;
    for (int d = 0; r == 0 && fits && d < s->in[0].ndim; d++) {
        fits = d == dim || s->in[1].dim[d] <= s->in[0].dim[d];
    }
    if (r == 0 && !fits) {
        r = err_set(
            MESH_ESHAPE,
            "%s: x is %s and the index %s: the index must have as many dims, and be no longer than x in any but "
            "dim %d",
            s->name, shape_text(s->in[0], a, sizeof a), shape_text(s->in[1], b, sizeof b), dim);
    }
    if (r == 0) {
        s->attr.index[0] = s->in[0].dim[dim];
    }
    return r;
}

int op_shape_gather(struct op_shapes *s)
{
    int r = check_elements(s);
    result(s, s->in[1]);
    return r;
}

int op_shape_scatter_add(struct op_shapes *s)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    int r = shape_needs_numbers(s);
    r = r < 0 ? r : check_elements(s);
    r = r < 0 ? r : shape_same_dtypes(s, 0x5);
    if (r == 0 && !shape_equal(s->in[1], s->in[2])) {
        r = err_set(MESH_ESHAPE, "%s: index %s and src %s must have one shape", s->name,
                    shape_text(s->in[1], a, sizeof a), shape_text(s->in[2], b, sizeof b));
    }
    result(s, s->in[0]);
    return r;
}

int op_shape_one_hot(struct op_shapes *s)
{
    int r = need_index(s, 0);
    mesh_shape out = s->in[0];
    if (r == 0 && (s->attr.index[0] < 1 || out.ndim == MESH_MAX_NDIM)) {
        r = err_set(MESH_EINVAL, "%s: %lld classes for a tensor of %d dims: at least one class, at most %d dims before",
                    s->name, (long long)s->attr.index[0], out.ndim, MESH_MAX_NDIM - 1);
    }
    if (r == 0) {
        out.dim[out.ndim++] = s->attr.index[0];
    }
    s->out[0] = out;
    s->out_dtype[0] = MESH_I64;
    return r;
}
