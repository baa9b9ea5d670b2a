/* client/dtensor/shapes_pointwise.c - shape functions of the pointwise family, triangles and casts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/shapes.h"

#include <math.h>

#include "base/dtype.h"
#include "base/error.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"

static int broadcast(const struct op_shapes *s, mesh_shape *ret_shape)
{
    mesh_shape out = s->in[0];
    int r = 0;
    for (int i = 1; r == 0 && i < s->n_in; i++) {
        r = shape_broadcast(out, s->in[i], s->name, &out);
    }
    *ret_shape = out;
    return r;
}

static int check_bool(const struct op_shapes *s, int i)
{
    return s->in_dtype[i] == MESH_BOOL
               ? 0
               : err_set(MESH_EINVAL, "%s: argument %d is %s; it must be bool, such as mesh_gt() gives", s->name, i + 1,
                         dtype_name(s->in_dtype[i]));
}

/* A C number never widens the tensor's dtype. */
static int check_number(const struct op_shapes *s, double v)
{
    mesh_dtype t = s->in_dtype[0];
    return number_fits(t, v) ? 0
                             : err_set(MESH_EINVAL,
                                       "%s: %g is not a number that a tensor of %s can hold; mesh_cast() it to a "
                                       "floating dtype first",
                                       s->name, v, dtype_name(t));
}

int op_shape_number(struct op_shapes *s)
{
    s->out[0] = s->in[0];
    s->out_dtype[0] = s->in_dtype[0];
    return shape_needs_numbers(s);
}

/* An infinite bound is none. */
int op_shape_clamp(struct op_shapes *s)
{
    int r = op_shape_number(s);
    for (int k = 0; r == 0 && k < 2; k++) {
        double v = s->attr.value[k];
        r = isnan(v)   ? err_set(MESH_EINVAL, "%s: a bound is NaN; -INFINITY and INFINITY mean no bound", s->name)
            : isinf(v) ? 0
                       : check_number(s, v);
    }
    return r;
}

int op_shape_pow_scalar(struct op_shapes *s)
{
    int r = op_shape_number(s);
    r = r < 0 ? r : check_number(s, s->attr.value[0]);
    if (r == 0 && dtype_kind(s->in_dtype[0]) == DTYPE_INT && s->attr.value[0] < 0) {
        r = err_set(MESH_EINVAL,
                    "%s: %s to the negative power %g is not whole; mesh_cast() it to a floating dtype first", s->name,
                    dtype_name(s->in_dtype[0]), s->attr.value[0]);
    }
    return r;
}

/* All inputs of one dtype, and so the result. */
int op_shape_broadcast_all(struct op_shapes *s)
{
    int r = broadcast(s, &s->out[0]);
    for (int i = 1; r == 0 && i < s->n_in; i++) {
        r = shape_same_dtypes(s, 0x1 | UINT32_C(1) << i);
    }
    s->out_dtype[0] = s->in_dtype[0];
    return r;
}

int op_shape_broadcast_all_float(struct op_shapes *s)
{
    return dtype_kind(s->in_dtype[0]) == DTYPE_FLOAT
               ? op_shape_broadcast_all(s)
               : err_set(MESH_EUNSUPPORTED, "%s: %s is not a floating dtype", s->name, dtype_name(s->in_dtype[0]));
}

int op_shape_pow(struct op_shapes *s)
{
    int r = op_shape_number(s);
    return r < 0 ? r : op_shape_broadcast_all(s);
}

int op_shape_bits(struct op_shapes *s)
{
    return dtype_kind(s->in_dtype[0]) == DTYPE_FLOAT
               ? err_set(MESH_EUNSUPPORTED, "%s: %s has no bits of its own; integers and bool have", s->name,
                         dtype_name(s->in_dtype[0]))
               : op_shape_broadcast_all(s);
}

/* One input, or several of one dtype; the result is true or false. */
int op_shape_truth(struct op_shapes *s)
{
    int r = op_shape_broadcast_all(s);
    s->out_dtype[0] = MESH_BOOL;
    return r;
}

int op_shape_where(struct op_shapes *s)
{
    int r = check_bool(s, 0);
    r = r < 0 ? r : shape_same_dtypes(s, 0x6);
    r = r < 0 ? r : broadcast(s, &s->out[0]);
    s->out_dtype[0] = s->in_dtype[1];
    return r;
}

int op_shape_masked_fill(struct op_shapes *s)
{
    int r = check_bool(s, 1);
    r = r < 0 ? r : check_number(s, s->attr.value[0]);
    r = r < 0 ? r : broadcast(s, &s->out[0]);
    s->out_dtype[0] = s->in_dtype[0];
    return r;
}

int op_shape_triangle(struct op_shapes *s)
{
    char text[SHAPE_TEXT_BYTES];
    s->out[0] = s->in[0];
    s->out_dtype[0] = s->in_dtype[0];
    return s->in[0].ndim >= 2 ? 0
                              : err_set(MESH_ESHAPE, "%s: %s has no rows and columns: at least 2 dims are needed",
                                        s->name, shape_text(s->in[0], text, sizeof text));
}

int op_shape_cast(struct op_shapes *s)
{
    s->out[0] = s->in[0];
    s->out_dtype[0] = (mesh_dtype)s->attr.mode;
    return dtype_is_valid(s->attr.mode) ? 0 : err_set(MESH_EINVAL, "%s: %d is not a dtype", s->name, s->attr.mode);
}
