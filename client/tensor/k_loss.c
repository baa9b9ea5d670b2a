/* client/tensor/k_loss.c - cross entropy between logits and class indices.
 *
 * For a row x of C logits with target t, p = softmax(x), smoothing e:
 *     loss  = (1 - e) (-log p[t]) + e mean over classes of (-log p)
 *     dx[j] = scale (p[j] - (1 - e) [j = t] - e / C)
 * A row whose target is the ignored index has loss 0 and no gradient.
 *
 * Logits are [n,C], [C] or [n,C,d...]; the target has the same shape without the class dimension.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "tensor/fast_math.h"
#include "tensor/kernels.h"
#include "tensor/loss_rows.h"
#include "tensor/numbers.h"
#include "tensor/row.h"
#include "base/vector.h"

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

struct slope { /* by what an exponential becomes an element of the gradient */
    double inverse, even, scale;
};

/* For one row; f64 but for the exponentials. */
#define ROW_KERNELS(D, T, U, unused)                                                                                   \
    SIDE_BY_SIDE(D, T)                                                                                                 \
    static T greatest_##D(const T *x, const struct loss_rows *r)                                                       \
    {                                                                                                                  \
        T copy[BLOCK], m = (T)-INFINITY;                                                                               \
        for (int64_t j = 0; j < r->n_classes; j += BLOCK) {                                                            \
            T most = row_max_##D(side_by_side_##D(x, r, j, copy), classes_from(r, j));                                 \
            m = most <= m || m != m ? m : most;                                                                        \
        }                                                                                                              \
        return m;                                                                                                      \
    }                                                                                                                  \
    static double log_sum_exp_##D(const T *x, const struct loss_rows *r)                                               \
    {                                                                                                                  \
        const T m = greatest_##D(x, r);                                                                                \
        T copy[BLOCK];                                                                                                 \
        double s = 0;                                                                                                  \
        for (int64_t j = 0; j < r->n_classes; j += BLOCK) {                                                            \
            s += row_exp_sum_##D(side_by_side_##D(x, r, j, copy), classes_from(r, j), m);                              \
        }                                                                                                              \
        return (double)m + log_of_one(s);                                                                              \
    }                                                                                                                  \
    static double row_loss_##D(const void *logits, const struct loss_rows *r, int64_t i, int64_t t)                    \
    {                                                                                                                  \
        const T *x = (const T *)logits + loss_row_begin(r, i);                                                         \
        T copy[BLOCK];                                                                                                 \
        double lse = log_sum_exp_##D(x, r), sum = 0;                                                                   \
        double loss = lse - (double)x[t * r->inner];                                                                   \
        if (r->smoothing == 0) {                                                                                       \
            return loss;                                                                                               \
        }                                                                                                              \
        for (int64_t j = 0; j < r->n_classes; j += BLOCK) {                                                            \
            sum -= row_deviations_##D(side_by_side_##D(x, r, j, copy), classes_from(r, j), lse).sum;                   \
        }                                                                                                              \
        return (1 - r->smoothing) * loss + r->smoothing * sum / (double)r->n_classes;                                  \
    }                                                                                                                  \
    /* dx[j] = scale (e[j] / sum - even), dx having e[j]. */                                                           \
    static VECTOR_ROW(step_##D, (T * dx, int64_t n, int64_t step, const struct slope *by), (dx, n, step, by))          \
    {                                                                                                                  \
        const double inverse = by->inverse, even = by->even, scale = by->scale;                                        \
        for (int64_t j = 0; step == 1 && j < n; j++) {                                                                 \
            dx[j] = (T)(scale * ((double)dx[j] * inverse - even));                                                     \
        }                                                                                                              \
        for (int64_t j = 0; step != 1 && j < n; j++) {                                                                 \
            dx[j * step] = (T)(scale * ((double)dx[j * step] * inverse - even));                                       \
        }                                                                                                              \
    }                                                                                                                  \
    /* exp(x - the greatest x) into dx; their sum. */                                                                  \
    static double exponentials_##D(T *dx, const T *x, const struct loss_rows *r)                                       \
    {                                                                                                                  \
        const T m = greatest_##D(x, r);                                                                                \
        T copy[BLOCK], e[BLOCK];                                                                                       \
        double sum = 0;                                                                                                \
        for (int64_t j = 0; j < r->n_classes; j += BLOCK) {                                                            \
            const int64_t n = classes_from(r, j);                                                                      \
            T *to = r->inner == 1 ? dx + j : e;                                                                        \
            row_exp_##D(to, side_by_side_##D(x, r, j, copy), n, m);                                                    \
            sum += row_sum_##D(to, n);                                                                                 \
            for (int64_t k = 0; r->inner != 1 && k < n; k++) {                                                         \
                dx[(j + k) * r->inner] = e[k];                                                                         \
            }                                                                                                          \
        }                                                                                                              \
        return sum;                                                                                                    \
    }                                                                                                                  \
    static void row_grad_##D(void *out, const void *logits, const struct loss_rows *r, int64_t i, int64_t t,           \
                             double scale)                                                                             \
    {                                                                                                                  \
        T *dx = (T *)out + loss_row_begin(r, i);                                                                       \
        if (t == r->ignored) {                                                                                         \
            for (int64_t j = 0; j < r->n_classes; j++) {                                                               \
                dx[j * r->inner] = 0;                                                                                  \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        double sum = exponentials_##D(dx, (const T *)logits + loss_row_begin(r, i), r);                                \
        struct slope by = { .inverse = 1 / sum, .even = r->smoothing / (double)r->n_classes, .scale = scale };         \
        double at_target = (double)dx[t * r->inner] * by.inverse;                                                      \
        step_##D(dx, r->n_classes, r->inner, &by);                                                                     \
        dx[t * r->inner] = (T)(scale * (at_target - (by.even + (1 - r->smoothing))));                                  \
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
    struct mesh_tensor *out = c->out[0];
    struct loss_rows rows = whole_rows(logits, c->attr);
    int r = loss_check("cross_entropy_grad", &rows, c, 1, 2);
    if (r < 0) {
        return r;
    }
    for (int64_t i = 0; i < rows.n; i++) {
        int64_t t = loss_target(target, i);
        double s = loss_load(scale, scale->shape.ndim == 0 ? 0 : i);
        if (logits->dtype == MESH_F32) {
            row_grad_F32(out->data, logits->data, &rows, i, t, s);
        } else {
            row_grad_F64(out->data, logits->data, &rows, i, t, s);
        }
    }
    return 0;
}
