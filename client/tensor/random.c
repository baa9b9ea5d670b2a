/* client/tensor/random.c - random numbers by the hundred.
 *
 * Neighbouring indices share Philox blocks of four words; LANES blocks are made at once.  With the bits u and w of a
 * pair:
 *     radius = sqrt(-2 log((u + 1) / 2^32))      (0, 1]: the logarithm is finite
 *     angle  = w / 2^32 turns                    = q quarter turns and t, |t| <= 1/2, of one: exact, as w is whole
 *     even index: radius cos(angle)              odd index: radius sin(angle)
 * Only additions, multiplications, divisions, roots and fma(): the same bits on every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/random.h"

#include "base/check.h"
#include "tensor/fast_math.h"
#include "base/vector.h"

#define LANES      16
#define BLOCK      4 /* words */
#define MOST_WORDS (RANDOM_MOST + BLOCK + LANES * BLOCK)

/* --- Philox4x32-10, LANES counters side by side ------------------------------------------------------------------- */

/* Of four words in 64 bits each: the rounds are written out, so that the compiler sees one loop over the lanes. */
#define ROUND(i)                                                                                                       \
    do {                                                                                                               \
        const uint64_t p = UINT64_C(0xD2511F53) * a, q = UINT64_C(0xCD9E8D57) * c;                                     \
        a = (q >> 32) ^ b ^ (uint32_t)(k0 + (i)*0x9E3779B9U);                                                          \
        b = q & UINT32_MAX;                                                                                            \
        c = (p >> 32) ^ d ^ (uint32_t)(k1 + (i)*0xBB67AE85U);                                                          \
        d = p & UINT32_MAX;                                                                                            \
    } while (0)

static VECTOR_ROW(philox, (struct rng_key key, uint64_t block, uint32_t *restrict out), (key, block, out))
{
    const uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (int l = 0; l < LANES; l++) {
        const uint64_t counter = block + (uint64_t)l;
        uint64_t a = counter & UINT32_MAX, b = counter >> 32, c = key.call & UINT32_MAX, d = key.call >> 32;
        ROUND(0U);
        ROUND(1U);
        ROUND(2U);
        ROUND(3U);
        ROUND(4U);
        ROUND(5U);
        ROUND(6U);
        ROUND(7U);
        ROUND(8U);
        ROUND(9U);
        out[BLOCK * l] = (uint32_t)a;
        out[BLOCK * l + 1] = (uint32_t)b;
        out[BLOCK * l + 2] = (uint32_t)c;
        out[BLOCK * l + 3] = (uint32_t)d;
    }
}

/* The words at `index` and the n - 1 after it, in words[]; returns where they begin. */
static const uint32_t *neighbours(const struct random_range *r, uint64_t index, int64_t n, uint32_t *words)
{
    uint64_t skip = index % BLOCK, block = index / BLOCK;
    for (int64_t at = 0; at < n + (int64_t)skip; at += LANES * BLOCK, block += LANES) {
        philox(r->key, block, words + at);
    }
    return words + skip;
}

void random_bits(const struct random_range *r, uint32_t *ret_bits)
{
    PRE(r->n <= RANDOM_MOST);
    uint32_t words[MOST_WORDS];
    if (r->step == 1) {
        memcpy(ret_bits, neighbours(r, r->index, r->n, words), (size_t)r->n * sizeof *words);
        return;
    }
    for (int64_t i = 0; i < r->n; i++) {
        ret_bits[i] = rng_bits(r->key, r->index + (uint64_t)i * r->step);
    }
}

/* --- Box and Muller ----------------------------------------------------------------------------------------------- */

/* Signed, so that a vector of them becomes numbers in one step. */
VECTOR_INLINE double number_of(uint32_t w)
{
    return (double)(int32_t)(w ^ 0x80000000U) + 0x1p31;
}

VECTOR_INLINE double radius_of(uint32_t u)
{
    return sqrt(-2.0 * log_normal_f64((number_of(u) + 1.0) * 0x1p-32, 0.0));
}

/* Of t quarter turns, |t| <= 1/2. */
VECTOR_INLINE double sine(double t)
{
    double z = t * t;
    return t * HORNER_F64(z, 5.6339337815378539538e-8, -3.598643352982309702e-6, 0.00016044115074219091052,
                          -0.0046817541323409759917, 0.079692626246043003134, -0.64596409750624431573,
                          1.5707963267948966143);
}

VECTOR_INLINE double cosine(double t)
{
    double z = t * t;
    return HORNER_F64(z, -6.3212568696285884105e-9, 4.7106097267578230119e-7, -0.000025202036770460258445,
                      0.00091926027418315572082, -0.020863480763311209103, 0.2536695079010467091,
                      -1.2337005501361698118, 1.0);
}

static VECTOR_ROW(transform, (const uint32_t *words, int64_t n_pairs, double *restrict out), (words, n_pairs, out))
{
    for (int64_t i = 0; i < n_pairs; i++) {
        uint32_t w = words[2 * i + 1], q = (w + 0x20000000U) >> 30;
        double radius = radius_of(words[2 * i]), t = (double)(int32_t)(w - (q << 30)) * 0x1p-30;
        double s = sine(t), c = cosine(t), x = (q & 1) != 0 ? s : c, y = (q & 1) != 0 ? c : s;
        out[2 * i] = radius * (((q + 1) & 2) != 0 ? -x : x);
        out[2 * i + 1] = radius * ((q & 2) != 0 ? -y : y);
    }
}

void random_normal(const struct random_range *r, double *ret_numbers)
{
    PRE(r->n <= RANDOM_MOST);
    uint32_t words[MOST_WORDS];
    double both[RANDOM_MOST + 2];
    if (r->step == 1) {
        int64_t skip = (int64_t)(r->index % 2), n = r->n + skip;
        transform(neighbours(r, r->index - (uint64_t)skip, n, words), (n + 1) / 2, both);
        memcpy(ret_numbers, both + skip, (size_t)r->n * sizeof *both);
        return;
    }
    for (int64_t i = 0; i < r->n; i++) {
        uint64_t index = r->index + (uint64_t)i * r->step;
        rng_block(r->key, index / BLOCK, words);
        transform(words + index % BLOCK / 2 * 2, 1, both);
        ret_numbers[i] = both[index % 2];
    }
}
