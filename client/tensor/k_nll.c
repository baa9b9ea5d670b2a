/* client/tensor/k_nll.c - what the target classes cost, given the logarithms lp of the classes' probabilities.
 *
 * For a row with target t, smoothing e and C classes in all:
 *     nll_loss_rows, nll_loss_sum   -(1 - e) lp[t] - e / C sum over classes of lp
 *     nll_grad                      dlp[j] = -scale ((1 - e) [j = t] + e / C)
 *              mode 1               by the logits under the log_softmax: dx[j] = scale (exp lp[j] - (1 - e) [j = t] - e / C)
 * A rank that has some of the classes adds what those contribute; a row counts where its target is, so that losses and
 * counts are sums over the classes' shards.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tensor/kernels.h"
#include "tensor/loss_rows.h"

static int64_t class_offset(const struct kernel_call *c)
{
    int ndim = c->in[0]->shape.ndim;
    return c->in[0]->n == 0 || ndim == 0 ? 0 : c->offset[ndim == 1 ? 0 : 1];
}

static int check(const struct kernel_call *c, int target, struct loss_rows *ret_rows)
{
    *ret_rows = loss_rows_of(c->in[0], c->attr, class_offset(c));
    return loss_check("nll_loss", ret_rows, c, 0, target);
}

static bool is_owner(const struct loss_rows *r, int64_t t)
{
    return t >= r->first_class && t < r->first_class + r->n_classes;
}

static double row_loss(const struct kernel_call *c, const struct loss_rows *r, int64_t i, int64_t t)
{
    int64_t begin = loss_row_begin(r, i);
    double loss = 0, sum = 0;
    if (is_owner(r, t)) {
        loss = -(1 - r->smoothing) * loss_load(c->in[0], begin + (t - r->first_class) * r->inner);
    }
    for (int64_t j = 0; r->smoothing > 0 && j < r->n_classes; j++) {
        sum += loss_load(c->in[0], begin + j * r->inner);
    }
    return loss - r->smoothing * sum / (double)r->all_classes;
}

int k_nll_loss_rows(const struct kernel_call *c)
{
    struct loss_rows rows;
    int r = check(c, 1, &rows);
    for (int64_t i = 0; r == 0 && i < rows.n; i++) {
        int64_t t = loss_target(c->in[1], i);
        loss_store(c->out[0], i, t == rows.ignored ? 0 : row_loss(c, &rows, i, t));
    }
    return r;
}

int k_nll_loss_sum(const struct kernel_call *c)
{
    struct loss_rows rows;
    int r = check(c, 1, &rows);
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; r == 0 && i < rows.n; i++) {
        int64_t t = loss_target(c->in[1], i);
        sum += t == rows.ignored ? 0 : row_loss(c, &rows, i, t);
        count += t != rows.ignored && is_owner(&rows, t);
    }
    if (r == 0) {
        loss_store(c->out[0], 0, sum);
        loss_store(c->out[1], 0, (double)count);
    }
    return r;
}

int k_nll_grad(const struct kernel_call *c)
{
    const struct mesh_tensor *lp = c->in[0], *scale = c->in[1], *target = c->in[2];
    struct loss_rows rows;
    int r = check(c, 2, &rows);
    double even = rows.smoothing / (double)rows.all_classes;
    for (int64_t i = 0; r == 0 && i < rows.n; i++) {
        int64_t t = loss_target(target, i), begin = loss_row_begin(&rows, i);
        double s = t == rows.ignored ? 0 : loss_load(scale, scale->shape.ndim == 0 ? 0 : i);
        for (int64_t j = 0; j < rows.n_classes; j++) {
            int64_t at = begin + j * rows.inner;
            double p = c->attr->mode == 1 && t != rows.ignored ? exp(loss_load(lp, at)) : 0;
            double q = even + (j + rows.first_class == t ? 1 - rows.smoothing : 0);
            loss_store(c->out[0], at, t == rows.ignored ? 0 : s * (p - q));
        }
    }
    return r;
}
