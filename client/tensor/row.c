/* client/tensor/row.c - sums, moments and extremes of one row of floats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/row.h"

#include "base/util.h"
#include "tensor/fast_math.h"
#include "tensor/lanes.h"
#include "base/vector.h"

#define CHAINS  4  /* sums of lanes, so that an addition need not wait for the one before */
#define FIRST   64 /* elements whose mean is the first center of moments, */
#define GROWTH  8  /* and how many times as many have come before there is a better one */
#define LANES   16 /* partial results of a row: vector registers, and shorter chains of roundings */
#define MANY(T) ((int)(256 / sizeof(T))) /* of extremes, whose steps take longer than an addition */

/* What is left of LANES lanes; half of them joins the other half until there is one. */
#define JOIN(N, lane, step)                                                                                            \
    for (int half = (N) / 2; half > 0; half /= 2) {                                                                    \
        for (int l = 0; l < half; l++) {                                                                               \
            lane[l] = step(lane[l], lane[l + half]);                                                                   \
        }                                                                                                              \
    }

/* lane[l] takes every Nth element, from l on. */
#define EACH_LANE(N, n, statement)                                                                                     \
    int64_t i = 0;                                                                                                     \
    for (; i + (N) <= n; i += (N)) {                                                                                   \
        for (int l = 0; l < (N); l++) {                                                                                \
            const int64_t at = i + l;                                                                                  \
            statement;                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    for (int l = 0; i + l < n; l++) {                                                                                  \
        const int64_t at = i + l;                                                                                      \
        statement;                                                                                                     \
    }

#define PLUS(a, b)  ((a) + (b))
#define MOST(a, b)  ((b) <= (a) || (a) != (a) ? (a) : (b))
#define LEAST(a, b) ((b) >= (a) || (a) != (a) ? (a) : (b))

/* total[j] for j below the count: the sums of `lanes_statement` over eight elements from `at` on into s[j * CHAINS +
 * k], and of `rest_statement` over the last ones into rest[j]. */
#define TOTALS(count, n, lanes_statement, rest_statement)                                                              \
    lanes s[(count)*CHAINS] = { { 0 } };                                                                               \
    double rest[count] = { 0 }, total[count];                                                                          \
    int64_t i = 0;                                                                                                     \
    for (; i + CHAINS * N_LANES <= n; i += CHAINS * N_LANES) {                                                         \
        for (int k = 0; k < CHAINS; k++) {                                                                             \
            const int64_t at = i + k * N_LANES;                                                                        \
            lanes_statement;                                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    for (; i + N_LANES <= n; i += N_LANES) {                                                                           \
        const int64_t at = i, k = 0;                                                                                   \
        lanes_statement;                                                                                               \
    }                                                                                                                  \
    for (; i < n; i++) {                                                                                               \
        const int64_t at = i;                                                                                          \
        rest_statement;                                                                                                \
    }                                                                                                                  \
    for (int j = 0; j < (count); j++) {                                                                                \
        const lanes all = (s[j * CHAINS] + s[j * CHAINS + 1]) + (s[j * CHAINS + 2] + s[j * CHAINS + 3]);               \
        total[j] = lanes_total(&all) + rest[j];                                                                        \
    }

#define LOADED(D, name, x)                                                                                             \
    lanes name;                                                                                                        \
    lanes_load_##D(&name, (x) + at)

#define ROWS(D, T, U, unused)                                                                                          \
    VECTOR_VALUE(double, row_sum_##D, (const T *x, int64_t n), (x, n))                                                 \
    {                                                                                                                  \
        TOTALS(1, n, LOADED(D, v, x); s[k] += v, rest[0] += (double)x[at])                                             \
        return total[0];                                                                                               \
    }                                                                                                                  \
    VECTOR_VALUE(double, row_dot_##D, (const T *x, const T *y, int64_t n), (x, y, n))                                  \
    {                                                                                                                  \
        TOTALS(1, n, LOADED(D, v, x); LOADED(D, w, y); s[k] += v * w, rest[0] += (double)x[at] * (double)y[at])        \
        return total[0];                                                                                               \
    }                                                                                                                  \
    VECTOR_VALUE(double, row_size_##D, (const T *x, int64_t n), (x, n))                                                \
    {                                                                                                                  \
        double lane[LANES] = { 0 };                                                                                    \
        EACH_LANE(LANES, n, lane[l] += fabs((double)x[at]))                                                            \
        JOIN(LANES, lane, PLUS)                                                                                        \
        return lane[0];                                                                                                \
    }                                                                                                                  \
    VECTOR_VALUE(struct row_deviations, row_deviations_##D, (const T *x, int64_t n, double center), (x, n, center))    \
    {                                                                                                                  \
        TOTALS(2, n, LOADED(D, v, x); v -= center; s[k] += v;                                                          \
               s[CHAINS + k] += v * v, const double v = (double)x[at] - center; rest[0] += v; rest[1] += v * v)        \
        return (struct row_deviations){ total[0], total[1] };                                                          \
    }                                                                                                                  \
    VECTOR_VALUE(struct row_slopes, row_slopes_##D, (const T *dy, const T *x, const T *w, int64_t n, double mean),     \
                 (dy, x, w, n, mean))                                                                                  \
    {                                                                                                                  \
        const T near = (T)mean;                                                                                        \
        lanes g_sum[2] = { { 0 } }, gx_sum[2] = { { 0 } };                                                             \
        double g_rest = 0, gx_rest = 0;                                                                                \
        int64_t i = 0;                                                                                                 \
        for (; i + CHAINS * WIDE(T) <= n; i += CHAINS * WIDE(T)) {                                                     \
            wide_##D g[CHAINS], v[CHAINS], u;                                                                          \
            for (int k = 0; k < CHAINS; k++) {                                                                         \
                memcpy(&g[k], dy + i + k * WIDE(T), sizeof u);                                                         \
                memcpy(&v[k], x + i + k * WIDE(T), sizeof u);                                                          \
                if (w != NULL) {                                                                                       \
                    memcpy(&u, w + i + k * WIDE(T), sizeof u);                                                         \
                    g[k] *= u;                                                                                         \
                }                                                                                                      \
                v[k] = (v[k] - near) * g[k];                                                                           \
            }                                                                                                          \
            g[0] = (g[0] + g[1]) + (g[2] + g[3]);                                                                      \
            v[0] = (v[0] + v[1]) + (v[2] + v[3]);                                                                      \
            lanes_add_##D(g_sum, &g[0]);                                                                               \
            lanes_add_##D(gx_sum, &v[0]);                                                                              \
        }                                                                                                              \
        for (; i < n; i++) {                                                                                           \
            const T g = w != NULL ? dy[i] * w[i] : dy[i];                                                              \
            g_rest += (double)g;                                                                                       \
            gx_rest += (double)((x[i] - near) * g);                                                                    \
        }                                                                                                              \
        g_sum[0] += g_sum[1];                                                                                          \
        gx_sum[0] += gx_sum[1];                                                                                        \
        const double g = lanes_total(&g_sum[0]) + g_rest;                                                              \
        return (struct row_slopes){ g, lanes_total(&gx_sum[0]) + gx_rest - (mean - (double)near) * g };                \
    }                                                                                                                  \
    VECTOR_VALUE(T, row_max_##D, (const T *x, int64_t n), (x, n))                                                      \
    {                                                                                                                  \
        T lane[MANY(T)];                                                                                               \
        for (int l = 0; l < MANY(T); l++) {                                                                            \
            lane[l] = -(T)INFINITY;                                                                                    \
        }                                                                                                              \
        EACH_LANE(MANY(T), n, lane[l] = MOST(lane[l], x[at]))                                                          \
        JOIN(MANY(T), lane, MOST)                                                                                      \
        return lane[0];                                                                                                \
    }                                                                                                                  \
    VECTOR_VALUE(T, row_min_##D, (const T *x, int64_t n), (x, n))                                                      \
    {                                                                                                                  \
        T lane[MANY(T)];                                                                                               \
        for (int l = 0; l < MANY(T); l++) {                                                                            \
            lane[l] = (T)INFINITY;                                                                                     \
        }                                                                                                              \
        EACH_LANE(MANY(T), n, lane[l] = LEAST(lane[l], x[at]))                                                         \
        JOIN(MANY(T), lane, LEAST)                                                                                     \
        return lane[0];                                                                                                \
    }
FLOAT_TYPES(ROWS, 0)

#define MOMENTS(D, T, U, unused)                                                                                       \
    struct row_moments row_moments_##D(const T *x, int64_t n, struct row_moments m) {                                  \
        for (int64_t i = 0, some; i < n; i += some) {                                                                  \
            some = MIN(n - i, MAX(m.n * (GROWTH - 1), FIRST));                                                         \
            if (m.n == 0) {                                                                                            \
                m.center = row_sum_##D(x, some) / (double)some;                                                        \
            }                                                                                                          \
            struct row_deviations d = row_deviations_##D(x + i, some, m.center);                                       \
            m.n += some;                                                                                               \
            m.sum += d.sum;                                                                                            \
            m.square += d.square;                                                                                      \
            row_recenter(&m.center, &m.sum, &m.square, (double)m.n);                                                   \
        }                                                                                                              \
        return m;                                                                                                      \
    }
FLOAT_TYPES(MOMENTS, 0)

VECTOR_VALUE(double, exp_of_one, (double x), (x))
{
    return exp(x);
}

VECTOR_VALUE(double, log_of_one, (double x), (x))
{
    return log(x);
}
