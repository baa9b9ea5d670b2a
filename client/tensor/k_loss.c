/* client/tensor/k_loss.c - cross entropy between logits and class indices.
 *
 * For a row x of C logits with target t, p = softmax(x), smoothing e:
 *     loss  = (1 - e) (-log p[t]) + e mean over classes of (-log p)
 *     dx[j] = scale (p[j] - (1 - e) [j = t] - e / C)
 * A row whose target is the ignored index has loss 0 and no gradient.  The loss reads memory once, with smoothing once
 * more from a cache; the gradient reads and writes it once: row_exp.h says how.
 *
 * Logits are [n,C], [C] or [n,C,d...]; the target has the same shape without the class dimension.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"
#include "base/util.h"
#include "tensor/fast_math.h"
#include "tensor/kernels.h"
#include "tensor/loss_rows.h"
#include "tensor/numbers.h"
#include "tensor/past_caches.h"
#include "tensor/row.h"
#include "tensor/row_exp.h"

#define BLOCK 512 /* classes at a time */

static int64_t classes_from(const struct loss_rows *r, int64_t first)
{
    return MIN(r->n_classes - first, BLOCK);
}

/* The classes from `first` on, at most BLOCK, side by side: where they are, or in copy[]. */
#define SIDE_BY_SIDE(D, T)                                                                                             \
    static const T *side_by_side_##D(const T *x, const struct loss_rows *r, int64_t first, T *copy)                    \
    {                                                                                                                  \
        const int64_t n = classes_from(r, first);                                                                      \
        x += first * r->inner;                                                                                         \
        for (int64_t j = 0; r->inner != 1 && j < n; j++) {                                                             \
            copy[j] = x[j * r->inner];                                                                                 \
        }                                                                                                              \
        return r->inner == 1 ? x : copy;                                                                               \
    }

/* What the gradients of rows are made of. */
struct gradient {
    struct loss_rows rows;
    struct mesh_tensor *out;
    const struct mesh_tensor *logits;
    bool is_large; /* written past the caches */
};

/* For one row; f64 but for the exponentials and what is made of each of them. */
#define ROW_KERNELS(D, T, U, unused)                                                                                   \
    SIDE_BY_SIDE(D, T)                                                                                                 \
    static struct row_exponentials exponentials_##D(const T *x, const struct loss_rows *r) {                           \
        struct row_exponentials e = row_exponentials_of_none();                                                        \
        T copy[BLOCK];                                                                                                 \
        for (int64_t j = 0; j < r->n_classes; j += BLOCK) {                                                            \
            e = row_exponentials_##D(side_by_side_##D(x, r, j, copy), classes_from(r, j), e);                          \
        }                                                                                                              \
        return e;                                                                                                      \
    } /* NaN where an element is infinite: what is subtracted from it is. */                                           \
    static double row_loss_##D(const void *logits, const struct loss_rows *r, int64_t i, int64_t t)                    \
    {                                                                                                                  \
        const T *x = (const T *)logits + loss_row_begin(r, i);                                                         \
        const struct row_exponentials e = exponentials_##D(x, r);                                                      \
        T copy[BLOCK];                                                                                                 \
        double lse = e.center + log_of_one(e.sum), sum = 0;                                                            \
        double loss = lse - (double)x[t * r->inner];                                                                   \
        if (r->smoothing == 0) {                                                                                       \
            return loss;                                                                                               \
        }                                                                                                              \
        for (int64_t j = 0; j < r->n_classes; j += BLOCK) {                                                            \
            sum -= row_deviations_##D(side_by_side_##D(x, r, j, copy), classes_from(r, j), lse).sum;                   \
        }                                                                                                              \
        return (1 - r->smoothing) * loss + r->smoothing * sum / (double)r->n_classes;                                  \
    }                                                                                                                  \
    /* dx = factor exp(x) / sum exp(x) + offset, of classes that lie apart. */                                         \
    static struct row_exponentials softmax_apart_##D(T *dx, const T *x, const struct loss_rows *r,                     \
                                                     const struct row_softmax *how) {                                  \
        const struct row_exponentials e = exponentials_##D(x, r);                                                      \
        const T factor = (T)(how->factor / e.sum), offset = (T)how->offset;                                            \
        T copy[BLOCK], power[BLOCK];                                                                                   \
        for (int64_t j = 0; j < r->n_classes; j += BLOCK) {                                                            \
            const int64_t n = classes_from(r, j);                                                                      \
            row_exp_##D(power, side_by_side_##D(x, r, j, copy), n, (T)e.center);                                       \
            for (int64_t k = 0; k < n; k++) {                                                                          \
                dx[(j + k) * r->inner] = power[k] * factor + offset;                                                   \
            }                                                                                                          \
        }                                                                                                              \
        return e;                                                                                                      \
    } /* Into dx of row i, whose target is t. */                                                                       \
    static void row_grad_##D(const struct gradient *g, int64_t i, int64_t t, double scale)                             \
    {                                                                                                                  \
        const struct loss_rows *r = &g->rows;                                                                          \
        T *dx = (T *)g->out->data + loss_row_begin(r, i);                                                              \
        const T *x = (const T *)g->logits->data + loss_row_begin(r, i);                                                \
        if (t == r->ignored) {                                                                                         \
            for (int64_t j = 0; j < r->n_classes; j++) {                                                               \
                dx[j * r->inner] = 0;                                                                                  \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        const double even = r->smoothing / (double)r->n_classes;                                                       \
        const struct row_softmax how = { .factor = scale, .offset = -scale * even, .is_large = g->is_large };          \
        const struct row_exponentials e =                                                                              \
            r->inner == 1 ? row_softmax_##D(dx, x, r->n_classes, &how) : softmax_apart_##D(dx, x, r, &how);            \
        double p = exp_of_one((double)x[t * r->inner] - e.center) / e.sum;                                             \
        dx[t * r->inner] = (T)(scale * (p - (even + (1 - r->smoothing))));                                             \
    }
FLOAT_TYPES(ROW_KERNELS, 0)

static double row_loss(const struct mesh_tensor *logits, const struct loss_rows *r, int64_t i, int64_t t)
{
    return logits->dtype == MESH_F32 ? row_loss_F32(logits->data, r, i, t) : row_loss_F64(logits->data, r, i, t);
}

/* Every row has all its classes here. */
static struct loss_rows whole_rows(const struct mesh_tensor *logits, const struct op_attr *attr)
{
    struct loss_rows r = loss_rows_of(logits, attr, 0);
    r.all_classes = r.n_classes;
    return r;
}

static int check_forward(const struct kernel_call *c, struct loss_rows *ret_rows)
{
    *ret_rows = whole_rows(c->in[0], c->attr);
    return loss_check("cross_entropy", ret_rows, c, 0, 1);
}

int k_cross_entropy_rows(const struct kernel_call *c)
{
    struct loss_rows rows;
    int r = check_forward(c, &rows);
    if (r < 0) {
        return r;
    }
    for (int64_t i = 0; i < rows.n; i++) {
        int64_t t = loss_target(c->in[1], i);
        loss_store(c->out[0], i, t == rows.ignored ? 0 : row_loss(c->in[0], &rows, i, t));
    }
    return 0;
}

int k_cross_entropy_sum(const struct kernel_call *c)
{
    struct loss_rows rows;
    int r = check_forward(c, &rows);
    if (r < 0) {
        return r;
    }
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < rows.n; i++) {
        int64_t t = loss_target(c->in[1], i);
        if (t != rows.ignored) {
            sum += row_loss(c->in[0], &rows, i, t);
            count++;
        }
    }
    loss_store(c->out[0], 0, sum);
    loss_store(c->out[1], 0, (double)count);
    return 0;
}

int k_cross_entropy_grad(const struct kernel_call *c)
{
    const struct mesh_tensor *scale = c->in[0], *logits = c->in[1], *target = c->in[2];
    struct gradient g = { .rows = whole_rows(logits, c->attr), .out = c->out[0], .logits = logits };
    int r = loss_check("cross_entropy_grad", &g.rows, c, 1, 2);
    if (r < 0) {
        return r;
    }
    g.is_large = g.rows.inner == 1 && goes_past_caches(g.out->data, tensor_bytes(g.out),
                                                       (size_t)g.rows.n_classes * dtype_size(g.out->dtype));
    for (int64_t i = 0; i < g.rows.n; i++) {
        double s = loss_load(scale, scale->shape.ndim == 0 ? 0 : i);
        (logits->dtype == MESH_F32 ? row_grad_F32 : row_grad_F64)(&g, i, loss_target(target, i), s);
    }
    finish_past_caches();
    return 0;
}
