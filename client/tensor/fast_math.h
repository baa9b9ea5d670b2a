/* client/tensor/fast_math.h - <tgmath.h> whose exp, tanh and erf of float are loops that the compiler can make vector loops.
 *
 * Without branches and without calls; within 2 units in the last place (tests/unit/tensor/test_fast_math.c), infinities and
 * NaN as in the C library.  The polynomials are Chebyshev fits of our own; double goes to the C library.
 *
 *     exp   x = k ln 2 + r, |r| <= ln 2 / 2;  exp(x) = 2^k (1 + r + r^2 E(r))
 *     tanh  |x| < 0.625: x (1 + x^2 T(x^2));  else 1 - 2 / (exp(2 |x|) + 1)
 *     erf   |x| < 1:     x F(x^2);            else 1 - exp(-x^2) G(1 / (1 + |x| / 2))
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_FAST_MATH_H
#define TENSOR_FAST_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <tgmath.h>

static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float exp_f32(float x)
{
    const float to_whole = 0x1.8p23F; /* adding it rounds to whole numbers, which then stand in the low bits */
    float near = x < -104.0F ? -104.0F : x;
    near = near > 89.0F ? 89.0F : near; /* beyond, the result is 0 or infinite; NaN stays */
    float shifted = near * 0x1.715476p+0F + to_whole, k = shifted - to_whole;
    float r = near - k * 0x1.62ep-1F; /* ln 2 in two parts, the first of few bits: k times it is exact */
    r -= k * 0x1.0bfbe8p-15F;
    float e = 0.0013926926614F;
    e = e * r + 0.00836377387441F;
    e = e * r + 0.0416665501103F;
    e = e * r + 0.166665733819F;
    e = e * r + 0.5F;
    float y = e * (r * r) + r + 1.0F;
    int32_t power = (int32_t)(float_bits(shifted) - float_bits(to_whole)), half = power >> 1;
    float scale_1 = float_of_bits((uint32_t)(half + 127) << 23);
    float scale_2 = float_of_bits(((uint32_t)power - (uint32_t)half + 127) << 23);
    return y * scale_1 * scale_2; /* in two steps, so that the least numbers come out too */
}

static inline float tanh_f32(float x)
{
    float z = x * x, t = -0.00609671416591F;
    t = t * z + 0.0209971789991F;
    t = t * z - 0.0538509095785F;
    t = t * z + 0.13332769737F;
    t = t * z - 0.333333289441F;
    float inner = x * (1.0F + z * t), size = x < 0 ? -x : x;
    float outer = 1.0F - 2.0F / (exp_f32(2.0F * size) + 1.0F);
    outer = x < 0 ? -outer : outer;
    return size < 0.625F ? inner : outer;
}

static inline float erf_f32(float x)
{
    float z = x * x, f = 7.87587506269e-5F;
    f = f * z - 0.000801686428717F;
    f = f * z + 0.00518908742343F;
    f = f * z - 0.0268542120106F;
    f = f * z + 0.112835947152F;
    f = f * z - 0.376126266667F;
    float inner = x * (f * z + 1.12837916585F), size = x < 0 ? -x : x;
    float t = 1.0F / (1.0F + 0.5F * size), g = 0.120389870489F;
    g = g * t - 0.47485849145F;
    g = g * t + 0.568712139612F;
    g = g * t - 0.108054142685F;
    g = g * t + 0.349949301482F;
    g = g * t + 0.259073929639F;
    g = g * t + 0.285008642776F;
    g = g * t - 0.000160542627809F;
    float outer = 1.0F - exp_f32(-z) * g;
    outer = x < 0 ? -outer : outer;
    return size < 1.0F ? inner : outer;
}

/* A name without an argument list is the function of the C library, not the macro. */
#undef exp
#undef tanh
#undef erf
#define exp(x)  _Generic((x), float : exp_f32, default : (exp))(x)
#define tanh(x) _Generic((x), float : tanh_f32, default : (tanh))(x)
#define erf(x)  _Generic((x), float : erf_f32, default : (erf))(x)

#endif
