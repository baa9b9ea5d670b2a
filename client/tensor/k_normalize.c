/* client/tensor/k_normalize.c - layer_norm, rms_norm and their gradients, over rows of the last index[0] dims.
 *
 * For a row x of n elements with eps = value[0]:
 *     layer_norm  h = (x - mean x) r,  r = 1 / sqrt(var x + eps)          y = h w + b
 *     rms_norm    h = x r,             r = 1 / sqrt(mean x^2 + eps)       y = h w
 * With g = dy w:
 *     normalize_grad_input   dx = r (g - h mean(g h) - mean g)            (the last term for layer_norm, mode 0, only)
 *     normalize_grad_weight  dw = sum over rows of dy h
 * Statistics are kept in f64; with them each element is computed in the dtype of x, in at most seven roundings.
 *
 * layer_norm, rms_norm: memory is read once and written once, as long as a row stays in a cache until it is read again.
 * The gradients read dy and x once each.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/past_caches.h"
#include "tensor/row.h"
#include "base/vector.h"

enum { LAYER, RMS };

#define STACK 4   /* rows that are added to the sums over rows together */
#define BLOCK 512 /* elements that are computed before they are written past the caches */

struct row {          /* of one row: what h needs, and the means of g and g h */
    double high, low; /* the mean, in two numbers of the dtype */
    double scale, g_mean, gh_mean;
};

struct normalized {
    int64_t rows, n;
    double eps;
    int mode;
    bool is_large; /* the result is written past the caches */
};

static struct normalized rows_of(const struct mesh_tensor *x, const struct op_attr *attr, int mode,
                                 const struct mesh_tensor *out)
{
    struct normalized z = { .rows = 1, .n = 1, .eps = attr->value[0], .mode = mode };
    for (int d = 0; d < x->shape.ndim; d++) {
        *(d < x->shape.ndim - attr->index[0] ? &z.rows : &z.n) *= x->shape.dim[d];
    }
    z.is_large = goes_past_caches(out->data, tensor_bytes(out), (size_t)z.n * dtype_size(out->dtype));
    return z;
}

#define PLUS_OR_NULL(p, j) ((p) != NULL ? (p) + (j) : NULL)

/* x - mean, the mean in two parts: the first subtraction is exact where x is near it. */
#define CENTERED(x)    (((x)-high) - low)
#define PARTS_OF(T, r) const T high = (T)(r)->high, low = (T)(r)->low

#define NORMALIZE(D, T, U, unused)                                                                                     \
    static struct row statistics_##D(const struct normalized *z, const T *x) {                                         \
        const double n = (double)z->n;                                                                                 \
        if (z->mode == RMS) {                                                                                          \
            return (struct row){ .scale = 1 / sqrt(row_dot_##D(x, x, z->n) / n + z->eps) };                            \
        }                                                                                                              \
        struct row_moments m = row_moments_##D(x, z->n, (struct row_moments){ .n = 0 });                               \
        const double var = row_squares_about_mean(m.sum, m.square, n) / n, mean = row_moments_mean(&m);                \
        const double high = (double)(T)mean; /* not in a vector loop, where gcc 12 takes it for the mean itself */     \
        return (struct row){ .high = high, .low = mean - high, .scale = 1 / sqrt(var + z->eps) };                      \
    } /* With statistics known: each element by itself. */                                                             \
    static VECTOR_ROW(write_##D, (T *restrict y, const T *x, const T *w, const T *b, int64_t n, const struct row *r),  \
                      (y, x, w, b, n, r))                                                                              \
    {                                                                                                                  \
        PARTS_OF(T, r);                                                                                                \
        const T scale = (T)r->scale;                                                                                   \
        for (int64_t j = 0; w != NULL && b != NULL && j < n; j++) {                                                    \
            y[j] = CENTERED(x[j]) * scale * w[j] + b[j];                                                               \
        }                                                                                                              \
        for (int64_t j = 0; w != NULL && b == NULL && j < n; j++) {                                                    \
            y[j] = CENTERED(x[j]) * scale * w[j];                                                                      \
        }                                                                                                              \
        for (int64_t j = 0; w == NULL && j < n; j++) {                                                                 \
            y[j] = CENTERED(x[j]) * scale + (b != NULL ? b[j] : 0);                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    static void forward_##D(const struct normalized *z, const struct kernel_call *c, const T *w, const T *b)           \
    {                                                                                                                  \
        T block[BLOCK] __attribute__((aligned(CACHE_LINE)));                                                           \
        for (int64_t i = 0; i < z->rows; i++) {                                                                        \
            const T *x = (const T *)c->in[0]->data + i * z->n;                                                         \
            T *y = (T *)c->out[0]->data + i * z->n;                                                                    \
            const struct row r = statistics_##D(z, x);                                                                 \
            for (int64_t j = 0; j < z->n; j += BLOCK) {                                                                \
                const int64_t n = MIN(z->n - j, BLOCK);                                                                \
                write_##D(z->is_large ? block : y + j, x + j, PLUS_OR_NULL(w, j), PLUS_OR_NULL(b, j), n, &r);          \
                if (z->is_large) {                                                                                     \
                    write_past_caches(y + j, block, (size_t)n * sizeof(T));                                            \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static VECTOR_ROW(combine_##D,                                                                                     \
                      (T *restrict dx, const T *dy, const T *x, const T *w, int64_t n, const struct row *r),           \
                      (dx, dy, x, w, n, r))                                                                            \
    {                                                                                                                  \
        PARTS_OF(T, r);                                                                                                \
        const T scale = (T)r->scale, even = (T)(r->scale * r->g_mean), slope = (T)(r->scale * r->gh_mean);             \
        for (int64_t j = 0; w != NULL && j < n; j++) {                                                                 \
            dx[j] = (dy[j] * w[j] * scale - even) - CENTERED(x[j]) * scale * slope;                                    \
        }                                                                                                              \
        for (int64_t j = 0; w == NULL && j < n; j++) {                                                                 \
            dx[j] = (dy[j] * scale - even) - CENTERED(x[j]) * scale * slope;                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void row_grad_##D(const struct normalized *z, T *dx, const T *dy, const T *x, const T *w)                   \
    {                                                                                                                  \
        struct row r = statistics_##D(z, x);                                                                           \
        struct row_slopes sums = row_slopes_##D(dy, x, w, z->n, r.high + r.low);                                       \
        r.g_mean = z->mode == LAYER ? sums.g / (double)z->n : 0;                                                       \
        r.gh_mean = sums.gx * r.scale / (double)z->n;                                                                  \
        T block[BLOCK] __attribute__((aligned(CACHE_LINE)));                                                           \
        for (int64_t j = 0; j < z->n; j += BLOCK) {                                                                    \
            const int64_t n = MIN(z->n - j, BLOCK);                                                                    \
            combine_##D(z->is_large ? block : dx + j, dy + j, x + j, PLUS_OR_NULL(w, j), n, &r);                       \
            if (z->is_large) {                                                                                         \
                write_past_caches(dx + j, block, (size_t)n * sizeof(T));                                               \
            }                                                                                                          \
        }                                                                                                              \
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
        PARTS_OF(T, r);                                                                                                \
        const T scale = (T)r->scale;                                                                                   \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            sum[j] += (double)(dy[j] * (CENTERED(x[j]) * scale));                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    /* The same for STACK rows, in order: the sums are read and written once. */                                       \
    static VECTOR_ROW(add_stack_##D, (double *restrict sum, const T *dy, const T *x, int64_t n, const struct row *r),  \
                      (sum, dy, x, n, r))                                                                              \
    {                                                                                                                  \
        T high[STACK], low[STACK], scale[STACK];                                                                       \
        for (int k = 0; k < STACK; k++) {                                                                              \
            high[k] = (T)r[k].high;                                                                                    \
            low[k] = (T)r[k].low;                                                                                      \
            scale[k] = (T)r[k].scale;                                                                                  \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            double s = sum[j];                                                                                         \
            for (int k = 0; k < STACK; k++) {                                                                          \
                s += (double)(dy[k * n + j] * (((x[k * n + j] - high[k]) - low[k]) * scale[k]));                       \
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
                r[k] = statistics_##D(z, x + (i + k) * z->n);                                                          \
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
    struct normalized z = rows_of(x, c->attr, mode, c->out[0]);
    const void *w = data_of(c->in[1]), *b = mode == LAYER ? data_of(c->in[2]) : NULL;
    if (x->dtype == MESH_F32) {
        forward_F32(&z, c, w, b);
    } else if (x->dtype == MESH_F64) {
        forward_F64(&z, c, w, b);
    }
    finish_past_caches();
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
    struct normalized z = rows_of(c->in[1], c->attr, (int)c->attr->mode, c->out[0]);
    if (c->in[1]->dtype == MESH_F32) {
        grad_input_F32(&z, c);
    } else if (c->in[1]->dtype == MESH_F64) {
        grad_input_F64(&z, c);
    }
    finish_past_caches();
    return check("normalize_grad_input", c->in[1]->dtype);
}

int k_normalize_grad_weight(const struct kernel_call *c)
{
    struct normalized z = rows_of(c->in[1], c->attr, (int)c->attr->mode, c->out[0]);
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
