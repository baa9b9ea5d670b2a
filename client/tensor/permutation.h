/* client/tensor/permutation.h - a random order of n numbers, of which every place is computed by itself.
 *
 * A Feistel network of 8 rounds maps the numbers of just enough bits onto themselves; a result that is not below n goes
 * through it again until one is, which leaves a permutation of the n (Black & Rogaway 2002).  Nobody holds the order:
 * any rank computes its places, and all agree.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_PERMUTATION_H
#define TENSOR_PERMUTATION_H

#include "base/rng.h"

enum { PERMUTATION_ROUNDS = 8 };

struct permutation {
    uint64_t n;
    int bits[2]; /* of the two halves */
    uint64_t key[PERMUTATION_ROUNDS];
};

/* Of n numbers, n at least 1. */
void permutation_init(struct permutation *p, struct rng_key key, uint64_t n);

/* The number at place i; i below n. */
uint64_t permutation_at(const struct permutation *p, uint64_t i);

#endif
