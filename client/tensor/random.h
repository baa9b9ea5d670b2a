/* client/tensor/random.h - random numbers by the hundred: what rng.h says of one index, for many, as vector loops.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_RANDOM_H
#define TENSOR_RANDOM_H

#include "base/rng.h"

#define RANDOM_MOST 512 /* at a time */

/* The numbers of n indices, `step` apart from `index` on; n at most RANDOM_MOST. */
struct random_range {
    struct rng_key key;
    uint64_t index, step;
    int64_t n;
};

/* As rng_bits(). */
void random_bits(const struct random_range *r, uint32_t *ret_bits);

/* Normally distributed, mean 0, deviation 1: Box and Muller's transformation of the pair of bits at index / 2. */
void random_normal(const struct random_range *r, double *ret_numbers);

#endif
