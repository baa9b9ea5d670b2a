/* client/tensor/row.h - sums, extremes and exponentials of one row of floats, as vector loops.
 *
 * Sums are kept in f64, in a fixed number of lanes that are added at the end, so that they repeat bit for bit on every machine.
 * NaN wins over everything.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_ROW_H
#define TENSOR_ROW_H

#include <stdint.h>

#include "tensor/numbers.h"

struct row_deviations {
    double sum, square; /* of x - center */
};

struct row_slopes {
    double g, gh; /* sums of g = dy w (w may be NULL: 1) and of g (x - mean) scale */
};

#define ROW_FUNCTIONS(D, T, U, unused)                                                                                 \
    double row_sum_##D(const T *x, int64_t n);                                                                         \
    double row_dot_##D(const T *x, const T *y, int64_t n);                                                             \
    double row_size_##D(const T *x, int64_t n); /* sum |x| */                                                          \
    struct row_deviations row_deviations_##D(const T *x, int64_t n, double center);                                    \
    struct row_slopes row_slopes_##D(const T *dy, const T *x, const T *w, int64_t n, double mean, double scale);       \
    T row_max_##D(const T *x, int64_t n); /* of nothing: -inf */                                                       \
    T row_min_##D(const T *x, int64_t n);                                                                              \
    void row_exp_##D(T *out, const T *x, int64_t n, T center); /* exp(x - center) */                                   \
    double row_exp_sum_##D(const T *x, int64_t n, T center);
FLOAT_TYPES(ROW_FUNCTIONS, 0)

#endif
