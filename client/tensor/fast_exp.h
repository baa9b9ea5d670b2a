/* client/tensor/fast_exp.h - exp and what is made of it, in loops that the compiler can make vector loops.
 *
 *     exp      x = k ln 2 + r, |r| <= ln 2 / 2;  p = exp(r) - 1 = r + r^2 E(r);  exp(x) = 2^k (1 + p)
 *     expm1    2^k p + (2^k - 1)
 *     tanh     m / (m + 2) with m = expm1(2 |x|)
 *     sigmoid  1 / (1 + exp(-x))
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_FAST_EXP_H
#define TENSOR_FAST_EXP_H

#include <math.h>
#include <stdint.h>

#include "base/float_bits.h"
#include "base/vector.h"
#include "tensor/horner.h"

#define F32_TO_WHOLE 0x1.8p23F /* adding it rounds to whole numbers, which then stand in the low bits */
#define F64_TO_WHOLE 0x1.8p52
#define F32_ONE      0x3f800000U /* bits */
#define F64_ONE      0x3ff0000000000000U

struct exp_f32 {
    float p;    /* exp(r) - 1 */
    uint32_t k; /* where the exponent stands */
};

/* exp(r) - 1 */
VECTOR_INLINE float exp_rest_f32(float r)
{
    float e = HORNER_F32(r, 0x1.6d711p-10F, 0x1.1226f2p-7F, 0x1.5554c8p-5F, 0x1.5554b2p-3F, 0.5F);
    return fmaf(e, r * r, r);
}

VECTOR_INLINE struct exp_f32 exp_parts_f32(float x)
{
    float shifted = fmaf(x, 0x1.715476p+0F, F32_TO_WHOLE), k = shifted - F32_TO_WHOLE;
    float r = fmaf(k, 0x1.05c61p-29F, fmaf(k, -0x1.62e43p-1F, x)); /* ln 2 in two parts */
    return (struct exp_f32){ .p = exp_rest_f32(r), .k = float_bits(shifted) << 23 };
}

/* 2^k (1 + p), k so small or so large that the power takes two factors. */
VECTOR_INLINE float exp_joined_f32(struct exp_f32 e, float factor)
{
    float power = float_of_bits(e.k + (2 * F32_ONE - float_bits(factor)));
    return fmaf(power, e.p, power) * factor;
}

VECTOR_INLINE float exp_f32(float x)
{
    float near = x < -104.0F ? -104.0F : x;
    near = near > 89.0F ? 89.0F : near; /* beyond, the result is 0 or infinite; NaN stays */
    return exp_joined_f32(exp_parts_f32(near), x < 0 ? 0x1p-64F : 0x1p64F);
}

/* Where only the sum with 1 matters: never below 2^-126, infinite from 2^127.5 on. */
VECTOR_INLINE float exp_beside_one_f32(float x)
{
    struct exp_f32 e = exp_parts_f32(x < -87.0F ? -87.0F : x);
    float power = float_of_bits(e.k + F32_ONE), y = fmaf(power, e.p, power);
    return x > 88.37F ? INFINITY : y;
}

VECTOR_INLINE float expm1_f32(float x)
{
    float near = x < -20.0F ? -20.0F : x;
    near = near > 89.0F ? 89.0F : near;
    struct exp_f32 e = exp_parts_f32(near);
    float half = float_of_bits(e.k + (F32_ONE - (1U << 23))); /* of 2^k, which there may not be */
    return copysignf(2.0F * fmaf(half, e.p, half - 0.5F), x);
}

VECTOR_INLINE float tanh_f32(float x)
{
    float size = fabsf(x), near = size > 10.0F ? 10.0F : size; /* beyond, it is 1 */
    struct exp_f32 e = exp_parts_f32(2.0F * near);
    float power = float_of_bits(e.k + F32_ONE), m = fmaf(power, e.p, power - 1.0F);
    return copysignf(m / (m + 2.0F), x);
}

VECTOR_INLINE float sigmoid_f32(float x)
{
    return 1.0F / (1.0F + exp_beside_one_f32(-x));
}

struct exp_f64 {
    double p;
    uint64_t k;
};

/* exp(r) - 1 */
VECTOR_INLINE double exp_rest_f64(double r)
{
    double e = HORNER_F64(r, 0x1.af390ba7e6f47p-26, 0x1.2891d4ffbb0f9p-22, 0x1.71de0d85293b8p-19, 0x1.a019b8ca26fcfp-16,
                          0x1.a01a01a7cebcdp-13, 0x1.6c16c1789d1d7p-10, 0x1.11111111109a6p-7, 0x1.5555555553d37p-5,
                          0x1.5555555555556p-3, 0.5);
    return fma(e, r * r, r);
}

VECTOR_INLINE struct exp_f64 exp_parts_f64(double x)
{
    double shifted = fma(x, 0x1.71547652b82fep+0, F64_TO_WHOLE), k = shifted - F64_TO_WHOLE;
    double r = fma(k, -0x1.abc9e3b39803fp-56, fma(k, -0x1.62e42fefa39efp-1, x)); /* ln 2 in two parts */
    return (struct exp_f64){ .p = exp_rest_f64(r), .k = double_bits(shifted) << 52 };
}

/* Of x + low, which is too small to change k. */
VECTOR_INLINE struct exp_f64 exp_parts_of_sum_f64(double x, double low)
{
    double shifted = fma(x, 0x1.71547652b82fep+0, F64_TO_WHOLE), k = shifted - F64_TO_WHOLE;
    double r = fma(k, -0x1.abc9e3b39803fp-56, low) + fma(k, -0x1.62e42fefa39efp-1, x);
    return (struct exp_f64){ .p = exp_rest_f64(r), .k = double_bits(shifted) << 52 };
}

VECTOR_INLINE double exp_joined_f64(struct exp_f64 e, double factor)
{
    double power = double_of_bits(e.k + (2 * F64_ONE - double_bits(factor)));
    return fma(power, e.p, power) * factor;
}

VECTOR_INLINE double exp_f64(double x)
{
    double near = x < -746.0 ? -746.0 : x;
    near = near > 710.0 ? 710.0 : near;
    return exp_joined_f64(exp_parts_f64(near), x < 0 ? 0x1p-512 : 0x1p512);
}

VECTOR_INLINE double exp_beside_one_f64(double x)
{
    struct exp_f64 e = exp_parts_f64(x < -708.0 ? -708.0 : x);
    double power = double_of_bits(e.k + F64_ONE), y = fma(power, e.p, power);
    return x > 709.4 ? (double)INFINITY : y;
}

VECTOR_INLINE double expm1_f64(double x)
{
    double near = x < -40.0 ? -40.0 : x;
    near = near > 710.0 ? 710.0 : near;
    struct exp_f64 e = exp_parts_f64(near);
    double half = double_of_bits(e.k + (F64_ONE - (UINT64_C(1) << 52)));
    return copysign(2.0 * fma(half, e.p, half - 0.5), x);
}

VECTOR_INLINE double tanh_f64(double x)
{
    double size = fabs(x), near = size > 22.0 ? 22.0 : size;
    struct exp_f64 e = exp_parts_f64(2.0 * near);
    double power = double_of_bits(e.k + F64_ONE), m = fma(power, e.p, power - 1.0);
    return copysign(m / (m + 2.0), x);
}

VECTOR_INLINE double sigmoid_f64(double x)
{
    return 1.0 / (1.0 + exp_beside_one_f64(-x));
}

#endif
