/* tests/truth/conformance_parts.c - the part of a logical tensor that a rank holds, written from the rules and not from the
 * library: what is tested must not be its own judge.
 *
 * Shard    ceil chunks: part c of m over extent n is [min(n, c k), min(n, (c + 1) k)), k = ceil(n / m); mesh dims in order.
 * Partial  with n ranks on that mesh dim and element index i (row-major in the whole tensor), coordinate c:
 *            sum       c > 0 holds ((5i + 3c) mod 7 - 3) / 4, c = 0 the rest
 *            avg       the same, the rest taken from n times the value
 *            max, min  c = i mod n holds the value, the others less, or more, by (i + c) mod 3 + 1
 *            prod      c = 0 holds the value, the others 1
 *          Several Partial mesh dims split dim by dim.  Integers: shares of a sum in whole numbers, without the / 4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/conformance.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define ELEMENT_TYPES(X) \
    X(MESH_F32, float) X(MESH_F64, double) X(MESH_I8, int8_t) X(MESH_U8, uint8_t) X(MESH_I32, int32_t) \
    X(MESH_I64, int64_t) X(MESH_BOOL, bool)
/* clang-format on */

size_t item_bytes(mesh_dtype t)
{
    switch ((int)t) {
#define BYTES(D, T)                                                                                                    \
    case D:                                                                                                            \
        return sizeof(T);
        ELEMENT_TYPES(BYTES)
    default:
        return 0;
    }
}

bool is_float(mesh_dtype t)
{
    return t == MESH_F32 || t == MESH_F64;
}

double number_at(mesh_dtype t, const void *data, int64_t i)
{
    switch ((int)t) {
#define NUMBER(D, T)                                                                                                   \
    case D:                                                                                                            \
        return (double)((const T *)data)[i];
        ELEMENT_TYPES(NUMBER)
    default:
        abort();
    }
}

int64_t whole_at(mesh_dtype t, const void *data, int64_t i)
{
    switch ((int)t) {
#define WHOLE(D, T)                                                                                                    \
    case D:                                                                                                            \
        return (int64_t)((const T *)data)[i];
        ELEMENT_TYPES(WHOLE)
    default:
        abort();
    }
}

void number_put(mesh_dtype t, void *data, int64_t i, double v)
{
    switch ((int)t) {
#define PUT(D, T)                                                                                                      \
    case D:                                                                                                            \
        ((T *)data)[i] = (T)v;                                                                                         \
        break;
        ELEMENT_TYPES(PUT)
    default:
        abort();
    }
}

int64_t numel(mesh_shape s)
{
    uint64_t n = 1; /* a shape from a file may be absurd: then no list of data has that length */
    for (int d = 0; d < s.ndim; d++) {
        n *= (uint64_t)s.dim[d];
    }
    return (int64_t)n;
}

static int64_t coordinate(mesh_shape mesh, int rank, int mesh_dim)
{
    int64_t inner = 1;
    for (int d = mesh_dim + 1; d < mesh.ndim; d++) {
        inner *= mesh.dim[d];
    }
    return rank / inner % mesh.dim[mesh_dim];
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void part_box(mesh_shape shape, mesh_shape mesh, mesh_placements p, int rank, mesh_shape *ret_offset,
              mesh_shape *ret_extent)
{
    mesh_shape offset = { .ndim = shape.ndim }, extent = shape;
    for (int m = 0; m < mesh.ndim; m++) {
        if (p.at[m].kind != MESH_IS_SHARD) {
            continue;
        }
        int d = p.at[m].dim < 0 ? p.at[m].dim + shape.ndim : p.at[m].dim;
        int64_t n = extent.dim[d], chunk = (n + mesh.dim[m] - 1) / mesh.dim[m], c = coordinate(mesh, rank, m);
        int64_t begin = smaller(n, c * chunk), end = smaller(n, (c + 1) * chunk);
        offset.dim[d] += begin;
        extent.dim[d] = end - begin;
    }
    for (int d = 0; d < shape.ndim; d++) {
        offset.dim[d] = extent.dim[d] == 0 ? shape.dim[d] : offset.dim[d];
    }
    *ret_offset = offset;
    *ret_extent = extent;
}

static double sum_share(int64_t i, int64_t c, double unit)
{
    return (double)((5 * i + 3 * c) % 7 - 3) * unit;
}

/* The share of `whole` at coordinate c of n, the others' shares being sum_share(). */
static double share_of_sum(double whole, int64_t i, int64_t c, int64_t n, double unit)
{
    if (c > 0) {
        return sum_share(i, c, unit);
    }
    for (int64_t other = 1; other < n; other++) {
        whole -= sum_share(i, other, unit);
    }
    return whole;
}

static double share(double v, int64_t i, int64_t c, int64_t n, mesh_reduce_op op, double unit)
{
    double distance = c == i % n ? 0 : (double)((i + c) % 3 + 1);
    switch ((int)op) {
    case MESH_SUM:
        return share_of_sum(v, i, c, n, unit);
    case MESH_AVG:
        return share_of_sum(v * (double)n, i, c, n, unit);
    case MESH_MAX:
        return v - distance;
    case MESH_MIN:
        return v + distance;
    default: /* MESH_PROD */
        return c == 0 ? v : 1;
    }
}

double part_value(double v, int64_t i, const struct value *whole, mesh_shape mesh, int rank)
{
    double unit = is_float(whole->dtype) ? 0.25 : 1;
    for (int m = 0; m < mesh.ndim; m++) {
        if (whole->placements.at[m].kind == MESH_IS_PARTIAL) {
            v = share(v, i, coordinate(mesh, rank, m), mesh.dim[m], whole->placements.at[m].op, unit);
        }
    }
    return v;
}

/* Row-major index of the whole tensor for index i of the box. */
static int64_t whole_index(mesh_shape shape, const mesh_shape *offset, const mesh_shape *extent, int64_t i)
{
    int64_t whole = 0, stride = 1;
    for (int d = shape.ndim - 1; d >= 0; d--) {
        whole += (offset->dim[d] + i % extent->dim[d]) * stride;
        stride *= shape.dim[d];
        i /= extent->dim[d];
    }
    return whole;
}

static bool has_partial(mesh_placements p)
{
    for (int m = 0; m < p.n; m++) {
        if (p.at[m].kind == MESH_IS_PARTIAL) {
            return true;
        }
    }
    return false;
}

void part_fill(void *data, const struct value *v, mesh_shape mesh, int rank)
{
    mesh_shape offset, extent;
    size_t bytes = item_bytes(v->dtype);
    bool is_partial = has_partial(v->placements);
    part_box(v->shape, mesh, v->placements, rank, &offset, &extent);
    for (int64_t i = 0; i < numel(extent); i++) {
        int64_t at = whole_index(v->shape, &offset, &extent, i);
        if (is_partial) {
            number_put(v->dtype, data, i, part_value(number_at(v->dtype, v->data, at), at, v, mesh, rank));
        } else {
            memcpy((char *)data + (size_t)i * bytes, (const char *)v->data + (size_t)at * bytes, bytes);
        }
    }
}
