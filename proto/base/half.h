/* proto/base/half.h - f16 and bf16 to and from f32, in integers and without branches, so that loops of them become vector loops.
 *
 *            sign  exponent (bias)  fraction
 *     f32      1       8  (127)        23
 *     f16      1       5   (15)        10      subnormal below 2^-14, in steps of 2^-24; largest 65504
 *     bf16     1       8  (127)         7      the upper half of an f32
 *
 * Rounding to nearest even of `bits >> n`: add half a step less one, and one more if the result would be odd; a carry
 * into the exponent is just what is wanted.  Where the result is subnormal the processor rounds: added to a number whose last
 * bit is worth 2^-24, what remains of x stands in the low bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include "base/float_bits.h"

#define F32_INF        0x7f800000u
#define F16_OVERFLOW   0x477ff000u /* 65520, halfway from 65504 to what would be 65536 */
#define F16_MIN_NORMAL 0x38800000u /* 2^-14 */
#define F16_STEPS      0x3f000000u /* 0.5, whose last bit is worth 2^-24 */
#define F16_REBIAS     ((127u - 15u) << 23)

static inline uint32_t half_shift_rounded(uint32_t x, uint32_t n)
{
    return (x + (1u << (n - 1)) - 1 + ((x >> n) & 1)) >> n;
}

static inline float half_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t normal = rest + F16_REBIAS, infinite = rest | F32_INF;
    /* As the fraction of 2^-14, less 2^-14. */
    uint32_t small = float_bits(float_of_bits(rest + F16_MIN_NORMAL) - float_of_bits(F16_MIN_NORMAL));
    uint32_t x = rest >= (31u << 23) ? infinite : normal;
    return float_of_bits(sign | (rest < (1u << 23) ? small : x));
}

static inline uint16_t half_to_f16(float f)
{
    uint32_t x = float_bits(f), sign = (x >> 16) & 0x8000u, a = x & 0x7fffffffu;
    uint32_t normal = half_shift_rounded(a - F16_REBIAS, 13), nan = 0x7e00u | ((a >> 13) & 0x3ffu);
    uint32_t small = float_bits(float_of_bits(a) + float_of_bits(F16_STEPS)) - F16_STEPS;
    uint32_t y = a < F16_MIN_NORMAL ? small : normal;
    y = a >= F16_OVERFLOW ? 0x7c00u : y;
    return (uint16_t)(sign | (a > F32_INF ? nan : y));
}

static inline float half_from_bf16(uint16_t h)
{
    return float_of_bits((uint32_t)h << 16);
}

static inline uint16_t half_to_bf16(float f)
{
    uint32_t x = float_bits(f), nan = (x >> 16) | 0x40u; /* rounding could carry a NaN into infinity */
    return (uint16_t)((x & 0x7fffffffu) > F32_INF ? nan : half_shift_rounded(x, 16));
}

#endif
