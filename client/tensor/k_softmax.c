/* client/tensor/k_softmax.c - softmax, its logarithm and their gradients along one dimension.
 *
 * With m the largest element of a line (so that no exponential overflows) and s the sum of exp(x - m):
 *     softmax      y = exp(x - m) / s            dx = y (dy - sum(dy y))
 *     log_softmax  y = x - m - log(s)            dx = dy - exp(y) sum(dy)
 * A line of -inf alone, or one with a NaN, is NaN, as everywhere.  Sums are kept in f64.
 *
 * Lines whose elements lie side by side go one by one: one read and one write of memory as long as a line stays in a
 * cache; row_exp.h says how.  Other lines go in panels of WIDTH neighbours, row after row, each line with its m and s
 * in an array:
 *
 *     x[0, j .. j + WIDTH)        m[j], s[j] = what the column below j has
 *     x[1, j .. j + WIDTH)
 *     ...                         so that all loops run over neighbours, and a panel is read again, twice, from a cache
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/check.h"
#include "base/util.h"
#include "tensor/fast_math.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/past_caches.h"
#include "tensor/row.h"
#include "tensor/row_exp.h"
#include "tensor/shape.h"
#include "base/vector.h"

#define WIDTH 128
#define BLOCK 512 /* elements of a line that are computed before they are written past the caches */

/* n rows of `width` elements, `step` apart in all arrays.  Forward: a = x.  Backward: a = dy, b = y. */
struct panel {
    void *out;
    const void *a, *b;
    int64_t n, step, width;
    bool is_large; /* one line: to be written past the caches */
};
typedef void (*panel_fn)(const struct panel *p);

/* --- one line ----------------------------------------------------------------------------------------------------- */

/* out[i] = value, a vector loop of its own; m and s are of the line. */
#define LINE_STEP(D, T, name, value)                                                                                   \
    static VECTOR_ROW(name##_step_##D, (T *restrict out, const T *a, const T *b, int64_t n, T m, double s),            \
                      (out, a, b, n, m, s))                                                                            \
    {                                                                                                                  \
        (void)a, (void)b, (void)m;                                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = (T)(value);                                                                                       \
        }                                                                                                              \
    }

#define LINES(D, T, U, unused)                                                                                         \
    LINE_STEP(D, T, log_softmax, (a[i] - m) - (T)s)                                                                    \
    LINE_STEP(D, T, softmax_backward, (double)b[i] * ((double)a[i] - s))                                               \
    LINE_STEP(D, T, log_softmax_backward, (double)a[i] - (double)exp(b[i]) * s)                                        \
    static void softmax_line_##D(const struct panel *p)                                                                \
    {                                                                                                                  \
        row_softmax_##D(p->out, p->a, p->n, &(struct row_softmax){ .factor = 1, .is_large = p->is_large });            \
    }                                                                                                                  \
    static void log_softmax_line_##D(const struct panel *p)                                                            \
    {                                                                                                                  \
        const struct row_exponentials e = row_exponentials_##D(p->a, p->n, row_exponentials_of_none());                \
        const double log_sum = log_of_one(e.sum);                                                                      \
        const T high = (T)(e.center + log_sum); /* of the whole; x - high is exact where x is near it */               \
        T block[BLOCK] __attribute__((aligned(CACHE_LINE))), *out = p->out;                                            \
        for (int64_t i = 0; i < p->n; i += BLOCK) {                                                                    \
            const int64_t n = MIN(p->n - i, BLOCK);                                                                    \
            log_softmax_step_##D(p->is_large ? block : out + i, (const T *)p->a + i, NULL, n, high,                    \
                                 (e.center - (double)high) + log_sum);                                                 \
            if (p->is_large) {                                                                                         \
                write_past_caches(out + i, block, (size_t)n * sizeof(T));                                              \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void softmax_backward_line_##D(const struct panel *p)                                                       \
    {                                                                                                                  \
        softmax_backward_step_##D(p->out, p->a, p->b, p->n, 0, row_dot_##D(p->a, p->b, p->n));                         \
    }                                                                                                                  \
    static void log_softmax_backward_line_##D(const struct panel *p)                                                   \
    {                                                                                                                  \
        log_softmax_backward_step_##D(p->out, p->a, p->b, p->n, 0, row_sum_##D(p->a, p->n));                           \
    }
FLOAT_TYPES(LINES, 0)

/* --- a panel of lines --------------------------------------------------------------------------------------------- */

/* Row after row, `statement` for each element; m[j] and s[j] are of the line. */
#define PANEL_STEP(D, T, name, statement)                                                                              \
    static VECTOR_ROW(name##_##D, (const struct panel *p, T *restrict m, double *restrict s), (p, m, s))               \
    {                                                                                                                  \
        const int64_t width = p->width;                                                                                \
        (void)m, (void)s;                                                                                              \
        for (int64_t i = 0; i < p->n; i++) {                                                                           \
            const T *a = (const T *)p->a + i * p->step, *b = p->b == NULL ? a : (const T *)p->b + i * p->step;         \
            T *restrict out = (T *)p->out + i * p->step;                                                               \
            (void)a, (void)b, (void)out;                                                                               \
            for (int64_t j = 0; j < width; j++) {                                                                      \
                statement;                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }

#define PANELS(D, T, U, unused)                                                                                        \
    PANEL_STEP(D, T, find_max, m[j] = a[j] > m[j] ? a[j] : m[j])                                                       \
    PANEL_STEP(D, T, add_exp, const T e = exp(a[j] - m[j]); out[j] = e; s[j] += (double)e)                             \
    PANEL_STEP(D, T, add_a, s[j] += (double)a[j])                                                                      \
    PANEL_STEP(D, T, add_product, s[j] += (double)a[j] * (double)b[j])                                                 \
    PANEL_STEP(D, T, scale, out[j] = (T)((double)out[j] * s[j]))                                                       \
    PANEL_STEP(D, T, subtract, out[j] = (T)((double)(a[j] - m[j]) - s[j]))                                             \
    PANEL_STEP(D, T, softmax_slope, out[j] = (T)((double)b[j] * ((double)a[j] - s[j])))                                \
    PANEL_STEP(D, T, log_softmax_slope, out[j] = (T)((double)a[j] - (double)exp(b[j]) * s[j]))                         \
    static void exp_and_sum_##D(const struct panel *p, T *m, double *s)                                                \
    {                                                                                                                  \
        for (int64_t j = 0; j < p->width; j++) {                                                                       \
            m[j] = (T)-INFINITY;                                                                                       \
        }                                                                                                              \
        find_max_##D(p, m, s);                                                                                         \
        add_exp_##D(p, m, s);                                                                                          \
    }                                                                                                                  \
    static void softmax_panel_##D(const struct panel *p)                                                               \
    {                                                                                                                  \
        T m[WIDTH];                                                                                                    \
        double s[WIDTH] = { 0 };                                                                                       \
        exp_and_sum_##D(p, m, s);                                                                                      \
        for (int64_t j = 0; j < p->width; j++) {                                                                       \
            s[j] = 1 / s[j];                                                                                           \
        }                                                                                                              \
        scale_##D(p, m, s);                                                                                            \
    }                                                                                                                  \
    static void log_softmax_panel_##D(const struct panel *p)                                                           \
    {                                                                                                                  \
        T m[WIDTH];                                                                                                    \
        double s[WIDTH] = { 0 };                                                                                       \
        exp_and_sum_##D(p, m, s);                                                                                      \
        for (int64_t j = 0; j < p->width; j++) {                                                                       \
            s[j] = log_of_one(s[j]);                                                                                   \
        }                                                                                                              \
        subtract_##D(p, m, s);                                                                                         \
    }                                                                                                                  \
    static void softmax_backward_panel_##D(const struct panel *p)                                                      \
    {                                                                                                                  \
        T m[WIDTH];                                                                                                    \
        double s[WIDTH] = { 0 };                                                                                       \
        add_product_##D(p, m, s);                                                                                      \
        softmax_slope_##D(p, m, s);                                                                                    \
    }                                                                                                                  \
    static void log_softmax_backward_panel_##D(const struct panel *p)                                                  \
    {                                                                                                                  \
        T m[WIDTH];                                                                                                    \
        double s[WIDTH] = { 0 };                                                                                       \
        add_a_##D(p, m, s);                                                                                            \
        log_softmax_slope_##D(p, m, s);                                                                                \
    }
FLOAT_TYPES(PANELS, 0)

/* --- the kernels -------------------------------------------------------------------------------------------------- */

struct along {
    const char *name;
    panel_fn line[2], panel[2]; /* f32, f64 */
};

/* Calls the function for every line along dim[0], or for every panel of lines. */
static int along(const struct kernel_call *c, const struct along *f)
{
    const struct mesh_tensor *a = c->in[0], *b = c->in[1];
    if (a->dtype != MESH_F32 && a->dtype != MESH_F64) {
        return unsupported_dtype(f->name, a->dtype);
    }
    bool is_f64 = a->dtype == MESH_F64, is_scalar = a->shape.ndim == 0;
    size_t item = is_f64 ? sizeof(double) : sizeof(float);
    int dim = c->attr->dim[0];
    int64_t outer = is_scalar ? 1 : shape_outer(a->shape, dim), inner = is_scalar ? 1 : shape_inner(a->shape, dim);
    int64_t n = is_scalar ? 1 : a->shape.dim[dim];
    panel_fn fn = (inner == 1 ? f->line : f->panel)[is_f64];
    bool is_large = inner == 1 && goes_past_caches(c->out[0]->data, tensor_bytes(c->out[0]), (size_t)n * item);
    PRE(a->n == c->out[0]->n);
    for (int64_t i = 0; i < outer; i++) {
        for (int64_t j = 0; j < inner; j += WIDTH) {
            size_t at = (size_t)(i * n * inner + j) * item;
            fn(&(struct panel){ .out = (char *)c->out[0]->data + at,
                                .a = (const char *)a->data + at,
                                .b = b == NULL ? NULL : (const char *)b->data + at,
                                .n = n,
                                .step = inner,
                                .width = MIN(inner - j, WIDTH),
                                .is_large = is_large });
        }
    }
    finish_past_caches();
    return 0;
}

#define ALONG(op)                                                                                                      \
    int k_##op(const struct kernel_call *c)                                                                            \
    {                                                                                                                  \
        static const struct along f = { #op, { op##_line_F32, op##_line_F64 }, { op##_panel_F32, op##_panel_F64 } };   \
        return along(c, &f);                                                                                           \
    }
ALONG(softmax)
ALONG(log_softmax)
ALONG(softmax_backward)
ALONG(log_softmax_backward)
