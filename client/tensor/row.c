/* client/tensor/row.c - sums, extremes and exponentials of one row of floats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/row.h"

#include "base/util.h"
#include "tensor/fast_math.h"
#include "base/vector.h"

#define LANES   16 /* partial results of a row: vector registers, and shorter chains of roundings */
#define MANY(T) ((int)(256 / sizeof(T))) /* of extremes, whose steps take longer than an addition */
#define BLOCK   512                      /* exponentials at a time, in the L1 cache */

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

#define ROWS(D, T, U, unused)                                                                                          \
    VECTOR_VALUE(double, row_sum_##D, (const T *x, int64_t n), (x, n))                                                 \
    {                                                                                                                  \
        double lane[LANES] = { 0 };                                                                                    \
        EACH_LANE(LANES, n, lane[l] += (double)x[at])                                                                  \
        JOIN(LANES, lane, PLUS)                                                                                        \
        return lane[0];                                                                                                \
    }                                                                                                                  \
    VECTOR_VALUE(double, row_dot_##D, (const T *x, const T *y, int64_t n), (x, y, n))                                  \
    {                                                                                                                  \
        double lane[LANES] = { 0 };                                                                                    \
        EACH_LANE(LANES, n, lane[l] += (double)x[at] * (double)y[at])                                                  \
        JOIN(LANES, lane, PLUS)                                                                                        \
        return lane[0];                                                                                                \
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
        double sum[LANES] = { 0 }, square[LANES] = { 0 };                                                              \
        EACH_LANE(LANES, n, const double v = (double)x[at] - center; sum[l] += v; square[l] += v * v)                  \
        JOIN(LANES, sum, PLUS)                                                                                         \
        JOIN(LANES, square, PLUS)                                                                                      \
        return (struct row_deviations){ sum[0], square[0] };                                                           \
    }                                                                                                                  \
    VECTOR_VALUE(struct row_slopes, row_slopes_##D,                                                                    \
                 (const T *dy, const T *x, const T *w, int64_t n, double mean, double scale),                          \
                 (dy, x, w, n, mean, scale))                                                                           \
    {                                                                                                                  \
        double sum[LANES] = { 0 }, product[LANES] = { 0 };                                                             \
        if (w != NULL) {                                                                                               \
            EACH_LANE(LANES, n, const double g = (double)dy[at] * (double)w[at]; sum[l] += g;                          \
                      product[l] += g * (((double)x[at] - mean) * scale))                                              \
        } else {                                                                                                       \
            EACH_LANE(LANES, n, const double g = (double)dy[at]; sum[l] += g;                                          \
                      product[l] += g * (((double)x[at] - mean) * scale))                                              \
        }                                                                                                              \
        JOIN(LANES, sum, PLUS)                                                                                         \
        JOIN(LANES, product, PLUS)                                                                                     \
        return (struct row_slopes){ sum[0], product[0] };                                                              \
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
    }                                                                                                                  \
    VECTOR_ROW(row_exp_##D, (T *restrict out, const T *x, int64_t n, T center), (out, x, n, center))                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = exp(x[i] - center);                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    double row_exp_sum_##D(const T *x, int64_t n, T center)                                                            \
    {                                                                                                                  \
        T power[BLOCK];                                                                                                \
        double sum = 0;                                                                                                \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            int64_t some = MIN(n - i, BLOCK);                                                                          \
            row_exp_##D(power, x + i, some, center);                                                                   \
            sum += row_sum_##D(power, some);                                                                           \
        }                                                                                                              \
        return sum;                                                                                                    \
    }
FLOAT_TYPES(ROWS, 0)
