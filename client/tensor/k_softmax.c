/* client/tensor/k_softmax.c - softmax, its logarithm and their gradients along one dimension.
 *
 * With m the largest element of a line (so that no exponential overflows) and s the sum of exp(x - m):
 *     softmax      y = exp(x - m) / s            dx = y (dy - sum(dy y))
 *     log_softmax  y = x - m - log(s)            dx = dy - exp(y) sum(dy)
 * A line of -inf alone, or one with a NaN, is NaN, as everywhere.  Sums are kept in f64.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "tensor/fast_math.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"

/* One line of n elements, `step` apart in all arrays.  Forward: a = x.  Backward: a = dy, b = y. */
typedef void (*line_fn)(void *out, const void *a, const void *b, int64_t n, int64_t step);

#define SOFTMAX_LINES(D, T, U, unused)                                                                                 \
    static T largest_##D(const T *x, int64_t n, int64_t step)                                                          \
    {                                                                                                                  \
        T m = (T)-INFINITY;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            m = x[i * step] > m ? x[i * step] : m;                                                                     \
        }                                                                                                              \
        return m;                                                                                                      \
    }                                                                                                                  \
    static void softmax_##D(void *out, const void *a, const void *b, int64_t n, int64_t step)                          \
    {                                                                                                                  \
        T *y = out;                                                                                                    \
        const T *x = a;                                                                                                \
        T m = largest_##D(x, n, step);                                                                                 \
        double s = 0;                                                                                                  \
        (void)b;                                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            y[i * step] = exp(x[i * step] - m);                                                                        \
            s += (double)y[i * step];                                                                                  \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            y[i * step] = (T)((double)y[i * step] / s);                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void log_softmax_##D(void *out, const void *a, const void *b, int64_t n, int64_t step)                      \
    {                                                                                                                  \
        T *y = out;                                                                                                    \
        const T *x = a;                                                                                                \
        T m = largest_##D(x, n, step);                                                                                 \
        double s = 0;                                                                                                  \
        (void)b;                                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            s += (double)exp(x[i * step] - m);                                                                         \
        }                                                                                                              \
        s = log(s);                                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            y[i * step] = (T)((double)(x[i * step] - m) - s);                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void softmax_backward_##D(void *out, const void *a, const void *b, int64_t n, int64_t step)                 \
    {                                                                                                                  \
        T *dx = out;                                                                                                   \
        const T *dy = a, *y = b;                                                                                       \
        double s = 0;                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            s += (double)dy[i * step] * (double)y[i * step];                                                           \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            dx[i * step] = (T)((double)y[i * step] * ((double)dy[i * step] - s));                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void log_softmax_backward_##D(void *out, const void *a, const void *b, int64_t n, int64_t step)             \
    {                                                                                                                  \
        T *dx = out;                                                                                                   \
        const T *dy = a, *y = b;                                                                                       \
        double s = 0;                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            s += (double)dy[i * step];                                                                                 \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            dx[i * step] = (T)((double)dy[i * step] - (double)exp(y[i * step]) * s);                                   \
        }                                                                                                              \
    }
FLOAT_TYPES(SOFTMAX_LINES, 0)

/* Calls the line function for every line along dim[0]. */
static int along(const struct kernel_call *c, const char *name, line_fn f32, line_fn f64)
{
    const struct mesh_tensor *a = c->in[0], *b = c->in[1];
    if (a->dtype != MESH_F32 && a->dtype != MESH_F64) {
        return unsupported_dtype(name, a->dtype);
    }
    bool is_f32 = a->dtype == MESH_F32, is_scalar = a->shape.ndim == 0;
    size_t item = is_f32 ? sizeof(float) : sizeof(double);
    int dim = c->attr->dim[0];
    int64_t outer = is_scalar ? 1 : shape_outer(a->shape, dim), inner = is_scalar ? 1 : shape_inner(a->shape, dim);
    int64_t n = is_scalar ? 1 : a->shape.dim[dim];
    PRE(a->n == c->out[0]->n);
    for (int64_t i = 0; i < outer; i++) {
        for (int64_t j = 0; j < inner; j++) {
            size_t at = (size_t)(i * n * inner + j) * item;
            (is_f32 ? f32 : f64)((char *)c->out[0]->data + at, (const char *)a->data + at,
                                 b == NULL ? NULL : (const char *)b->data + at, n, inner);
        }
    }
    return 0;
}

int k_softmax(const struct kernel_call *c)
{
    return along(c, "softmax", softmax_F32, softmax_F64);
}

int k_log_softmax(const struct kernel_call *c)
{
    return along(c, "log_softmax", log_softmax_F32, log_softmax_F64);
}

int k_softmax_backward(const struct kernel_call *c)
{
    return along(c, "softmax_backward", softmax_backward_F32, softmax_backward_F64);
}

int k_log_softmax_backward(const struct kernel_call *c)
{
    return along(c, "log_softmax_backward", log_softmax_backward_F32, log_softmax_backward_F64);
}
