/* client/tensor/fast_log.h - logarithms in loops that the compiler can make vector loops.
 *
 *     x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2)
 *     log    f32: k ln 2 + f - f^2 / 2 + f^3 L(f)
 *            f64: k ln 2 + f - s (f - s^2 L(s^2)), s = f / (2 + f)
 *     log1p  1 + x = u + c exactly, u rounded: log(u) with f + c / 2^k for f
 *     softplus  max(x, 0) + log1p(e), e = exp(-|x|); log1p(e) = 2 artanh(s) = 2 s + 2 s^3 A(s^2), s = e / (2 + e)
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_FAST_LOG_H
#define TENSOR_FAST_LOG_H

#include <float.h>

#include "tensor/fast_exp.h"

#define F32_SQRT_HALF 0x3f3504f3U /* bits */
#define F64_SQRT_HALF 0x3fe6a09e667f3bcdU

VECTOR_INLINE float log_sum_f32(float k, float f)
{
    float l = HORNER_F32(f, -0x1.38ba38p-4F, 0x1.055ca2p-3F, -0x1.0d84ecp-3F, 0x1.22d9e8p-3F, -0x1.547248p-3F,
                         0x1.99a00ap-3F, -0x1.000226p-2F, 0x1.555554p-2F, -0.5F);
    return fmaf(k, 0x1.62e43p-1F, fmaf(f * f, l, f));
}

/* y, but what log has of an argument that is no number above 0. */
VECTOR_INLINE float log_ends_f32(float x, float y)
{
    y = x < INFINITY ? y : x;
    return x > 0 ? y : x == 0 ? -INFINITY : NAN;
}

/* log(x) - lost ln 2 of a number that is normal, and above 0. */
VECTOR_INLINE float log_normal_f32(float x, float lost)
{
    uint32_t bits = float_bits(x), k = (bits - F32_SQRT_HALF) & 0xff800000U;
    return log_sum_f32((float)((int32_t)k >> 23) - lost, float_of_bits(bits - k) - 1.0F);
}

VECTOR_INLINE float log_f32(float x)
{
    return log_ends_f32(x, log_normal_f32(x < FLT_MIN ? x * 0x1p25F : x, x < FLT_MIN ? 25.0F : 0.0F));
}

VECTOR_INLINE float log1p_f32(float x)
{
    float u = 1.0F + x, c = x - (u - 1.0F);
    uint32_t bits = float_bits(u), k = (bits - F32_SQRT_HALF) & 0xff800000U;
    float f = fmaf(c, float_of_bits(F32_ONE - k), float_of_bits(bits - k) - 1.0F); /* c is 0 where 2^-k is no number */
    float y = log_sum_f32((float)((int32_t)k >> 23), f);
    return copysignf(log_ends_f32(u, y), x);
}

VECTOR_INLINE float softplus_f32(float x)
{
    float size = fabsf(x), e = exp_joined_f32(exp_parts_f32(size > 104.0F ? -104.0F : -size), 0x1p-64F);
    float s = e / (2.0F + e), z = s * s, twice = s + s;
    float a = HORNER_F32(z, 0x1.1ef86ep-3F, 0x1.1eb616p-3F, 0x1.99d27ap-3F, 0x1.5555p-2F);
    return fmaf(twice * z, a, twice) + (x < 0 ? 0.0F : x);
}

VECTOR_INLINE double log_sum_f64(double k, double f)
{
    double s = f / (2.0 + f), z = s * s;
    double l = HORNER_F64(z, 0x1.2f0581df70237p-3, 0x1.39a1b7c0d6701p-3, 0x1.74663f04ff4f0p-3, 0x1.c71c5208d9a05p-3,
                          0x1.24924941f1b12p-2, 0x1.999999997fdb2p-2, 0x1.5555555555592p-1);
    double low = fma(-s, fma(-z, l, f), k * 0x1.abc9e3b39803fp-56); /* ln 2 in two parts */
    return fma(k, 0x1.62e42fefa39efp-1, f + low);
}

/* The signed number at the exponent's place, of 12 bits: as the low bits of 2^52 + 2^11 + it. */
VECTOR_INLINE double whole_f64(uint64_t k)
{
    return double_of_bits((k >> 52) ^ 0x4330000000000800U) - (0x1p52 + 0x1p11);
}

VECTOR_INLINE double log_ends_f64(double x, double y)
{
    y = x < (double)INFINITY ? y : x;
    return x > 0 ? y : x == 0 ? -(double)INFINITY : (double)NAN;
}

/* log(x) - lost ln 2 of a number that is normal, and above 0. */
VECTOR_INLINE double log_normal_f64(double x, double lost)
{
    uint64_t bits = double_bits(x), k = (bits - F64_SQRT_HALF) & 0xfff0000000000000U;
    return log_sum_f64(whole_f64(k) - lost, double_of_bits(bits - k) - 1.0);
}

VECTOR_INLINE double log_f64(double x)
{
    return log_ends_f64(x, log_normal_f64(x < DBL_MIN ? x * 0x1p54 : x, x < DBL_MIN ? 54.0 : 0.0));
}

VECTOR_INLINE double log1p_f64(double x)
{
    double u = 1.0 + x, c = x - (u - 1.0);
    uint64_t bits = double_bits(u), k = (bits - F64_SQRT_HALF) & 0xfff0000000000000U;
    double f = fma(c, double_of_bits(F64_ONE - k), double_of_bits(bits - k) - 1.0);
    double y = log_sum_f64(whole_f64(k), f);
    return copysign(log_ends_f64(u, y), x);
}

VECTOR_INLINE double softplus_f64(double x)
{
    double size = fabs(x), e = exp_joined_f64(exp_parts_f64(size > 746.0 ? -746.0 : -size), 0x1p-512);
    double s = e / (2.0 + e), z = s * s, twice = s + s;
    double a = HORNER_F64(z, 0x1.5ba7f88e9744dp-4, 0x1.56a1f6f4c747ep-5, 0x1.ef9cdd69f68a8p-5, 0x1.106bdcd352db5p-4,
                          0x1.3b1d83514f415p-4, 0x1.745cb8a6661d7p-4, 0x1.c71c73f58f87bp-4, 0x1.24924920ebc2fp-3,
                          0x1.999999999f821p-3, 0x1.555555555553cp-2);
    return fma(twice * z, a, twice) + (x < 0 ? 0.0 : x);
}

#endif
