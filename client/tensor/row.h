/* client/tensor/row.h - sums, moments and extremes of one row of floats, as vector loops.
 *
 * Sums are kept in f64, in a fixed number of lanes that are added at the end, so that they repeat bit for bit on every
 * machine.  NaN wins over everything.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_ROW_H
#define TENSOR_ROW_H

#include <float.h>
#include <stdint.h>

#include "tensor/numbers.h"

struct row_deviations {
    double sum, square; /* of x - center */
};

/* Moments in one pass over memory.  Of n numbers x: sum of x - center, sum of (x - center)^2, the center being near the
 * mean: that of those that had come when they were an eighth as many, or more.  So the sum of the squares about the
 * mean itself, square - sum^2 / n, is no smaller than an eighth of the squares it is the difference of: 3 of 53 bits at
 * most are lost, wherever the mean is. */
struct row_moments {
    double center, sum, square;
    int64_t n;
};

static inline double row_moments_mean(const struct row_moments *m)
{
    return m->center + m->sum / (double)m->n;
}

/* The sum of (x - mean)^2; infinite where it overflows, NaN where x is infinite. */
static inline double row_squares_about_mean(double sum, double square, double n)
{
    return square <= DBL_MAX ? square - sum * (sum / n) : square + (sum - sum);
}

/* The same numbers about their mean, which is rounded: what that leaves stays in the sum. */
static inline void row_recenter(double *center, double *sum, double *square, double n)
{
    const double before = *center, by = (before + *sum / n) - before;
    *center = before + by;
    *square = *square <= DBL_MAX ? *square - by * (2 * *sum - n * by) : *square + (*sum - *sum);
    *sum -= n * by;
}

/* Products are rounded to the dtype, and so are the sums of four of them: each sum is right to five roundings of the
 * sum of the sizes. */
struct row_slopes {
    double g, gx; /* sums of g = dy w (w may be NULL: 1) and of g (x - mean) */
};

#define ROW_FUNCTIONS(D, T, U, unused)                                                                                 \
    double row_sum_##D(const T *x, int64_t n);                                                                         \
    double row_dot_##D(const T *x, const T *y, int64_t n);                                                             \
    double row_size_##D(const T *x, int64_t n); /* sum |x| */                                                          \
    struct row_deviations row_deviations_##D(const T *x, int64_t n, double center);                                    \
    struct row_moments row_moments_##D(const T *x, int64_t n, struct row_moments before); /* of those and these */     \
    struct row_slopes row_slopes_##D(const T *dy, const T *x, const T *w, int64_t n, double mean);                     \
    T row_max_##D(const T *x, int64_t n); /* of nothing: -inf */                                                       \
    T row_min_##D(const T *x, int64_t n);
FLOAT_TYPES(ROW_FUNCTIONS, 0)

/* Of a number beside the rows: outside a vector loop the functions of fast_math.h are slow. */
double exp_of_one(double x);
double log_of_one(double x);

#endif
