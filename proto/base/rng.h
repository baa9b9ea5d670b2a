/* proto/base/rng.h - counter-based random numbers: the value of element i of call c under seed s is a pure function.
 *
 * Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), key = seed, counter = (index / 4, call):
 * every layout, mesh and world size draws the same bits for the same global element.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng_key {
    uint64_t seed;
    uint64_t call;
};

void rng_block(struct rng_key key, uint64_t block, uint32_t ret_words[4]); /* bits at 4 * block + 0..3, at once */
uint32_t rng_bits(struct rng_key key, uint64_t index);
double rng_uniform(struct rng_key key, uint64_t index); /* [0, 1), 32 bits */
uint64_t rng_below(struct rng_key key, uint64_t index,
                   uint64_t n); /* [0, n), n >= 1, bias under n / 2^32 (n / 2^64 for n over 2^32) */

/* Bytes no one can guess (nonces, secrets), from the system. */
int rng_secret(void *ret_bytes, size_t len);

#endif
