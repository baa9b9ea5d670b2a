/* client/tensor/k_normalize.c - layer_norm, rms_norm and their gradients, over rows of the last index[0] dims.
 *
 * For a row x of n elements with eps = value[0]:
 *     layer_norm  h = (x - mean x) r,  r = 1 / sqrt(var x + eps)          y = h w + b
 *     rms_norm    h = x r,             r = 1 / sqrt(mean x^2 + eps)       y = h w
 * With g = dy w:
 *     normalize_grad_input   dx = r (g - h mean(g h) - mean g)            (the last term for layer_norm, mode 0, only)
 *     normalize_grad_weight  dw = sum over rows of dy h
 * Statistics are kept in f64.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/row.h"
#include "base/vector.h"

enum { LAYER, RMS };

#define STACK 4 /* rows that are added to the sums over rows together */

struct row { /* of one row: what h needs, and the means of g and g h */
    double mean, scale, g_mean, gh_mean;
};

struct normalized {
    int64_t rows, n;
    double eps;
    int mode;
};

static struct normalized rows_of(const struct mesh_tensor *x, const struct op_attr *attr, int mode)
{
    struct normalized z = { .rows = 1, .n = 1, .eps = attr->value[0], .mode = mode };
    for (int d = 0; d < x->shape.ndim; d++) {
        *(d < x->shape.ndim - attr->index[0] ? &z.rows : &z.n) *= x->shape.dim[d];
    }
    return z;
}

#define NORMALIZE(D, T, U, unused)                                                                                     \
    static void statistics_##D(const struct normalized *z, const T *x, double *ret_mean, double *ret_scale)            \
    {                                                                                                                  \
        double mean = z->mode == LAYER ? row_sum_##D(x, z->n) / (double)z->n : 0;                                      \
        *ret_mean = mean;                                                                                              \
        *ret_scale = 1 / sqrt(row_deviations_##D(x, z->n, mean).square / (double)z->n + z->eps);                       \
    }                                                                                                                  \
    static VECTOR_ROW(write_row_##D,                                                                                   \
                      (T *restrict y, const T *x, const T *w, const T *b, int64_t n, double mean, double scale),       \
                      (y, x, w, b, n, mean, scale))                                                                    \
    {                                                                                                                  \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            double h = ((double)x[j] - mean) * scale;                                                                  \
            y[j] = (T)((w != NULL ? h * (double)w[j] : h) + (b != NULL ? (double)b[j] : 0));                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void forward_##D(const struct normalized *z, const struct kernel_call *c, const T *w, const T *b)           \
    {                                                                                                                  \
        for (int64_t i = 0; i < z->rows; i++) {                                                                        \
            const T *x = (const T *)c->in[0]->data + i * z->n;                                                         \
            double mean, scale;                                                                                        \
            statistics_##D(z, x, &mean, &scale);                                                                       \
            write_row_##D((T *)c->out[0]->data + i * z->n, x, w, b, z->n, mean, scale);                                \
        }                                                                                                              \
    }                                                                                                                  \
    static VECTOR_ROW(combine_##D,                                                                                     \
                      (T *restrict dx, const T *dy, const T *x, const T *w, int64_t n, const struct row *r),           \
                      (dx, dy, x, w, n, r))                                                                            \
    {                                                                                                                  \
        const double mean = r->mean, scale = r->scale, g_mean = r->g_mean, gh_mean = r->gh_mean;                       \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const double g = w != NULL ? (double)dy[j] * (double)w[j] : (double)dy[j];                                 \
            dx[j] = (T)(scale * (g - g_mean - ((double)x[j] - mean) * scale * gh_mean));                               \
        }                                                                                                              \
    }                                                                                                                  \
    static void row_grad_##D(const struct normalized *z, T *dx, const T *dy, const T *x, const T *w)                   \
    {                                                                                                                  \
        struct row r = { .mean = 0 };                                                                                  \
        statistics_##D(z, x, &r.mean, &r.scale);                                                                       \
        struct row_slopes sums = row_slopes_##D(dy, x, w, z->n, r.mean);                                               \
        r.g_mean = z->mode == LAYER ? sums.g / (double)z->n : 0;                                                       \
        r.gh_mean = sums.gx * r.scale / (double)z->n;                                                                  \
        combine_##D(dx, dy, x, w, z->n, &r);                                                                           \
    }                                                                                                                  \
    static void grad_input_##D(const struct normalized *z, const struct kernel_call *c)                                \
    {                                                                                                                  \
        const T *w = c->in[2] != NULL ? c->in[2]->data : NULL, *dy = c->in[0]->data, *x = c->in[1]->data;              \
        for (int64_t i = 0; i < z->rows; i++) {                                                                        \
            row_grad_##D(z, (T *)c->out[0]->data + i * z->n, dy + i * z->n, x + i * z->n, w);                          \
        }                                                                                                              \
    }                                                                                                                  \
    static VECTOR_ROW(add_row_##D, (double *restrict sum, const T *dy, const T *x, int64_t n, const struct row *r),    \
                      (sum, dy, x, n, r))                                                                              \
    {                                                                                                                  \
        const double mean = r->mean, scale = r->scale;                                                                 \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            sum[j] += (double)dy[j] * ((double)x[j] - mean) * scale;                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    /* The same for STACK rows, in order: the sums are read and written once. */                                       \
    static VECTOR_ROW(add_stack_##D, (double *restrict sum, const T *dy, const T *x, int64_t n, const struct row *r),  \
                      (sum, dy, x, n, r))                                                                              \
    {                                                                                                                  \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            double s = sum[j];                                                                                         \
            for (int k = 0; k < STACK; k++) {                                                                          \
                s += (double)dy[k * n + j] * ((double)x[k * n + j] - r[k].mean) * r[k].scale;                          \
            }                                                                                                          \
            sum[j] = s;                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void grad_weight_##D(const struct normalized *z, const struct kernel_call *c, double *sum)                  \
    {                                                                                                                  \
        const T *dy = c->in[0]->data, *x = c->in[1]->data;                                                             \
        struct row r[STACK];                                                                                           \
        for (int64_t i = 0, some; i < z->rows; i += some) {                                                            \
            some = i + STACK <= z->rows ? STACK : 1;                                                                   \
            for (int64_t k = 0; k < some; k++) {                                                                       \
                statistics_##D(z, x + (i + k) * z->n, &r[k].mean, &r[k].scale);                                        \
            }                                                                                                          \
            (some == STACK ? add_stack_##D : add_row_##D)(sum, dy + i * z->n, x + i * z->n, z->n, r);                  \
        }                                                                                                              \
        for (int64_t j = 0; j < z->n; j++) {                                                                           \
            ((T *)c->out[0]->data)[j] = (T)sum[j];                                                                     \
        }                                                                                                              \
    }
FLOAT_TYPES(NORMALIZE, 0)

static const void *data_of(const struct mesh_tensor *t)
{
    return t != NULL ? t->data : NULL;
}

static int check(const char *name, mesh_dtype t)
{
    return t == MESH_F32 || t == MESH_F64 ? 0 : unsupported_dtype(name, t);
}

static int forward(const char *name, const struct kernel_call *c, int mode)
{
    const struct mesh_tensor *x = c->in[0];
    struct normalized z = rows_of(x, c->attr, mode);
    const void *w = data_of(c->in[1]), *b = mode == LAYER ? data_of(c->in[2]) : NULL;
    if (x->dtype == MESH_F32) {
        forward_F32(&z, c, w, b);
    } else if (x->dtype == MESH_F64) {
        forward_F64(&z, c, w, b);
    }
    return check(name, x->dtype);
}

int k_layer_norm(const struct kernel_call *c)
{
    return forward("layer_norm", c, LAYER);
}

int k_rms_norm(const struct kernel_call *c)
{
    return forward("rms_norm", c, RMS);
}

int k_normalize_grad_input(const struct kernel_call *c)
{
    struct normalized z = rows_of(c->in[1], c->attr, (int)c->attr->mode);
    if (c->in[1]->dtype == MESH_F32) {
        grad_input_F32(&z, c);
    } else if (c->in[1]->dtype == MESH_F64) {
        grad_input_F64(&z, c);
    }
    return check("normalize_grad_input", c->in[1]->dtype);
}

int k_normalize_grad_weight(const struct kernel_call *c)
{
    struct normalized z = rows_of(c->in[1], c->attr, (int)c->attr->mode);
    double *sum = mem_zalloc((size_t)z.n * sizeof *sum + 1);
    if (sum == NULL) {
        return err_no_memory((size_t)z.n * sizeof *sum, "the sums of a weight's gradient");
    }
    if (c->in[1]->dtype == MESH_F32) {
        grad_weight_F32(&z, c, sum);
    } else if (c->in[1]->dtype == MESH_F64) {
        grad_weight_F64(&z, c, sum);
    }
    mem_free(sum);
    return check("normalize_grad_weight", c->in[1]->dtype);
}
