/* client/dtensor/shapes_conv.c - shape functions of two-dimensional convolution and its gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/shapes.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "tensor/shape.h"

static int check_inputs(const struct op_shapes *s)
{
    char x[SHAPE_TEXT_BYTES], w[SHAPE_TEXT_BYTES];
    if (s->in[0].ndim != 4 || s->in[1].ndim != 4) {
        return err_set(MESH_ESHAPE, "%s: %s and %s: images [n, c, h, w] and a weight [o, c, kh, kw] are needed",
                       s->name, shape_text(s->in[0], x, sizeof x), shape_text(s->in[1], w, sizeof w));
    }
    return dtype_kind(s->in_dtype[0]) == DTYPE_FLOAT
               ? shape_same_dtypes(s, ALL_INPUTS)
               : err_set(MESH_EUNSUPPORTED, "%s works on floating dtypes, not on %s", s->name,
                         dtype_name(s->in_dtype[0]));
}

/* Not given: 1. */
static int check_channels(struct op_shapes *s)
{
    mesh_shape x = s->in[0], w = s->in[1];
    int32_t groups = s->attr.groups == 0 ? 1 : s->attr.groups;
    s->attr.groups = groups;
    for (int d = 0; d < 2; d++) {
        s->attr.dilation[d] = s->attr.dilation[d] == 0 ? 1 : s->attr.dilation[d];
    }
    if (groups < 1 || w.dim[0] % groups != 0 || x.dim[1] % groups != 0) {
        return err_set(MESH_EINVAL, "%s: %d groups do not divide %lld channels of images and %lld of the result",
                       s->name, (int)groups, (long long)x.dim[1], (long long)w.dim[0]);
    }
    return x.dim[1] / groups == w.dim[1] ? 0
                                         : err_set(MESH_ESHAPE, "%s: images of %lld channels, a weight for %lld",
                                                   s->name, (long long)x.dim[1], (long long)w.dim[1] * groups);
}

static int check_places(const struct op_shapes *s, int d, int64_t *ret_places)
{
    int64_t stride = s->attr.dim[d], padding = s->attr.index[d], dilation = s->attr.dilation[d];
    int64_t taps = s->in[1].dim[2 + d], places = s->in[0].dim[2 + d];
    int64_t reach = taps < 1 ? 0 : (taps - 1) * dilation + 1;
    if (stride < 1 || padding < 0 || padding > INT32_MAX || dilation < 1) {
        return err_set(
            MESH_EINVAL,
            "%s: stride %lld, padding %lld, dilation %lld; a stride and a dilation are at least 1, a padding "
            "at least 0",
            s->name, (long long)stride, (long long)padding, (long long)dilation);
    }
    if (taps < 1 || reach > places + 2 * padding) {
        return err_set(MESH_ESHAPE, "%s: a weight of extent %lld does not fit %lld places and %lld of padding", s->name,
                       (long long)reach, (long long)places, (long long)(2 * padding));
    }
    *ret_places = (places + 2 * padding - reach) / stride + 1;
    return 0;
}

int op_shape_conv2d(struct op_shapes *s)
{
    mesh_shape out = s->in[0];
    int r = check_inputs(s);
    r = r < 0 ? r : check_channels(s);
    for (int d = 0; r == 0 && d < 2; d++) {
        r = check_places(s, d, &out.dim[2 + d]);
    }
    out.dim[1] = s->in[1].dim[0];
    s->out[0] = out;
    s->out_dtype[0] = s->in_dtype[0];
    return r;
}

/* The result's shape is known from the forward pass, which must make dy of these images and this weight. */
static int gradient(struct op_shapes *s, mesh_shape images, mesh_shape weight)
{
    char text[SHAPE_TEXT_BYTES];
    struct op_shapes forward = *s;
    s->out[0] = s->attr.shape;
    s->out_dtype[0] = s->in_dtype[0];
    forward.in[0] = images;
    forward.in[1] = weight;
    int r = check_inputs(s);
    r = r < 0 ? r : op_shape_conv2d(&forward);
    s->attr.groups = forward.attr.groups;
    memcpy(s->attr.dilation, forward.attr.dilation, sizeof s->attr.dilation);
    return r < 0 || shape_equal(forward.out[0], s->in[0])
               ? r
               : err_set(MESH_ESHAPE, "%s: %s is no result of that convolution", s->name,
                         shape_text(s->in[0], text, sizeof text));
}

int op_shape_conv2d_grad_input(struct op_shapes *s)
{
    return gradient(s, s->attr.shape, s->in[1]);
}

int op_shape_conv2d_grad_weight(struct op_shapes *s)
{
    return gradient(s, s->in[1], s->attr.shape);
}
