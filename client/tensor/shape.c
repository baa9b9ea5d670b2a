/* client/tensor/shape.c - arithmetic of shapes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/shape.h"

#include <stdio.h>

#include "base/error.h"

#define SHAPE_MAX_ELEMENTS (INT64_C(1) << 62)

int64_t shape_numel(mesh_shape s)
{
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++) {
        n *= s.dim[d];
    }
    return n;
}

/* The product without zeros stays under the limit as well, so that strides of an empty tensor do not overflow either. */
static bool is_too_large(mesh_shape s)
{
    int64_t n = 1;
    for (int d = 0; d < s.ndim; d++) {
        int64_t extent = s.dim[d] > 1 ? s.dim[d] : 1;
        if (n > SHAPE_MAX_ELEMENTS / extent) {
            return true;
        }
        n *= extent;
    }
    return false;
}

int shape_check(mesh_shape s, const char *what)
{
    if (s.ndim < 0 || s.ndim > MESH_MAX_NDIM) {
        return err_set(MESH_ESHAPE, "%s: a shape of %d dimensions; 0 to %d are possible", what, s.ndim, MESH_MAX_NDIM);
    }
    for (int d = 0; d < s.ndim; d++) {
        if (s.dim[d] < 0) {
            return err_set(MESH_ESHAPE, "%s: the extent of dimension %d is %lld; it cannot be negative", what, d,
                           (long long)s.dim[d]);
        }
    }
    if (is_too_large(s)) {
        char text[SHAPE_TEXT_BYTES];
        return err_set(MESH_ESHAPE, "%s: %s has more than 2^62 elements", what, shape_text(s, text, sizeof text));
    }
    return 0;
}

bool shape_equal(mesh_shape a, mesh_shape b)
{
    if (a.ndim != b.ndim) {
        return false;
    }
    for (int d = 0; d < a.ndim; d++) {
        if (a.dim[d] != b.dim[d]) {
            return false;
        }
    }
    return true;
}

const char *shape_text(mesh_shape s, char *buf, size_t cap)
{
    size_t at = 0;
    if (cap == 0) {
        return "";
    }
    at += (size_t)snprintf(buf, cap, "[");
    for (int d = 0; d < s.ndim && d < MESH_MAX_NDIM && at < cap; d++) {
        at += (size_t)snprintf(buf + at, cap - at, d == 0 ? "%lld" : ",%lld", (long long)s.dim[d]);
    }
    if (at < cap) {
        snprintf(buf + at, cap - at, "]");
    }
    return buf;
}

int shape_dim(mesh_shape s, int64_t dim, const char *what, int *ret_dim)
{
    if (dim < -s.ndim || dim >= s.ndim) {
        char text[SHAPE_TEXT_BYTES];
        return err_set(MESH_EINVAL, "%s: there is no dimension %lld in %s, which has %d", what, (long long)dim,
                       shape_text(s, text, sizeof text), s.ndim);
    }
    *ret_dim = (int)(dim < 0 ? dim + s.ndim : dim);
    return 0;
}

int64_t shape_outer(mesh_shape s, int dim)
{
    int64_t n = 1;
    for (int d = 0; d < dim; d++) {
        n *= s.dim[d];
    }
    return n;
}

int64_t shape_inner(mesh_shape s, int dim)
{
    int64_t n = 1;
    for (int d = dim + 1; d < s.ndim; d++) {
        n *= s.dim[d];
    }
    return n;
}

int shape_broadcast(mesh_shape a, mesh_shape b, const char *what, mesh_shape *ret_shape)
{
    mesh_shape s = { .ndim = a.ndim > b.ndim ? a.ndim : b.ndim };
    for (int d = 0; d < s.ndim; d++) {
        int in_a = d - (s.ndim - a.ndim), in_b = d - (s.ndim - b.ndim); /* aligned at the last dimension */
        int64_t m = in_a < 0 ? 1 : a.dim[in_a], n = in_b < 0 ? 1 : b.dim[in_b];
        if (m != n && m != 1 && n != 1) {
            char text_a[SHAPE_TEXT_BYTES], text_b[SHAPE_TEXT_BYTES];
            return err_set(MESH_ESHAPE, "%s: %s and %s do not broadcast: %lld and %lld in dimension %d of the result",
                           what, shape_text(a, text_a, sizeof text_a), shape_text(b, text_b, sizeof text_b),
                           (long long)m, (long long)n, d);
        }
        s.dim[d] = m == 1 ? n : m;
    }
    *ret_shape = s;
    return 0;
}
