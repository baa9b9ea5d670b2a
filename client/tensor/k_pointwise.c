/* client/tensor/k_pointwise.c - kernels that treat every element alone.
 *
 * The formulas are the EXPR_ lines; each is expanded for the dtypes its table names.  f32 is computed in f32, integers
 * wrap.  An output never is one of the inputs.
 *
 *     gelu(x)      = x Phi(x),  Phi(x) = (1 + erf(x / sqrt 2)) / 2
 *     gelu_tanh(x) = x (1 + tanh(u)) / 2 = x / (1 + exp(-2 u)),  u = sqrt(2 / pi) (x + 0.044715 x^3)
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tensor/fast_math.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"
#include "tensor/walk.h"
#include "base/vector.h"

/* Of gelu_tanh: 2 sqrt(2 / pi), the same times 0.044715, and where nothing more happens. */
#define LINE 1.59576912160573071176
#define CUBE 0.07135481627260025877
#define FAR  30.0

/* --- two inputs, broadcast -------------------------------------------------------------------------------------- */

/* Each step is 0 (one element for the whole row) or 1. */
typedef void (*binary_row)(void *out, const void *a, int64_t step_a, const void *b, int64_t step_b, int64_t n);

/* clang-format off */
#define EXPR_add(T, U, a, b) ((T)((U)(a) + (U)(b)))
#define EXPR_sub(T, U, a, b) ((T)((U)(a) - (U)(b)))
#define EXPR_mul(T, U, a, b) ((T)((U)(a) * (U)(b)))
#define EXPR_div(T, U, a, b) ((a) / (b))
#define EXPR_relu_backward(T, U, dy, x) ((x) <= 0 ? (T)0 : (dy))
#define EXPR_tanh_backward(T, U, dy, y) ((dy) * ((T)1 - (y) * (y)))
#define EXPR_gelu_erf_backward(T, U, dy, x) ((dy) * gelu_slope(x))
#define EXPR_gelu_tanh_backward(T, U, dy, x) ((dy) * gelu_tanh_slope_##T(x))

#define BINARY_KERNELS(X)                \
    X(add,               NUMBER_TYPES)   \
    X(sub,               NUMBER_TYPES)   \
    X(mul,               NUMBER_TYPES)   \
    X(div,               FLOAT_TYPES)    \
    X(relu_backward,     NUMBER_TYPES)   \
    X(tanh_backward,     FLOAT_TYPES)    \
    X(gelu_erf_backward, FLOAT_TYPES)    \
    X(gelu_tanh_backward, FLOAT_TYPES)

#define GELU_TANH(D, T, U, unused)                                                           \
    VECTOR_INLINE T gelu_tanh_##T(T x)                                                       \
    {                                                                                        \
        return x / ((T)1 + exp_beside_one(-x * fma((T)CUBE, x * x, (T)LINE)));               \
    }                                                                                        \
    VECTOR_INLINE T gelu_tanh_slope_##T(T x)                                                 \
    {                                                                                        \
        T near = x < (T)-FAR ? (T)-FAR : x; /* beyond, it is 0 or 1 */                       \
        near = near > (T)FAR ? (T)FAR : near;                                                \
        T square = near * near;                                                              \
        T s = sigmoid(near * fma((T)CUBE, square, (T)LINE));                                 \
        T inner = near * fma((T)(3 * CUBE), square, (T)LINE); /* x times the slope of what s is of */ \
        return fma(s * ((T)1 - s), inner, s);                                                \
    }
FLOAT_TYPES(GELU_TANH, 0)

#define BINARY_ROW(D, T, U, op)                                                                                     \
    static VECTOR_ROW(op##_row_##D, (void *out_, const void *a_, int64_t step_a, const void *b_, int64_t step_b, int64_t n), (out_, a_, step_a, b_, step_b, n)) \
    {                                                                                                               \
        T *restrict out = out_;                                                                                     \
        const T *a = a_, *b = b_;                                                                                   \
        if (step_a == 1 && step_b == 1) {                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                                       \
                out[i] = EXPR_##op(T, U, a[i], b[i]);                                                               \
            }                                                                                                       \
        } else if (step_a == 1) {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                                       \
                out[i] = EXPR_##op(T, U, a[i], b[0]);                                                               \
            }                                                                                                       \
        } else {                                                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                                       \
                out[i] = EXPR_##op(T, U, a[0], b[i * step_b]);                                                      \
            }                                                                                                       \
        }                                                                                                           \
    }
#define BINARY_ENTRY(D, T, U, op) [MESH_##D] = op##_row_##D,
#define BINARY_TABLE(op, TYPES) \
    TYPES(BINARY_ROW, op)       \
    static const binary_row op##_rows[N_DTYPES] = { TYPES(BINARY_ENTRY, op) };
BINARY_KERNELS(BINARY_TABLE)
/* clang-format on */

static void push_broadcast(struct walk *w, mesh_shape out, mesh_shape a, mesh_shape b)
{
    int64_t stride_out[MESH_MAX_NDIM], stride_a[MESH_MAX_NDIM], stride_b[MESH_MAX_NDIM];
    shape_strides(out, out, stride_out);
    shape_strides(a, out, stride_a);
    shape_strides(b, out, stride_b);
    for (int d = 0; d < out.ndim; d++) {
        walk_push(w, out.dim[d], (int64_t[WALK_OPERANDS]){ stride_out[d], stride_a[d], stride_b[d] });
    }
}

static int binary(const struct kernel_call *c, const char *name, const binary_row rows[N_DTYPES])
{
    const struct mesh_tensor *a = c->in[0], *b = c->in[1];
    struct mesh_tensor *out = c->out[0];
    PRE(a->dtype == b->dtype && a->dtype == out->dtype);
    binary_row row = rows[out->dtype];
    if (row == NULL) {
        return unsupported_dtype(name, out->dtype);
    }
    struct walk w;
    struct walk_at at;
    int64_t item = (int64_t)dtype_size(out->dtype);
    walk_init(&w);
    push_broadcast(&w, out->shape, a->shape, b->shape);
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        row((char *)out->data + at.offset[0] * item, (const char *)a->data + at.offset[1] * item, walk_step(&w, 1),
            (const char *)b->data + at.offset[2] * item, walk_step(&w, 2), walk_inner(&w));
    }
    return 0;
}

int k_add(const struct kernel_call *c)
{
    return binary(c, "add", add_rows);
}

int k_sub(const struct kernel_call *c)
{
    return binary(c, "sub", sub_rows);
}

int k_mul(const struct kernel_call *c)
{
    return binary(c, "mul", mul_rows);
}

int k_div(const struct kernel_call *c)
{
    return binary(c, "div", div_rows);
}

int k_relu_backward(const struct kernel_call *c)
{
    return binary(c, "relu_backward", relu_backward_rows);
}

int k_tanh_backward(const struct kernel_call *c)
{
    return binary(c, "tanh_backward", tanh_backward_rows);
}

int k_gelu_backward(const struct kernel_call *c)
{
    return binary(c, "gelu_backward", c->attr->mode == 1 ? gelu_tanh_backward_rows : gelu_erf_backward_rows);
}

/* --- one input and a number ------------------------------------------------------------------------------------- */

typedef void (*unary_row)(void *out, const void *x, double value, int64_t n);

/* clang-format off */
#define EXPR_neg(T, U, x, v)        ((T)(-(U)(x)))
#define EXPR_mul_scalar(T, U, x, v) ((T)((U)(x) * (U)(v)))
#define EXPR_add_scalar(T, U, x, v) ((T)((U)(x) + (U)(v)))
#define EXPR_relu(T, U, x, v)       (!((x) <= 0) ? (x) : (T)0) /* NaN stays */
#define EXPR_tanh(T, U, x, v)       (tanh(x))
#define EXPR_gelu_erf(T, U, x, v)   (gelu(x))
#define EXPR_gelu_tanh(T, U, x, v)  (gelu_tanh_##T(x))

#define UNARY_KERNELS(X)           \
    X(neg,        NUMBER_TYPES)    \
    X(mul_scalar, NUMBER_TYPES)    \
    X(add_scalar, NUMBER_TYPES)    \
    X(relu,       NUMBER_TYPES)    \
    X(tanh,       FLOAT_TYPES)     \
    X(gelu_erf,   FLOAT_TYPES)     \
    X(gelu_tanh,  FLOAT_TYPES)

#define UNARY_ROW(D, T, U, op)                                                   \
    static VECTOR_ROW(op##_row_##D, (void *out_, const void *x_, double value, int64_t n), (out_, x_, value, n)) \
    {                                                                            \
        T *restrict out = out_;                                                  \
        const T *x = x_;                                                         \
        const T v = (T)value;                                                    \
        (void)v;                                                                 \
        for (int64_t i = 0; i < n; i++) {                                        \
            out[i] = EXPR_##op(T, U, x[i], v);                                   \
        }                                                                        \
    }
#define UNARY_ENTRY(D, T, U, op) [MESH_##D] = op##_row_##D,
#define UNARY_TABLE(op, TYPES) \
    TYPES(UNARY_ROW, op)       \
    static const unary_row op##_rows[N_DTYPES] = { TYPES(UNARY_ENTRY, op) };
UNARY_KERNELS(UNARY_TABLE)
/* clang-format on */

static int unary(const struct kernel_call *c, const char *name, const unary_row rows[N_DTYPES], double value)
{
    const struct mesh_tensor *x = c->in[0];
    struct mesh_tensor *out = c->out[0];
    PRE(x->dtype == out->dtype && x->n == out->n);
    unary_row row = rows[out->dtype];
    if (row == NULL) {
        return unsupported_dtype(name, out->dtype);
    }
    row(out->data, x->data, value, out->n);
    return 0;
}

/* An integer tensor keeps its dtype, so the number must be one that it can hold. */
static int scalar(const struct kernel_call *c, const char *name, const unary_row rows[N_DTYPES])
{
    mesh_dtype t = c->out[0]->dtype;
    double value = c->attr->value[0];
    if (!number_fits(t, value)) {
        return err_set(MESH_EINVAL, "%s: %g is not a number that a tensor of %s can hold; use a floating tensor", name,
                       value, dtype_name(t));
    }
    return unary(c, name, rows, value);
}

int k_mul_scalar(const struct kernel_call *c)
{
    return scalar(c, "mul_scalar", mul_scalar_rows);
}

int k_add_scalar(const struct kernel_call *c)
{
    return scalar(c, "add_scalar", add_scalar_rows);
}

int k_neg(const struct kernel_call *c)
{
    return unary(c, "neg", neg_rows, 0);
}

int k_relu(const struct kernel_call *c)
{
    return unary(c, "relu", relu_rows, 0);
}

int k_tanh(const struct kernel_call *c)
{
    return unary(c, "tanh", tanh_rows, 0);
}

int k_gelu(const struct kernel_call *c)
{
    return unary(c, "gelu", c->attr->mode == 1 ? gelu_tanh_rows : gelu_erf_rows, 0);
}

int k_copy(const struct kernel_call *c)
{
    size_t bytes = tensor_bytes(c->out[0]);
    PRE(bytes == tensor_bytes(c->in[0]));
    if (bytes > 0) {
        memcpy(c->out[0]->data, c->in[0]->data, bytes);
    }
    return 0;
}
