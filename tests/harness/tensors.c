/* tests/harness/tensors.c - small tensors for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tensors.h"

#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/dtype.h"

static uint32_t random_bits(uint64_t seed, int64_t i)
{
    return rng_bits((struct rng_key){ .seed = seed }, (uint64_t)i);
}

static struct mesh_tensor *made(struct mesh_tensor *t)
{
    ck_assert_msg(t != NULL, "%s", mesh_last_error()->message);
    return t;
}

struct mesh_tensor *test_tensor(mesh_shape shape, mesh_dtype dtype, uint64_t seed)
{
    struct mesh_tensor *t = made(tensor_new(shape, dtype));
    for (int64_t i = 0; i < t->n; i++) {
        double v = dtype_kind(dtype) == DTYPE_FLOAT ? (double)(random_bits(seed, i) % 17) / 4 - 2
                                                    : (double)(random_bits(seed, i) % 7) - (dtype == MESH_U8 ? 0 : 3);
        set(t, i, v);
    }
    return t;
}

struct mesh_tensor *test_tensor_rough(mesh_shape shape, mesh_dtype dtype, uint64_t seed)
{
    struct mesh_tensor *t = made(tensor_new(shape, dtype));
    for (int64_t i = 0; i < t->n; i++) {
        set(t, i, 4 * rng_uniform((struct rng_key){ .seed = seed }, (uint64_t)i) - 2);
    }
    return t;
}

struct mesh_tensor *test_tensor_of(mesh_shape shape, mesh_dtype dtype, const double *values)
{
    struct mesh_tensor *t = made(tensor_new(shape, dtype));
    for (int64_t i = 0; i < t->n; i++) {
        set(t, i, values[i]);
    }
    return t;
}

struct mesh_tensor *test_tensor_empty(mesh_shape shape, mesh_dtype dtype)
{
    struct mesh_tensor *t = made(tensor_new(shape, dtype));
    memset(t->data, 0xa5, tensor_bytes(t));
    return t;
}

/* clang-format off */
#define ELEMENT_TYPES(X) \
    X(MESH_F32, float) X(MESH_F64, double) X(MESH_I8, int8_t) X(MESH_U8, uint8_t) X(MESH_I32, int32_t) \
    X(MESH_I64, int64_t) X(MESH_BOOL, bool)
/* clang-format on */

double get(const struct mesh_tensor *t, int64_t i)
{
    switch (t->dtype) {
#define GET(D, T)                                                                                                      \
    case D:                                                                                                            \
        return (double)((const T *)t->data)[i];
        ELEMENT_TYPES(GET)
    default:
        ck_abort_msg("get: no such dtype in tests");
        return 0;
    }
}

void set(struct mesh_tensor *t, int64_t i, double v)
{
    switch (t->dtype) {
#define SET(D, T)                                                                                                      \
    case D:                                                                                                            \
        ((T *)t->data)[i] = (T)v;                                                                                      \
        break;
        ELEMENT_TYPES(SET)
    default:
        ck_abort_msg("set: no such dtype in tests");
    }
}

void index_of(mesh_shape s, int64_t i, int64_t ret_index[MESH_MAX_NDIM])
{
    for (int d = s.ndim - 1; d >= 0; d--) {
        ret_index[d] = i % s.dim[d];
        i /= s.dim[d];
    }
}

int64_t index_at(mesh_shape s, const int64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < s.ndim; d++) {
        at = at * s.dim[d] + (s.dim[d] == 1 ? 0 : index[d]);
    }
    return at;
}

int64_t index_broadcast(mesh_shape s, mesh_shape to, int64_t i)
{
    int64_t index[MESH_MAX_NDIM];
    index_of(to, i, index);
    return index_at(s, index + (to.ndim - s.ndim));
}

void assert_element(const struct mesh_tensor *t, int64_t i, double want, double tolerance)
{
    double got = get(t, i);
    bool is_near = got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= tolerance * (1 + fabs(want));
    ck_assert_msg(is_near, "element %lld of %lld (%s): got %.17g, want %.17g", (long long)i, (long long)t->n,
                  dtype_name(t->dtype), got, want);
}

void assert_values(const struct mesh_tensor *t, double tolerance, const double *want)
{
    for (int64_t i = 0; i < t->n; i++) {
        assert_element(t, i, want[i], tolerance);
    }
}

void run_kernel(kernel_fn kernel, const struct kernel_call *c)
{
    int r = kernel(c);
    ck_assert_msg(r == 0, "%s", mesh_last_error()->message);
}

void tensors_unref(int n, ...)
{
    va_list tensors;
    va_start(tensors, n);
    for (int i = 0; i < n; i++) {
        tensor_unref(va_arg(tensors, struct mesh_tensor *));
    }
    va_end(tensors);
}
