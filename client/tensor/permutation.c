/* client/tensor/permutation.c - rounds in which one half of the bits is changed by a function of the other, in turns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/permutation.h"

#include "base/check.h"

void permutation_init(struct permutation *p, struct rng_key key, uint64_t n)
{
    PRE(n >= 1);
    int bits = 1;
    while (bits < 63 && n > UINT64_C(1) << bits) {
        bits++;
    }
    *p = (struct permutation){ .n = n, .bits = { bits / 2, bits - bits / 2 } };
    for (uint64_t k = 0; k < PERMUTATION_ROUNDS; k++) {
        p->key[k] = (uint64_t)rng_bits(key, 2 * k) << 32 | rng_bits(key, 2 * k + 1);
    }
}

/* Every bit of x moves every bit of the result about half the time (Stafford's mix 13). */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t through(const struct permutation *p, uint64_t x)
{
    uint64_t half[2] = { x & ((UINT64_C(1) << p->bits[0]) - 1), x >> p->bits[0] };
    for (int k = 0; k < PERMUTATION_ROUNDS; k++) {
        int changed = k % 2;
        half[changed] ^= mixed(half[1 - changed] ^ p->key[k]) & ((UINT64_C(1) << p->bits[changed]) - 1);
    }
    return half[0] | half[1] << p->bits[0];
}

uint64_t permutation_at(const struct permutation *p, uint64_t i)
{
    do {
        i = through(p, i);
    } while (i >= p->n); /* ends: following a permutation from below n leads back there */
    return i;
}
