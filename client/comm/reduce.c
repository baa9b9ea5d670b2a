/* client/comm/reduce.c - elementwise reductions, as loops that compilers vectorise.
 *
 * Integers wrap.  min and max propagate NaN and know -0 < +0, so that a op b and b op a are the same bits; the one NaN
 * they give is the standard quiet one.  One row of FLOATS or INTEGERS is one (dtype, op) pair.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "base/vector.h"
#include "comm/collective.h"
#include "comm/reduce.h"

#define LOOP(name, type, expression)                                                                                   \
    static VECTOR_ROW(name, (void *restrict to, const void *restrict from, size_t n), (to, from, n))                   \
    {                                                                                                                  \
        type *restrict x = to;                                                                                         \
        const type *restrict y = from;                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type a = x[i], b = y[i];                                                                                   \
            x[i] = (type)(expression);                                                                                 \
        }                                                                                                              \
    }

/* Equal values differ at most in the sign of zero: the smaller has the sign bit of either, the greater of both. */
#define FLOAT_MIN_MAX(suffix, type, bits)                                                                              \
    static type min_##suffix(type a, type b)                                                                           \
    {                                                                                                                  \
        bits p, q;                                                                                                     \
        memcpy(&p, &a, sizeof p);                                                                                      \
        memcpy(&q, &b, sizeof q);                                                                                      \
        p |= q;                                                                                                        \
        type same;                                                                                                     \
        memcpy(&same, &p, sizeof same);                                                                                \
        type least = a < b ? a : (b < a ? b : same);                                                                   \
        return a != a || b != b ? (type)NAN : least;                                                                   \
    }                                                                                                                  \
    static type max_##suffix(type a, type b)                                                                           \
    {                                                                                                                  \
        bits p, q;                                                                                                     \
        memcpy(&p, &a, sizeof p);                                                                                      \
        memcpy(&q, &b, sizeof q);                                                                                      \
        p &= q;                                                                                                        \
        type same;                                                                                                     \
        memcpy(&same, &p, sizeof same);                                                                                \
        type greatest = a > b ? a : (b > a ? b : same);                                                                \
        return a != a || b != b ? (type)NAN : greatest;                                                                \
    }

FLOAT_MIN_MAX(f32, float, uint32_t)
FLOAT_MIN_MAX(f64, double, uint64_t)

#define FLOAT_LOOPS(suffix, type)                                                                                      \
    LOOP(add_##suffix, type, a + b)                                                                                    \
    LOOP(multiply_##suffix, type, a *b)                                                                                \
    LOOP(least_##suffix, type, min_##suffix(a, b))                                                                     \
    LOOP(greatest_##suffix, type, max_##suffix(a, b))

/* wide: unsigned and as wide as arithmetic gets, so that sums and products wrap instead of overflowing. */
#define INTEGER_LOOPS(suffix, type, wide)                                                                              \
    LOOP(add_##suffix, type, (wide)a + (wide)b)                                                                        \
    LOOP(multiply_##suffix, type, (wide)a *(wide)b)                                                                    \
    LOOP(least_##suffix, type, a < b ? a : b)                                                                          \
    LOOP(greatest_##suffix, type, a > b ? a : b)                                                                       \
    LOOP(and_##suffix, type, a &b)                                                                                     \
    LOOP(or_##suffix, type, a | b)                                                                                     \
    LOOP(xor_##suffix, type, a ^ b)

FLOAT_LOOPS(f32, float)
FLOAT_LOOPS(f64, double)
INTEGER_LOOPS(i32, int32_t, uint32_t)
INTEGER_LOOPS(i64, int64_t, uint64_t)
INTEGER_LOOPS(u8, uint8_t, uint32_t)
INTEGER_LOOPS(i8, int8_t, uint32_t)
LOOP(either_bool, bool, a || b)
LOOP(both_bool, bool, a &&b)
LOOP(unlike_bool, bool, a != b)

typedef void (*reduce_fn)(void *restrict to, const void *restrict from, size_t n);

#define FLOATS(suffix)                                                                                                 \
    {                                                                                                                  \
        [MESH_SUM] = add_##suffix, [MESH_AVG] = add_##suffix, [MESH_PROD] = multiply_##suffix,                         \
        [MESH_MIN] = least_##suffix, [MESH_MAX] = greatest_##suffix                                                    \
    }
#define INTEGERS(suffix)                                                                                               \
    {                                                                                                                  \
        [MESH_SUM] = add_##suffix, [MESH_PROD] = multiply_##suffix, [MESH_MIN] = least_##suffix,                       \
        [MESH_MAX] = greatest_##suffix, [MESH_BAND] = and_##suffix, [MESH_BOR] = or_##suffix,                          \
        [MESH_BXOR] = xor_##suffix                                                                                     \
    }

/* Truth values: a sum is true when any addend is, a product when all factors are. */
#define BOOLEANS                                                                                                       \
    {                                                                                                                  \
        [MESH_SUM] = either_bool, [MESH_PROD] = both_bool, [MESH_MIN] = both_bool, [MESH_MAX] = either_bool,           \
        [MESH_BAND] = both_bool, [MESH_BOR] = either_bool, [MESH_BXOR] = unlike_bool                                   \
    }

static const reduce_fn loops[MESH_BOOL + 1][MESH_BXOR + 1] = {
    [MESH_F32] = FLOATS(f32), [MESH_F64] = FLOATS(f64), [MESH_I32] = INTEGERS(i32), [MESH_I64] = INTEGERS(i64),
    [MESH_U8] = INTEGERS(u8), [MESH_I8] = INTEGERS(i8), [MESH_BOOL] = BOOLEANS,
};

/* 16-bit floats have no loops: two of them are never combined into a third (fold.c). */
static bool can_reduce(mesh_dtype t, mesh_reduce_op op)
{
    return reduce_is_folded(t) ? op < MESH_BAND : loops[t][op] != NULL;
}

int reduce_check(mesh_dtype t, mesh_reduce_op op)
{
    if (!dtype_is_valid((int)t)) {
        return err_set(MESH_EINVAL, "%d is not a dtype", (int)t);
    }
    if (!reduce_op_is_valid((int)op)) {
        return err_set(MESH_EINVAL, "%d is not a reduction op", (int)op);
    }
    if (can_reduce(t, op)) {
        return 0;
    }
    if (op == MESH_AVG) {
        return err_set(MESH_EUNSUPPORTED, "avg of %s has no exact result: take sum, or a float dtype", dtype_name(t));
    }
    return err_set(MESH_EUNSUPPORTED, "%s of %s: bitwise ops are for integers and bool", reduce_op_name(op),
                   dtype_name(t));
}

void reduce_into(void *a, const void *b, size_t count, mesh_dtype t, mesh_reduce_op op)
{
    PRE(loops[t][op] != NULL);
    loops[t][op](a, b, count);
}

static VECTOR_ROW(divide_f32, (float *x, size_t n, int by), (x, n, by))
{
    for (size_t i = 0; i < n; i++) {
        x[i] /= (float)by;
    }
}

static VECTOR_ROW(divide_f64, (double *x, size_t n, int by), (x, n, by))
{
    for (size_t i = 0; i < n; i++) {
        x[i] /= (double)by;
    }
}

void reduce_divide(void *x, size_t count, mesh_dtype t, int by)
{
    if (t == MESH_F32) {
        divide_f32(x, count, by);
    } else if (t == MESH_F64) {
        divide_f64(x, count, by);
    }
}

static VECTOR_ROW(unify_f32, (float *x, size_t n), (x, n))
{
    for (size_t i = 0; i < n; i++) {
        x[i] = x[i] != x[i] ? NAN : x[i];
    }
}

static VECTOR_ROW(unify_f64, (double *x, size_t n), (x, n))
{
    for (size_t i = 0; i < n; i++) {
        x[i] = x[i] != x[i] ? (double)NAN : x[i];
    }
}

void reduce_unify_nan(void *x, size_t count, mesh_dtype t)
{
    if (t == MESH_F32) {
        unify_f32(x, count);
    } else if (t == MESH_F64) {
        unify_f64(x, count);
    }
}

static double float_identity(mesh_reduce_op op)
{
    switch (op) {
    case MESH_PROD:
        return 1;
    case MESH_MIN:
        return (double)INFINITY;
    case MESH_MAX:
        return -(double)INFINITY;
    default:
        return 0;
    }
}

static int64_t integer_identity(mesh_reduce_op op, int64_t least, int64_t greatest)
{
    switch (op) {
    case MESH_PROD:
        return 1;
    case MESH_MIN:
        return greatest;
    case MESH_MAX:
        return least;
    case MESH_BAND:
        return -1;
    default:
        return 0;
    }
}

#define FILL(type, value)                                                                                              \
    for (size_t i = 0; i < count; i++) {                                                                               \
        ((type *)x)[i] = (type)(value);                                                                                \
    }                                                                                                                  \
    break

void reduce_fill_identity(void *x, size_t count, mesh_dtype t, mesh_reduce_op op)
{
    switch (t) {
    case MESH_F32:
        FILL(float, float_identity(op));
    case MESH_F64:
        FILL(double, float_identity(op));
    case MESH_I32:
        FILL(int32_t, integer_identity(op, INT32_MIN, INT32_MAX));
    case MESH_I64:
        FILL(int64_t, integer_identity(op, INT64_MIN, INT64_MAX));
    case MESH_F16:
        FILL(uint16_t, float_to_f16((float)float_identity(op)));
    case MESH_BF16:
        FILL(uint16_t, float_to_bf16((float)float_identity(op)));
    case MESH_I8:
        FILL(int8_t, integer_identity(op, INT8_MIN, INT8_MAX));
    case MESH_U8:
        FILL(uint8_t, integer_identity(op, 0, UINT8_MAX));
    case MESH_BOOL:
        FILL(bool, integer_identity(op, 0, 1) != 0);
    default:
        NEVER("a dtype that reduce_check() lets through");
    }
}
