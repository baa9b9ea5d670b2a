/* client/tensor/k_loss.c - cross entropy between logits and class indices.
 *
 * For a row x of C logits with target t, p = softmax(x), smoothing e:
 *     loss  = (1 - e) (-log p[t]) + e mean over classes of (-log p)
 *     dx[j] = scale (p[j] - (1 - e) [j = t] - e / C)
 * A row whose target is the ignored index has loss 0 and no gradient.
 *
 * Logits are [n,C], [C] or [n,C,d...]; the target has the same shape without the class dimension.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>
#include <tgmath.h>

#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"

/* How the rows lie in the logits: row i begins at (i / inner) * n_classes * inner + i % inner, classes are `inner` apart. */
struct rows {
    int64_t n, n_classes, inner;
    double smoothing;
    int64_t ignored;
};

static struct rows rows_of(const struct mesh_tensor *logits, const struct op_attr *attr)
{
    int class_dim = logits->shape.ndim == 1 ? 0 : 1;
    struct rows r = { .n_classes = logits->shape.dim[class_dim],
                      .inner = shape_inner(logits->shape, class_dim),
                      .smoothing = attr->value[0],
                      .ignored = attr->index[0] };
    r.n = shape_outer(logits->shape, class_dim) * r.inner;
    return r;
}

static int64_t row_begin(const struct rows *r, int64_t i)
{
    return i / r->inner * r->n_classes * r->inner + i % r->inner;
}

static int64_t target_of(const struct mesh_tensor *target, int64_t i)
{
    switch (target->dtype) {
#define TARGET(D, T, U, unused)                                                                                        \
    case MESH_##D:                                                                                                     \
        return (int64_t)((const T *)target->data)[i];
        INT_TYPES(TARGET, 0)
    default:
        return -1;
    }
}

/* Only this rank sees its targets: a bad one is a local failure. */
static int check_targets(const struct rows *r, const struct mesh_tensor *target, int64_t first_row)
{
    for (int64_t i = 0; i < r->n; i++) {
        int64_t t = target_of(target, i);
        if (t != r->ignored && (t < 0 || t >= r->n_classes)) {
            return err_set_local(
                MESH_EINVAL,
                "cross_entropy: the target of row %lld is %lld, but there are %lld classes (and %lld is "
                "the ignored one)",
                (long long)(first_row + i / r->inner), (long long)t, (long long)r->n_classes, (long long)r->ignored);
        }
    }
    return 0;
}

static int check(const char *name, const struct mesh_tensor *logits, const struct mesh_tensor *target)
{
    if (logits->dtype != MESH_F32 && logits->dtype != MESH_F64) {
        return unsupported_dtype(name, logits->dtype);
    }
    return target->dtype == MESH_I64 || target->dtype == MESH_I32
               ? 0
               : unsupported_dtype("a cross_entropy target", target->dtype);
}

/* log of the sum of exp(x), and the mean of x, for one row; f64 all the way. */
#define ROW_KERNELS(D, T, U, unused)                                                                                   \
    static double log_sum_exp_##D(const T *x, const struct rows *r)                                                    \
    {                                                                                                                  \
        T m = (T)-INFINITY;                                                                                            \
        double s = 0;                                                                                                  \
        for (int64_t j = 0; j < r->n_classes; j++) {                                                                   \
            m = x[j * r->inner] > m ? x[j * r->inner] : m;                                                             \
        }                                                                                                              \
        for (int64_t j = 0; j < r->n_classes; j++) {                                                                   \
            s += (double)exp(x[j * r->inner] - m);                                                                     \
        }                                                                                                              \
        return (double)m + log(s);                                                                                     \
    }                                                                                                                  \
    static double row_loss_##D(const void *logits, const struct rows *r, int64_t i, int64_t t)                         \
    {                                                                                                                  \
        const T *x = (const T *)logits + row_begin(r, i);                                                              \
        double lse = log_sum_exp_##D(x, r), sum = 0;                                                                   \
        double loss = lse - (double)x[t * r->inner];                                                                   \
        if (r->smoothing == 0) {                                                                                       \
            return loss;                                                                                               \
        }                                                                                                              \
        for (int64_t j = 0; j < r->n_classes; j++) {                                                                   \
            sum += lse - (double)x[j * r->inner];                                                                      \
        }                                                                                                              \
        return (1 - r->smoothing) * loss + r->smoothing * sum / (double)r->n_classes;                                  \
    }                                                                                                                  \
    static void row_grad_##D(void *out, const void *logits, const struct rows *r, int64_t i, int64_t t, double scale)  \
    {                                                                                                                  \
        const T *x = (const T *)logits + row_begin(r, i);                                                              \
        T *dx = (T *)out + row_begin(r, i);                                                                            \
        double lse = log_sum_exp_##D(x, r), even = r->smoothing / (double)r->n_classes;                                \
        for (int64_t j = 0; j < r->n_classes; j++) {                                                                   \
            double p = (double)exp((T)((double)x[j * r->inner] - lse));                                                \
            double q = even + (j == t ? 1 - r->smoothing : 0);                                                         \
            dx[j * r->inner] = (T)(scale * (p - q));                                                                   \
        }                                                                                                              \
    }
FLOAT_TYPES(ROW_KERNELS, 0)

static double row_loss(const struct mesh_tensor *logits, const struct rows *r, int64_t i, int64_t t)
{
    return logits->dtype == MESH_F32 ? row_loss_F32(logits->data, r, i, t) : row_loss_F64(logits->data, r, i, t);
}

static void store(struct mesh_tensor *t, int64_t i, double v)
{
    if (t->dtype == MESH_F32) {
        ((float *)t->data)[i] = (float)v;
    } else if (t->dtype == MESH_F64) {
        ((double *)t->data)[i] = v;
    } else {
        PRE(t->dtype == MESH_I64);
        ((int64_t *)t->data)[i] = (int64_t)v;
    }
}

static double load(const struct mesh_tensor *t, int64_t i)
{
    return t->dtype == MESH_F32 ? (double)((const float *)t->data)[i] : ((const double *)t->data)[i];
}

static int check_forward(const struct kernel_call *c, struct rows *ret_rows)
{
    int r = check("cross_entropy", c->in[0], c->in[1]);
    if (r < 0) {
        return r;
    }
    *ret_rows = rows_of(c->in[0], c->attr);
    return check_targets(ret_rows, c->in[1], c->in[0]->shape.ndim == 1 ? 0 : c->offset[0]);
}

int k_cross_entropy_rows(const struct kernel_call *c)
{
    struct rows rows;
    int r = check_forward(c, &rows);
    if (r < 0) {
        return r;
    }
    for (int64_t i = 0; i < rows.n; i++) {
        int64_t t = target_of(c->in[1], i);
        store(c->out[0], i, t == rows.ignored ? 0 : row_loss(c->in[0], &rows, i, t));
    }
    return 0;
}

int k_cross_entropy_sum(const struct kernel_call *c)
{
    struct rows rows;
    int r = check_forward(c, &rows);
    if (r < 0) {
        return r;
    }
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < rows.n; i++) {
        int64_t t = target_of(c->in[1], i);
        if (t != rows.ignored) {
            sum += row_loss(c->in[0], &rows, i, t);
            count++;
        }
    }
    store(c->out[0], 0, sum);
    store(c->out[1], 0, (double)count);
    return 0;
}

int k_cross_entropy_grad(const struct kernel_call *c)
{
    const struct mesh_tensor *scale = c->in[0], *logits = c->in[1], *target = c->in[2];
    struct mesh_tensor *out = c->out[0];
    int r = check("cross_entropy_grad", logits, target);
    struct rows rows;
    if (r == 0) {
        rows = rows_of(logits, c->attr);
        r = check_targets(&rows, target, 0);
    }
    if (r < 0) {
        return r;
    }
    memset(out->data, 0, tensor_bytes(out)); /* the ignored rows */
    for (int64_t i = 0; i < rows.n; i++) {
        int64_t t = target_of(target, i);
        if (t == rows.ignored) {
            continue;
        }
        double s = load(scale, scale->shape.ndim == 0 ? 0 : i);
        if (logits->dtype == MESH_F32) {
            row_grad_F32(out->data, logits->data, &rows, i, t, s);
        } else {
            row_grad_F64(out->data, logits->data, &rows, i, t, s);
        }
    }
    return 0;
}
