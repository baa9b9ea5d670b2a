/* client/dtensor/shapes.c - shape functions of elementwise operators, reductions, losses.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/shapes.h"

#include "base/dtype.h"
#include "base/error.h"
#include "tensor/shape.h"

int shape_same_dtypes(const struct op_shapes *s, uint32_t which)
{
    int first = -1;
    for (int i = 0; i < s->n_in; i++) {
        if ((which >> i & 1) == 0 || !s->has[i]) {
            continue;
        }
        first = first < 0 ? i : first;
        if (s->in_dtype[i] != s->in_dtype[first]) {
            return err_set(MESH_EINVAL, "%s: argument %d is %s but argument %d is %s: they must have one dtype",
                           s->name, first + 1, dtype_name(s->in_dtype[first]), i + 1, dtype_name(s->in_dtype[i]));
        }
    }
    return 0;
}

int shape_needs_numbers(const struct op_shapes *s)
{
    return dtype_kind(s->in_dtype[0]) != DTYPE_BOOL
               ? 0
               : err_set(MESH_EUNSUPPORTED, "%s does not work on bool; mesh_cast() it to a number first", s->name);
}

static int floats_only(const struct op_shapes *s)
{
    return dtype_kind(s->in_dtype[0]) == DTYPE_FLOAT
               ? shape_same_dtypes(s, ALL_INPUTS)
               : err_set(MESH_EUNSUPPORTED, "%s: %s is not a floating dtype", s->name, dtype_name(s->in_dtype[0]));
}

static int same_shapes(const struct op_shapes *s, int a, int b)
{
    char x[SHAPE_TEXT_BYTES], y[SHAPE_TEXT_BYTES];
    return shape_equal(s->in[a], s->in[b])
               ? 0
               : err_set(MESH_ESHAPE, "%s: %s and %s must be equal", s->name, shape_text(s->in[a], x, sizeof x),
                         shape_text(s->in[b], y, sizeof y));
}

static void result(struct op_shapes *s, int o, mesh_shape shape, mesh_dtype t)
{
    s->out[o] = shape;
    s->out_dtype[o] = t;
}

int op_shape_broadcast(struct op_shapes *s)
{
    mesh_shape out = { .ndim = 0 };
    int r = shape_needs_numbers(s);
    r = r < 0 ? r : shape_same_dtypes(s, ALL_INPUTS);
    r = r < 0 ? r : shape_broadcast(s->in[0], s->in[1], s->name, &out);
    result(s, 0, out, s->in_dtype[0]);
    return r;
}

int op_shape_broadcast_float(struct op_shapes *s)
{
    int r = floats_only(s);
    return r < 0 ? r : op_shape_broadcast(s);
}

int op_shape_like_first(struct op_shapes *s)
{
    int r = shape_same_dtypes(s, ALL_INPUTS);
    for (int i = 1; r == 0 && i < s->n_in; i++) {
        r = same_shapes(s, 0, i);
    }
    result(s, 0, s->in[0], s->in_dtype[0]);
    return r;
}

int op_shape_like_first_float(struct op_shapes *s)
{
    int r = floats_only(s);
    return r < 0 ? r : op_shape_like_first(s);
}

int op_shape_along(struct op_shapes *s)
{
    int dim = 0, r = floats_only(s);
    if (r == 0 && s->in[0].ndim == 0) {
        return err_set(MESH_ESHAPE, "%s: a scalar has no dim to work along", s->name);
    }
    r = r < 0 ? r : shape_dim(s->in[0], s->attr.dim[0], s->name, &dim);
    s->attr.dim[0] = dim;
    return r < 0 ? r : op_shape_like_first(s);
}

/* Sums of integers and truth values are counted in i64. */
int op_shape_reduce(struct op_shapes *s)
{
    mesh_shape out = { .ndim = 0 }, in = s->in[0];
    if (in.ndim < 32 && s->attr.dims >> in.ndim != 0) {
        return err_set(MESH_EINVAL, "%s: reduces a dim that a tensor of %d dims does not have", s->name, in.ndim);
    }
    for (int d = 0; d < in.ndim; d++) {
        bool goes = (s->attr.dims >> d & 1U) != 0;
        if (!goes || s->attr.keepdim) {
            out.dim[out.ndim++] = goes ? 1 : in.dim[d];
        }
    }
    result(s, 0, out, dtype_kind(s->in_dtype[0]) == DTYPE_FLOAT ? s->in_dtype[0] : MESH_I64);
    return 0;
}

int op_shape_mean(struct op_shapes *s)
{
    int r = floats_only(s);
    r = r < 0 ? r : op_shape_reduce(s);
    double count = 1;
    for (int d = 0; d < s->in[0].ndim; d++) {
        count *= (s->attr.dims >> d & 1U) != 0 ? (double)s->in[0].dim[d] : 1;
    }
    s->attr.value[0] = 1 / count; /* the global count, so that uneven shards weigh right; of nothing: 0 * inf is NaN */
    return r;
}

static int check_loss(const struct op_shapes *s, int logits, int target)
{
    char x[SHAPE_TEXT_BYTES], y[SHAPE_TEXT_BYTES];
    mesh_shape l = s->in[logits], t = s->in[target], rows = { .ndim = l.ndim - 1 };
    int class_dim = l.ndim == 1 ? 0 : 1;
    for (int d = 0, k = 0; d < l.ndim; d++) {
        if (d != class_dim) {
            rows.dim[k++] = l.dim[d];
        }
    }
    if (l.ndim == 0 || !shape_equal(rows, t)) {
        return err_set(MESH_ESHAPE,
                       "%s: logits %s and target %s: logits are [C], [rows,C] or [rows,C,...], the target the same "
                       "without the classes C",
                       s->name, shape_text(l, x, sizeof x), shape_text(t, y, sizeof y));
    }
    if (dtype_kind(s->in_dtype[logits]) != DTYPE_FLOAT || dtype_kind(s->in_dtype[target]) != DTYPE_INT) {
        return err_set(MESH_EINVAL,
                       "%s: logits of %s with targets of %s: logits are floating, targets are class numbers", s->name,
                       dtype_name(s->in_dtype[logits]), dtype_name(s->in_dtype[target]));
    }
    return 0;
}

int op_shape_cross_entropy(struct op_shapes *s)
{
    int r = check_loss(s, 0, 1);
    if (r < 0) {
        return r;
    }
    s->attr.value[1] = (double)s->in[0].dim[s->in[0].ndim == 1 ? 0 : 1];
    result(s, 0, s->n_out == 1 ? s->in[1] : MESH_SCALAR_SHAPE, s->in_dtype[0]);
    if (s->n_out == 2) {
        result(s, 1, MESH_SCALAR_SHAPE, s->in_dtype[0]);
    }
    return 0;
}

int op_shape_cross_entropy_grad(struct op_shapes *s)
{
    int r = check_loss(s, 1, 2);
    if (r < 0) {
        return r;
    }
    if (s->in[0].ndim != 0) {
        r = same_shapes(s, 0, 2);
    }
    if (r == 0 && s->in_dtype[0] != s->in_dtype[1]) {
        r = err_set(MESH_EINVAL, "%s: scale is %s but logits are %s", s->name, dtype_name(s->in_dtype[0]),
                    dtype_name(s->in_dtype[1]));
    }
    s->attr.value[1] = (double)s->in[1].dim[s->in[1].ndim == 1 ? 0 : 1];
    result(s, 0, s->in[1], s->in_dtype[1]);
    return r;
}
