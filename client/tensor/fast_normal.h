/* client/tensor/fast_normal.h - the normal distribution and what is made of it, in loops that the compiler can make vector loops: see
 * fast_math.h.
 *
 *     Phi(-|x|)   exp(-x^2 / 2) G((1 - c |x|) / (1 + c |x|))
 *     gelu        x Phi(x) = max(x, 0) - |x| Phi(-|x|)
 *     gelu_slope  Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi); of -|x| the tail T, of |x| 1 - T
 *     erf         |x| < 1: x F(x^2);  else 1 - exp(-x^2) H(1 / (1 + |x| / 2))
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_FAST_NORMAL_H
#define TENSOR_FAST_NORMAL_H

#include "tensor/fast_exp.h"

#define SQRT_1_OVER_2PI 0.39894228040143267794

struct normal_f32 {
    float density, ratio; /* exp(-x^2 / 2); Phi(-x) beside it */
};

struct normal_f64 {
    double density, ratio;
};

/* Of a size at most 14.5F. */
VECTOR_INLINE struct normal_f32 normal_tail_f32(float size)
{
    float half = 0.5F * size, square = -half * size, low = fmaf(-half, size, -square); /* exactly -size^2 / 2 */
    float u = fmaf(-0.25F, size, 1.0F) / fmaf(0.25F, size, 1.0F), g = 0x1.11d2b2p-14F;
    g = fmaf(g, u, -0x1.5ff156p-13F);
    g = fmaf(g, u, -0x1.58dc02p-11F);
    g = fmaf(g, u, 0x1.077a72p-11F);
    g = fmaf(g, u, 0x1.1675bap-7F);
    g = fmaf(g, u, 0x1.f9b34cp-6F);
    g = fmaf(g, u, 0x1.25b5f8p-4F);
    g = fmaf(g, u, 0x1.fd750cp-4F);
    g = fmaf(g, u, 0x1.5cf97ep-3F);
    g = fmaf(g, u, 0x1.82b4bcp-4F);
    return (struct normal_f32){ .density = exp_joined_f32(exp_parts_of_sum_f32(square, low), 0x1p-64F), .ratio = g };
}

VECTOR_INLINE float gelu_f32(float x)
{
    float size = fabsf(x), near = size > 14.5F ? 14.5F : size; /* beyond, Phi(-near) is 0; NaN stays */
    struct normal_f32 n = normal_tail_f32(near);
    return fmaf(-near, n.density * n.ratio, x < 0 ? 0.0F : x);
}

VECTOR_INLINE float gelu_slope_f32(float x)
{
    float size = fabsf(x), near = size > 14.5F ? 14.5F : size;
    struct normal_f32 n = normal_tail_f32(near);
    float tail = n.density * fmaf(near, (float)-SQRT_1_OVER_2PI, n.ratio);
    return x < 0 ? tail : 1.0F - tail;
}

VECTOR_INLINE float erf_f32(float x)
{
    float size = fabsf(x), z = x * x, f, g;
    f = 7.87587506269e-5F;
    f = fmaf(f, z, -0.000801686428717F);
    f = fmaf(f, z, 0.00518908742343F);
    f = fmaf(f, z, -0.0268542120106F);
    f = fmaf(f, z, 0.112835947152F);
    f = fmaf(f, z, -0.376126266667F);
    f = fmaf(f, z, 1.12837916585F);
    float t = 1.0F / fmaf(0.5F, size, 1.0F);
    g = 0.120389870489F;
    g = fmaf(g, t, -0.47485849145F);
    g = fmaf(g, t, 0.568712139612F);
    g = fmaf(g, t, -0.108054142685F);
    g = fmaf(g, t, 0.349949301482F);
    g = fmaf(g, t, 0.259073929639F);
    g = fmaf(g, t, 0.285008642776F);
    g = fmaf(g, t, -0.000160542627809F);
    float outer = fmaf(-exp_beside_one_f32(-z), g, 1.0F);
    return copysignf(size < 1.0F ? size * f : outer, x);
}

/* Of a size at most 39.0. */
VECTOR_INLINE struct normal_f64 normal_tail_f64(double size)
{
    double half = 0.5 * size, square = -half * size, low = fma(-half, size, -square); /* exactly -size^2 / 2 */
    double u = fma(-0.2, size, 1.0) / fma(0.2, size, 1.0), g = -0x1.04b63c82ed1a3p-25;
    g = fma(g, u, 0x1.c361d898aedc3p-23);
    g = fma(g, u, -0x1.922821649deb3p-22);
    g = fma(g, u, -0x1.488bc87848fbdp-21);
    g = fma(g, u, 0x1.54ba216396b09p-20);
    g = fma(g, u, 0x1.bce52cf9c16e8p-18);
    g = fma(g, u, -0x1.00742b9b463abp-20);
    g = fma(g, u, -0x1.fae61b4c6b64p-15);
    g = fma(g, u, -0x1.1999be54fbe7cp-13);
    g = fma(g, u, 0x1.cc6e7408cff1ap-13);
    g = fma(g, u, 0x1.37ccc5c51f712p-9);
    g = fma(g, u, 0x1.26a11536add8p-7);
    g = fma(g, u, 0x1.7f9d043730416p-6);
    g = fma(g, u, 0x1.8807f2a00072dp-5);
    g = fma(g, u, 0x1.4b4ce479f86d7p-4);
    g = fma(g, u, 0x1.db6af8722cda7p-4);
    g = fma(g, u, 0x1.25cd1321c8cb4p-3);
    g = fma(g, u, 0x1.3b0fbcb4c77bfp-4);
    return (struct normal_f64){ .density = exp_joined_f64(exp_parts_of_sum_f64(square, low), 0x1p-512), .ratio = g };
}

VECTOR_INLINE double gelu_f64(double x)
{
    double size = fabs(x), near = size > 39.0 ? 39.0 : size; /* beyond, Phi(-near) is 0; NaN stays */
    struct normal_f64 n = normal_tail_f64(near);
    return fma(-near, n.density * n.ratio, x < 0 ? 0.0 : x);
}

VECTOR_INLINE double gelu_slope_f64(double x)
{
    double size = fabs(x), near = size > 39.0 ? 39.0 : size;
    struct normal_f64 n = normal_tail_f64(near);
    double tail = n.density * fma(near, (double)-SQRT_1_OVER_2PI, n.ratio);
    return x < 0 ? tail : 1.0 - tail;
}

VECTOR_INLINE double erf_f64(double x)
{
    double size = fabs(x), z = x * x, f, g;
    f = -7.7958988270021422416e-10;
    f = fma(f, z, 1.3720064546777685604e-8);
    f = fma(f, z, -1.6208483801871705902e-7);
    f = fma(f, z, 1.644742470331736241e-6);
    f = fma(f, z, -0.000014924736907419660338);
    f = fma(f, z, 0.00012055294904839707917);
    f = fma(f, z, -0.00085483259753896920806);
    f = fma(f, z, 0.0052239776071164227321);
    f = fma(f, z, -0.02686617064323777036);
    f = fma(f, z, 0.11283791670945006266);
    f = fma(f, z, -0.37612638903183540438);
    f = fma(f, z, 1.1283791670955125665);
    double t = 1.0 / fma(0.5, size, 1.0);
    g = 0.064177099569977565351;
    g = fma(g, t, -0.46415031005127023163);
    g = fma(g, t, 1.4993273861992587855);
    g = fma(g, t, -2.8084696200812490296);
    g = fma(g, t, 3.3141789939074117687);
    g = fma(g, t, -2.5485795151627721857);
    g = fma(g, t, 1.3907243547276612598);
    g = fma(g, t, -0.67205878221902889897);
    g = fma(g, t, 0.19483233899524952566);
    g = fma(g, t, 0.03477897668837143768);
    g = fma(g, t, 0.18531641297586197468);
    g = fma(g, t, 0.24562975816641905566);
    g = fma(g, t, 0.28220514173766230087);
    g = fma(g, t, 0.28208857293202290197);
    g = fma(g, t, 1.624228474007759057e-7);
    double outer = fma(-exp_beside_one_f64(-z), g, 1.0);
    return copysign(size < 1.0 ? size * f : outer, x);
}

#endif
