/* client/tensor/fast_normal.h - what is made of the normal distribution, in loops that the compiler can make vector
 * loops.
 *
 *     gelu        x Phi(x)                                           Phi, the distribution function
 *     gelu_slope  Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi)
 *       f32       either by a fit: Phi(x) or the slope = 1 / 2 + x P(x^2) / Q(x^2), right beside 1, as Phi from erf would be
 *       f64       Phi(-|x|) = exp(-x^2 / 2) G((1 - c |x|) / (1 + c |x|)), all digits of the tail;
 *                 gelu = max(x, 0) - |x| Phi(-|x|);  the slope of -|x| the tail T, of |x| 1 - T
 *     erf         |x| < 1: x F(x^2);  else 1 - exp(-x^2) H(1 / (1 + |x| / 2))
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_FAST_NORMAL_H
#define TENSOR_FAST_NORMAL_H

#include "tensor/fast_exp.h"

#define SQRT_1_OVER_2PI 0.39894228040143267794

struct normal_f64 {
    double density, ratio;
};

VECTOR_INLINE float gelu_f32(float x)
{
    float z = x * x;
    float p =
        HORNER_F32(z, 0x1.7c72a6p-26F, 0x1.aa9808p-18F, 0x1.6c9e88p-13F, 0x1.347ff2p-8F, 0x1.199e64p-5F, 0x1.98845p-2F);
    float q = HORNER_F32(z, 0x1.3cd008p-20F, 0x1.3b057ap-14F, 0x1.f57e8p-10F, 0x1.da2a62p-6F, 0x1.02e7a6p-2F, 1.0F);
    float y = x * fmaf(x, p / q, 0.5F);
    y = x > 5.6F ? x : y;
    return x < -5.6F ? 0.0F : y;
}

VECTOR_INLINE float gelu_slope_f32(float x)
{
    float z = x * x;
    float p = HORNER_F32(z, -0x1.fc6ebep-36F, 0x1.bf422p-27F, 0x1.2d91b6p-20F, 0x1.0ca3fap-15F, 0x1.2ba0ecp-12F,
                         0x1.bc96e2p-7F, -0x1.2713e6p-6F, 0x1.988452p-1F);
    float q = HORNER_F32(z, 0x1.86f4e2p-22F, 0x1.6afccap-17F, 0x1.0f4de8p-12F, 0x1.10148ep-8F, 0x1.757f6p-5F,
                         0x1.3e38p-2F, 1.0F);
    float y = fmaf(x, p / q, 0.5F);
    y = x > 6.0F ? 1.0F : y;
    return x < -6.0F ? 0.0F : y;
}

VECTOR_INLINE float erf_f32(float x)
{
    float size = fabsf(x), z = x * x;
    float f = HORNER_F32(z, 7.87587506269e-5F, -0.000801686428717F, 0.00518908742343F, -0.0268542120106F,
                         0.112835947152F, -0.376126266667F, 1.12837916585F);
    float t = 1.0F / fmaf(0.5F, size, 1.0F);
    float g = HORNER_F32(t, 0.120389870489F, -0.47485849145F, 0.568712139612F, -0.108054142685F, 0.349949301482F,
                         0.259073929639F, 0.285008642776F, -0.000160542627809F);
    float outer = fmaf(-exp_beside_one_f32(-z), g, 1.0F);
    return copysignf(size < 1.0F ? size * f : outer, x);
}

/* Of a size at most 39.0. */
VECTOR_INLINE struct normal_f64 normal_tail_f64(double size)
{
    double half = 0.5 * size, square = -half * size, low = fma(-half, size, -square); /* exactly -size^2 / 2 */
    double u = fma(-0.2, size, 1.0) / fma(0.2, size, 1.0);
    double g = HORNER_F64(u, -0x1.04b63c82ed1a3p-25, 0x1.c361d898aedc3p-23, -0x1.922821649deb3p-22,
                          -0x1.488bc87848fbdp-21, 0x1.54ba216396b09p-20, 0x1.bce52cf9c16e8p-18, -0x1.00742b9b463abp-20,
                          -0x1.fae61b4c6b64p-15, -0x1.1999be54fbe7cp-13, 0x1.cc6e7408cff1ap-13, 0x1.37ccc5c51f712p-9,
                          0x1.26a11536add8p-7, 0x1.7f9d043730416p-6, 0x1.8807f2a00072dp-5, 0x1.4b4ce479f86d7p-4,
                          0x1.db6af8722cda7p-4, 0x1.25cd1321c8cb4p-3, 0x1.3b0fbcb4c77bfp-4);
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
    double size = fabs(x), z = x * x;
    double f = HORNER_F64(z, -7.7958988270021422416e-10, 1.3720064546777685604e-8, -1.6208483801871705902e-7,
                          1.644742470331736241e-6, -0.000014924736907419660338, 0.00012055294904839707917,
                          -0.00085483259753896920806, 0.0052239776071164227321, -0.02686617064323777036,
                          0.11283791670945006266, -0.37612638903183540438, 1.1283791670955125665);
    double t = 1.0 / fma(0.5, size, 1.0);
    double g =
        HORNER_F64(t, 0.064177099569977565351, -0.46415031005127023163, 1.4993273861992587855, -2.8084696200812490296,
                   3.3141789939074117687, -2.5485795151627721857, 1.3907243547276612598, -0.67205878221902889897,
                   0.19483233899524952566, 0.03477897668837143768, 0.18531641297586197468, 0.24562975816641905566,
                   0.28220514173766230087, 0.28208857293202290197, 1.624228474007759057e-7);
    double outer = fma(-exp_beside_one_f64(-z), g, 1.0);
    return copysign(size < 1.0 ? size * f : outer, x);
}

#endif
