/* proto/base/half.c - f16 and bf16 to and from f32, in integers.
 *
 *            sign  exponent (bias)  fraction
 *     f32      1       8  (127)        23
 *     f16      1       5   (15)        10      subnormal below 2^-14, in steps of 2^-24; largest 65504
 *     bf16     1       8  (127)         7      the upper half of an f32
 *
 * Rounding to nearest even of `bits >> n`: add half a step less one, and one more if the result would be odd; a carry
 * into the exponent is just what is wanted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

#include <string.h>

#define F32_INF         0x7f800000u
#define F16_OVERFLOW    0x477ff000u /* 65520, halfway from 65504 to what would be 65536 */
#define F16_MIN_NORMAL  0x38800000u /* 2^-14 */
#define F16_HALF_OF_MIN 0x33000000u /* 2^-25, which ties to the even 0 */
#define REBIAS          ((127u - 15u) << 23)

static uint32_t bits_of(float f)
{
    uint32_t x;
    memcpy(&x, &f, sizeof x);
    return x;
}

static float float_of(uint32_t x)
{
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}

static uint32_t shift_rounded(uint32_t x, uint32_t n)
{
    return (x + (1u << (n - 1)) - 1 + ((x >> n) & 1)) >> n;
}

float float_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, fraction = h & 0x3ffu;
    if (exponent == 31) {
        return float_of(sign | F32_INF | fraction << 13);
    }
    if (exponent == 0) {
        return float_of(sign | bits_of((float)fraction * 0x1p-24f));
    }
    return float_of(sign | ((exponent << 23) + REBIAS) | fraction << 13);
}

uint16_t float_to_f16(float f)
{
    uint32_t x = bits_of(f), sign = (x >> 16) & 0x8000u, a = x & 0x7fffffffu;
    if (a > F32_INF) {
        return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
    }
    if (a >= F16_OVERFLOW) {
        return (uint16_t)(sign | 0x7c00u);
    }
    if (a >= F16_MIN_NORMAL) {
        return (uint16_t)(sign | shift_rounded(a - REBIAS, 13));
    }
    if (a <= F16_HALF_OF_MIN) {
        return (uint16_t)sign;
    }
    uint32_t significand = (a & 0x7fffffu) | 0x800000u;
    return (uint16_t)(sign | shift_rounded(significand, 126u - (a >> 23)));
}

float float_from_bf16(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

uint16_t float_to_bf16(float f)
{
    uint32_t x = bits_of(f);
    if ((x & 0x7fffffffu) > F32_INF) {
        return (uint16_t)((x >> 16) | 0x40u); /* rounding could carry a NaN into infinity */
    }
    return (uint16_t)shift_rounded(x, 16);
}
