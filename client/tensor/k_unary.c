/* client/tensor/k_unary.c - the kernels of unary.def: a function of one number, and its slope times dy.
 *
 * f32 is computed in f32; integers wrap.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "tensor/fast_math.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "base/vector.h"

#define TWO_OVER_SQRT_PI 1.12837916709551257390

/* clang-format off */
#define sign_of(x)           ((T)(((x) > 0) - ((x) < 0)))
#define is_zero(v)           (!((v) < 0) && !((v) > 0) && !isnan(v))
#define raised(x, v)         ((x) < (v) ? (v) : (x)) /* NaN stays */
#define clamped(x, v, w)     (raised(x, v) > (w) ? (w) : raised(x, v))
#define silu_slope(dy, x, s) ((dy) * ((s) * ((T)1 + (x) * ((T)1 - (s)))))
/* clang-format on */

enum unary_op {
#define UNARY(name, ...) UNARY_##name,
#include "tensor/unary.def"
    N_UNARY
};

typedef void (*value_row)(void *out, const void *x, const double *value, int64_t n);
typedef void (*slope_row)(void *out, const void *dy, const void *a, const double *value, int64_t n);

/* Modulo 2^64, of which the narrower types keep the low end. */
static int64_t whole_power(int64_t base, int64_t exponent)
{
    uint64_t power = 1, square = (uint64_t)base;
    for (; exponent > 0; exponent >>= 1) {
        power *= exponent & 1 ? square : 1;
        square *= square;
    }
    return (int64_t)power;
}

#define FLOAT_VALUE(D, TYPE, U, name, expression)                                                                      \
    VECTOR_CLONES static void name##_row_##D(void *out_, const void *x_, const double *value, int64_t n)               \
    {                                                                                                                  \
        typedef TYPE T;                                                                                                \
        T *restrict out = out_;                                                                                        \
        const T *from = x_;                                                                                            \
        const T v = (T)value[0], w = (T)value[1];                                                                      \
        (void)v;                                                                                                       \
        (void)w;                                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T x = from[i];                                                                                       \
            out[i] = expression;                                                                                       \
        }                                                                                                              \
    }

#define INT_VALUE(D, T, U, name, expression)                                                                           \
    VECTOR_CLONES static void name##_row_##D(void *out_, const void *x_, const double *value, int64_t n)               \
    {                                                                                                                  \
        T *restrict out = out_;                                                                                        \
        const T *from = x_;                                                                                            \
        const int64_t v = number_saturated(MESH_##D, value[0]), w = number_saturated(MESH_##D, value[1]);              \
        (void)v;                                                                                                       \
        (void)w;                                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const int64_t x = from[i];                                                                                 \
            out[i] = (T)(expression);                                                                                  \
        }                                                                                                              \
    }

#define FLOAT_SLOPE(D, TYPE, U, name, expression)                                                                      \
    VECTOR_CLONES static void name##_slope_row_##D(void *out_, const void *dy_, const void *a_, const double *value,   \
                                                   int64_t n)                                                          \
    {                                                                                                                  \
        typedef TYPE T;                                                                                                \
        T *restrict out = out_;                                                                                        \
        const T *from_dy = dy_, *from = a_;                                                                            \
        const T v = (T)value[0], w = (T)value[1];                                                                      \
        (void)v;                                                                                                       \
        (void)w;                                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T dy = from_dy[i], a = from[i];                                                                      \
            (void)dy;                                                                                                  \
            (void)a;                                                                                                   \
            out[i] = expression;                                                                                       \
        }                                                                                                              \
    }

#define UNARY(name, shape, rule, via, value, slope)                                                                    \
    FLOAT_TYPES(FLOAT_VALUE, name, value) FLOAT_TYPES(FLOAT_SLOPE, name, slope)
#define UNARY_INT(name, value) INT_TYPES(INT_VALUE, name, value)
#include "tensor/unary.def"

#define VALUE_ENTRY(D, T, U, name) [UNARY_##name][MESH_##D] = name##_row_##D,
static const value_row value_rows[N_UNARY][N_DTYPES] = {
#define UNARY(name, ...)       FLOAT_TYPES(VALUE_ENTRY, name)
#define UNARY_INT(name, value) INT_TYPES(VALUE_ENTRY, name)
#include "tensor/unary.def"
};

#define SLOPE_ENTRY(D, T, U, name) [UNARY_##name][MESH_##D] = name##_slope_row_##D,
static const slope_row slope_rows[N_UNARY][N_DTYPES] = {
#define UNARY(name, ...) FLOAT_TYPES(SLOPE_ENTRY, name)
#include "tensor/unary.def"
};

static int value_of(const struct kernel_call *c, const char *name, enum unary_op op)
{
    static const double none[2];
    const struct mesh_tensor *x = c->in[0];
    PRE(x->dtype == c->out[0]->dtype && x->n == c->out[0]->n);
    value_row row = value_rows[op][x->dtype];
    if (row == NULL) {
        return unsupported_dtype(name, x->dtype);
    }
    row(c->out[0]->data, x->data, c->attr != NULL ? c->attr->value : none, x->n);
    return 0;
}

static int slope_of(const struct kernel_call *c, const char *name, enum unary_op op)
{
    static const double none[2];
    const struct mesh_tensor *dy = c->in[0];
    PRE(dy->dtype == c->out[0]->dtype && dy->n == c->out[0]->n && dy->n == c->in[1]->n);
    slope_row row = slope_rows[op][dy->dtype];
    if (row == NULL) {
        return unsupported_dtype(name, dy->dtype);
    }
    row(c->out[0]->data, dy->data, c->in[1]->data, c->attr != NULL ? c->attr->value : none, dy->n);
    return 0;
}

#define UNARY(name, ...)                                                                                               \
    int k_##name(const struct kernel_call *c)                                                                          \
    {                                                                                                                  \
        return value_of(c, #name, UNARY_##name);                                                                       \
    }                                                                                                                  \
    int k_##name##_backward(const struct kernel_call *c)                                                               \
    {                                                                                                                  \
        return slope_of(c, #name "_backward", UNARY_##name);                                                           \
    }
#include "tensor/unary.def"
