/* client/tensor/k_moments.c - variances and sums of exponentials: of whole rows in one kernel, or what shards
 * contribute.
 *
 *     var              sum (x - mean)^2 / (n - correction), in one pass over memory: row.h says how
 *     deviation_sums   q = sum (x - m)^2 and s = sum (x - m) around a mean m that was rounded to the dtype; one pass;
 *                      sum (x - mean)^2 = q - s^2 / n whatever m, so the rounding does no harm
 *     exp_sum          sum exp(x - m), m given; mode 1: an infinite m counts as 0; one pass
 *     logsumexp        m + log sum exp(x - m), m the largest element that has come; one pass
 *
 * value[1] is 1 / (n - correction), of the whole tensor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/error.h"
#include "tensor/fast_math.h"
#include "tensor/numbers.h"
#include "tensor/reduce_walk.h"
#include "tensor/row.h"
#include "tensor/row_exp.h"
#include "base/vector.h"

struct moments { /* [results] each */
    double *center, *sum, *square;
    bool takes_infinite; /* an infinite center counts as 0 */
};

/* Rows whose elements go into neighbours. */
#define COLUMNS(D, T, U, unused)                                                                                       \
    static VECTOR_ROW(add_deviations_##D,                                                                              \
                      (double *restrict sum, double *restrict square, const double *restrict center,                   \
                       const T *restrict x, int64_t n, int64_t step),                                                  \
                      (sum, square, center, x, n, step))                                                               \
    {                                                                                                                  \
        for (int64_t i = 0; step == 0 && i < n; i++) {                                                                 \
            const double v = (double)x[i] - center[i];                                                                 \
            sum[i] += v;                                                                                               \
            square[i] += v * v;                                                                                        \
        }                                                                                                              \
        for (int64_t i = 0; step != 0 && i < n; i++) {                                                                 \
            double s = sum[i], q = square[i];                                                                          \
            for (int64_t k = 0; k < REDUCE_STACK; k++) {                                                               \
                const double v = (double)x[k * step + i] - center[i];                                                  \
                s += v;                                                                                                \
                q += v * v;                                                                                            \
            }                                                                                                          \
            sum[i] = s;                                                                                                \
            square[i] = q;                                                                                             \
        }                                                                                                              \
    }
FLOAT_TYPES(COLUMNS, 0)

#define EXP_COLUMNS(D, T, U, unused)                                                                                   \
    static VECTOR_ROW(                                                                                                 \
        add_exp_##D,                                                                                                   \
        (double *restrict sum, const double *restrict center, const T *restrict x, int64_t n, double least),           \
        (sum, center, x, n, least))                                                                                    \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const double c = fabs(center[i]) >= least ? 0 : center[i];                                                 \
            sum[i] += (double)exp((T)((double)x[i] - c));                                                              \
        }                                                                                                              \
    }
FLOAT_TYPES(EXP_COLUMNS, 0)

static VECTOR_ROW(recenter,
                  (double *restrict center, double *restrict sum, double *restrict square, int64_t n, double count),
                  (center, sum, square, n, count))
{
    for (int64_t i = 0; i < n; i++) {
        row_recenter(&center[i], &sum[i], &square[i], count);
    }
}

#define MOMENT_ROWS(D, T, U, unused)                                                                                   \
    static void deviation_row_##D(void *state, const struct reduce_row *r)                                             \
    {                                                                                                                  \
        const struct moments *m = state;                                                                               \
        double *center = m->center + r->out, *sum = m->sum + r->out, *square = m->square + r->out;                     \
        if (r->out_step == 0) {                                                                                        \
            struct row_deviations d = row_deviations_##D(r->x, r->n, *center);                                         \
            *sum += d.sum;                                                                                             \
            *square += d.square;                                                                                       \
        } else {                                                                                                       \
            add_deviations_##D(sum, square, center, r->x, r->n, reduce_step(r));                                       \
        }                                                                                                              \
    }                                                                                                                  \
    /* r->index elements have gone into the result before. */                                                          \
    static void moment_row_##D(void *state, const struct reduce_row *r)                                                \
    {                                                                                                                  \
        const struct moments *m = state;                                                                               \
        double *center = m->center + r->out, *sum = m->sum + r->out, *square = m->square + r->out;                     \
        const int64_t count = r->index + (r->is_stack ? REDUCE_STACK : 1);                                             \
        if (r->out_step == 0) {                                                                                        \
            struct row_moments of_row = { *center, *sum, *square, r->index };                                          \
            of_row = row_moments_##D(r->x, r->n, of_row);                                                              \
            *center = of_row.center;                                                                                   \
            *sum = of_row.sum;                                                                                         \
            *square = of_row.square;                                                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; r->index == 0 && i < r->n; i++) {                                                          \
            center[i] = (double)((const T *)r->x)[i];                                                                  \
        }                                                                                                              \
        add_deviations_##D(sum, square, center, r->x, r->n, reduce_step(r));                                           \
        if ((r->index ^ count) >= r->index) { /* a power of 2 was passed */                                            \
            recenter(center, sum, square, r->n, (double)count);                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void exp_row_##D(void *state, const struct reduce_row *r)                                                   \
    {                                                                                                                  \
        const struct moments *m = state;                                                                               \
        const double *center = m->center + r->out;                                                                     \
        double *sum = m->sum + r->out, least = m->takes_infinite ? HUGE_VAL : NAN; /* NaN compares with nothing */     \
        if (r->out_step == 0) {                                                                                        \
            *sum += row_exp_sum_##D(r->x, r->n, (T)(fabs(*center) >= least ? 0 : *center));                            \
        } else {                                                                                                       \
            add_exp_##D(sum, center, r->x, r->n, least);                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    static void log_row_##D(void *state, const struct reduce_row *r)                                                   \
    {                                                                                                                  \
        const struct moments *m = state;                                                                               \
        double *most = m->center + r->out, *sum = m->sum + r->out;                                                     \
        if (r->out_step == 0) {                                                                                        \
            struct row_exponentials e =                                                                                \
                row_exponentials_##D(r->x, r->n, (struct row_exponentials){ .center = *most, .sum = *sum });           \
            *most = e.center;                                                                                          \
            *sum = e.sum;                                                                                              \
        } else {                                                                                                       \
            row_exponentials_beside_##D(most, sum, r->x, r->n, reduce_step(r));                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void load_##D(double *to, const void *from, int64_t n)                                                      \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            to[i] = (double)((const T *)from)[i];                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void store_##D(void *to, const double *from, int64_t n)                                                     \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            ((T *)to)[i] = (T)from[i];                                                                                 \
        }                                                                                                              \
    }
FLOAT_TYPES(MOMENT_ROWS, 0)

struct rows_of {
    reduce_row_fn moment, deviation, exp, log;
    void (*load)(double *to, const void *from, int64_t n);
    void (*store)(void *to, const double *from, int64_t n);
};
#define MOMENT_ENTRY(D, T, U, unused)                                                                                  \
    [MESH_##D] = { moment_row_##D, deviation_row_##D, exp_row_##D, log_row_##D, load_##D, store_##D },
static const struct rows_of rows[N_DTYPES] = { FLOAT_TYPES(MOMENT_ENTRY, 0) };

static int moments_init(struct moments *m, const char *name, const struct kernel_call *c)
{
    int64_t n = c->out[0]->n;
    if (rows[c->in[0]->dtype].moment == NULL) {
        return unsupported_dtype(name, c->in[0]->dtype);
    }
    double *all = mem_zalloc((size_t)(3 * n) * sizeof *all + 1);
    if (all == NULL) {
        return err_no_memory((size_t)(3 * n) * sizeof *all, "the accumulators of a reduction");
    }
    *m = (struct moments){ .center = all, .sum = all + n, .square = all + 2 * n };
    return 0;
}

static void moments_fini(struct moments *m)
{
    mem_free(m->center);
}

int k_var(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    struct moments m;
    int r = moments_init(&m, "var", c);
    if (r < 0) {
        return r;
    }
    int64_t n = c->out[0]->n;
    double scale = c->attr->value[1], count = n > 0 ? (double)(x->n / n) : 0;
    reduce_walk_stacked(x, c->attr->dims, rows[x->dtype].moment, &m);
    for (int64_t i = 0; i < n; i++) {
        m.square[i] = scale * (count > 0 ? row_squares_about_mean(m.sum[i], m.square[i], count) : 0);
    }
    rows[x->dtype].store(c->out[0]->data, m.square, n);
    moments_fini(&m);
    return 0;
}

int k_deviation_sums(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    struct moments m;
    int r = moments_init(&m, "var", c);
    if (r < 0) {
        return r;
    }
    rows[x->dtype].load(m.center, c->in[1]->data, c->in[1]->n);
    reduce_walk_stacked(x, c->attr->dims, rows[x->dtype].deviation, &m);
    rows[x->dtype].store(c->out[0]->data, m.square, c->out[0]->n);
    rows[x->dtype].store(c->out[1]->data, m.sum, c->out[1]->n);
    moments_fini(&m);
    return 0;
}

int k_exp_sum(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    struct moments m;
    int r = moments_init(&m, "softmax", c);
    if (r < 0) {
        return r;
    }
    m.takes_infinite = c->attr->mode == 1;
    rows[x->dtype].load(m.center, c->in[1]->data, c->in[1]->n);
    reduce_walk(x, c->attr->dims, NULL, rows[x->dtype].exp, &m);
    rows[x->dtype].store(c->out[0]->data, m.sum, c->out[0]->n);
    moments_fini(&m);
    return 0;
}

int k_logsumexp(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    struct moments m;
    int r = moments_init(&m, "logsumexp", c);
    if (r < 0) {
        return r;
    }
    int64_t n = c->out[0]->n;
    for (int64_t i = 0; i < n; i++) {
        m.center[i] = -(double)INFINITY;
    }
    reduce_walk_stacked(x, c->attr->dims, rows[x->dtype].log, &m);
    for (int64_t i = 0; i < n; i++) {
        m.sum[i] = row_log_sum_exp((struct row_exponentials){ .center = m.center[i], .sum = m.sum[i] });
    }
    rows[x->dtype].store(c->out[0]->data, m.sum, n);
    moments_fini(&m);
    return 0;
}
