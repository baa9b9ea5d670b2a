/* client/tensor/fast_trig.h - sine and cosine in loops that the compiler can make vector loops.
 *
 *     x = k pi / 2 + r, |r| <= pi / 4 and a little:  sin r = r + r^3 S(r^2), cos r = 1 - r^2 / 2 + r^4 C(r^2), by k modulo 4
 *
 * pi / 2 in three parts.  For |x| <= TRIG_BOUND the first product leaves a number that r's type holds exactly, and the others
 * round relatively to what is left: also next to a zero r has all its digits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_FAST_TRIG_H
#define TENSOR_FAST_TRIG_H

#include "tensor/fast_exp.h"

#define TRIG_BOUND 0x1p19 /* beyond, and of NaN, what comes out is anything */

VECTOR_INLINE float sin_f32_of_quadrant(float x, uint32_t first)
{
    float shifted = fmaf(x, 0x1.45f306p-1F, F32_TO_WHOLE), k = shifted - F32_TO_WHOLE;
    float r = fmaf(k, -0x1.921fb4p+0F, x);
    r = fmaf(k, -0x1.4442dp-24F, r);
    r = fmaf(k, -0x1.846988p-48F, r);
    float z = r * r;
    float s = HORNER_F32(z, -0x1.98e0f4p-13F, 0x1.11061cp-7F, -0x1.555542p-3F);
    float c = HORNER_F32(z, 0x1.999feap-16F, -0x1.6c0b36p-10F, 0x1.555548p-5F, -0.5F);
    uint32_t quadrant = float_bits(shifted) + first;
    float sine = fmaf(s * z, r, r), cosine = fmaf(c, z, 1.0F), y = (quadrant & 1) != 0 ? cosine : sine;
    return float_of_bits(float_bits(y) ^ (quadrant & 2) << 30);
}

VECTOR_INLINE double sin_f64_of_quadrant(double x, uint64_t first)
{
    double shifted = fma(x, 0x1.45f306dc9c883p-1, F64_TO_WHOLE), k = shifted - F64_TO_WHOLE;
    double r = fma(k, -0x1.921fb54442d18p+0, x);
    r = fma(k, -0x1.1a62633145c06p-54, r);
    r = fma(k, -0x1.c1cd129024e09p-107, r);
    double z = r * r;
    double s = HORNER_F64(z, 0x1.5d932ed6ae685p-33, -0x1.ae5e66f6a7853p-26, 0x1.71de3578db17ap-19,
                          -0x1.a01a019c1342cp-13, 0x1.111111110f88cp-7, -0x1.5555555555549p-3);
    double c = HORNER_F64(z, -0x1.8fbd5de4e9d34p-37, 0x1.1eea0b1168cfap-29, -0x1.27e4f83cc02a8p-22,
                          0x1.a01a019d01285p-16, -0x1.6c16c16c1552cp-10, 0x1.555555555554ep-5, -0.5);
    uint64_t quadrant = double_bits(shifted) + first;
    double sine = fma(s * z, r, r), cosine = fma(c, z, 1.0), y = (quadrant & 1) != 0 ? cosine : sine;
    return double_of_bits(double_bits(y) ^ (quadrant & 2) << 62);
}

VECTOR_INLINE float sin_f32(float x)
{
    float y = sin_f32_of_quadrant(x, 0);
    return x == 0 ? x : y; /* -0 too */
}

VECTOR_INLINE float cos_f32(float x)
{
    return sin_f32_of_quadrant(x, 1);
}

VECTOR_INLINE double sin_f64(double x)
{
    double y = sin_f64_of_quadrant(x, 0);
    return x == 0 ? x : y;
}

VECTOR_INLINE double cos_f64(double x)
{
    return sin_f64_of_quadrant(x, 1);
}

#endif
