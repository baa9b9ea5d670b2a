/* client/tensor/row_exp.h - sums of exponentials of one row of floats, and the row divided by them.
 *
 * A row is read from memory once, block by block.  The sum is of exp(x - c), the center c being the largest element
 * that has come: where a block has a larger one, that is the center and what has been summed is scaled.  A center a
 * little below the largest would not do: x - c is rounded to the dtype, which harms least where exp(x - c) counts
 * least, and not at all where x = c.  Exponentials and the sums of four of them are rounded to the dtype too, all else
 * is f64: a sum of numbers above 0 is right to three roundings.
 *
 * An infinite c is not subtracted: exp(-inf) counts 0.  NaN wins over everything.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_ROW_EXP_H
#define TENSOR_ROW_EXP_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "tensor/numbers.h"

struct row_exponentials {
    double center, sum; /* c; sum exp(x - c), which is 0 while c is infinite */
};

/* Of no elements. */
static inline struct row_exponentials row_exponentials_of_none(void)
{
    return (struct row_exponentials){ .center = -(double)INFINITY, .sum = 0 };
}

double row_log_sum_exp(struct row_exponentials e); /* log sum exp(x) */

/* out = factor exp(x) / sum exp(x) + offset */
struct row_softmax {
    double factor, offset;
    bool is_large; /* out is written past the caches: see past_caches.h */
};

#define ROW_EXP_FUNCTIONS(D, T, U, unused)                                                                             \
    struct row_exponentials row_exponentials_##D(const T *x, int64_t n, struct row_exponentials before);               \
    struct row_exponentials row_softmax_##D(T *out, const T *x, int64_t n, const struct row_softmax *how);             \
    void row_exp_##D(T *out, const T *x, int64_t n, T center); /* exp(x - center), any center */                       \
    double row_exp_sum_##D(const T *x, int64_t n, T center);
FLOAT_TYPES(ROW_EXP_FUNCTIONS, 0)

/* The same for n rows side by side, one element further each, or (step, the way to the next element, is not 0)
 * REDUCE_STACK elements further: the center of each is its largest. */
#define BESIDE_FUNCTIONS(D, T, U, unused)                                                                              \
    void row_exponentials_beside_##D(double *center, double *sum, const T *x, int64_t n, int64_t step);
FLOAT_TYPES(BESIDE_FUNCTIONS, 0)

#endif
