/* client/tensor/k_unary.c - the kernels of unary.def: a function of one number, and its slope times dy.
 *
 * f32 is computed in f32; integers wrap.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/dtype.h"
#include "base/util.h"
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
    static VECTOR_ROW(name##_row_##D, (void *out_, const void *x_, const double *value, int64_t n),                    \
                      (out_, x_, value, n))                                                                            \
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
    static VECTOR_ROW(name##_row_##D, (void *out_, const void *x_, const double *value, int64_t n),                    \
                      (out_, x_, value, n))                                                                            \
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
    static VECTOR_ROW(name##_slope_row_##D,                                                                            \
                      (void *out_, const void *dy_, const void *a_, const double *value, int64_t n),                   \
                      (out_, dy_, a_, value, n))                                                                       \
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

/* --- sines of large numbers: the C library's, each by itself, whatever its neighbours are ------------------------- */

#define CHUNK 2048 /* elements of a row that may have such, in the L1 cache */

static const struct trig {
    double (*value)(double), (*slope)(double); /* dy times slope times sign */
    double sign;
} trigs[N_UNARY] = { [UNARY_sin] = { sin, cos, 1 }, [UNARY_cos] = { cos, sin, -1 } };

/* count_t: of the element's size, which a vector loop counts in; enough for a CHUNK. */
#define MEND(D, T, count_t)                                                                                            \
    static VECTOR_VALUE(bool, has_far_##D, (const T *x, int64_t n), (x, n))                                            \
    {                                                                                                                  \
        count_t far = 0;                                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            far += fabs(x[i]) <= (T)TRIG_BOUND ? 0 : 1;                                                                \
        }                                                                                                              \
        return far != 0;                                                                                               \
    }                                                                                                                  \
    /* dy: NULL for the value. */                                                                                      \
    static void mend_##D(T *out, const T *x, const T *dy, int64_t n, const struct trig *f)                             \
    {                                                                                                                  \
        for (int64_t i = 0, end = has_far_##D(x, n) ? n : 0; i < end; i++) {                                           \
            if (!(fabs(x[i]) <= (T)TRIG_BOUND)) {                                                                      \
                out[i] = dy == NULL ? (T)f->value((double)x[i]) : (T)f->sign * dy[i] * (T)f->slope((double)x[i]);      \
            }                                                                                                          \
        }                                                                                                              \
    }
MEND(F32, float, int32_t)
MEND(F64, double, int64_t)

/* Mends what the row functions have made of elements beyond TRIG_BOUND. */
static void mend(const struct mesh_tensor *out, const struct mesh_tensor *x, const struct mesh_tensor *dy, int64_t at,
                 const struct trig *f)
{
    int64_t n = MIN(x->n - at, CHUNK);
    if (x->dtype == MESH_F32) {
        mend_F32((float *)out->data + at, (const float *)x->data + at, dy != NULL ? (const float *)dy->data + at : NULL,
                 n, f);
    } else {
        mend_F64((double *)out->data + at, (const double *)x->data + at,
                 dy != NULL ? (const double *)dy->data + at : NULL, n, f);
    }
}

static void *element(const struct mesh_tensor *t, int64_t i)
{
    return (char *)t->data + (size_t)i * dtype_size(t->dtype);
}

static int value_of(const struct kernel_call *c, const char *name, enum unary_op op)
{
    static const double none[2];
    const struct mesh_tensor *x = c->in[0];
    PRE(x->dtype == c->out[0]->dtype && x->n == c->out[0]->n);
    value_row row = value_rows[op][x->dtype];
    if (row == NULL) {
        return unsupported_dtype(name, x->dtype);
    }
    const double *value = c->attr != NULL ? c->attr->value : none;
    const struct trig *trig = trigs[op].value != NULL ? &trigs[op] : NULL;
    for (int64_t at = 0, n; at < x->n; at += n) {
        n = trig != NULL ? MIN(x->n - at, CHUNK) : x->n;
        row(element(c->out[0], at), element(x, at), value, n);
        if (trig != NULL) {
            mend(c->out[0], x, NULL, at, trig);
        }
    }
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
    for (int64_t at = 0; trigs[op].value != NULL && at < dy->n; at += CHUNK) {
        mend(c->out[0], c->in[1], dy, at, &trigs[op]);
    }
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
