/* client/tensor/fast_math.h - <tgmath.h> whose exp, expm1, log, log1p, tanh, erf, sin and cos are loops that the compiler can make vector
 * loops.
 *
 * Without branches and without calls; infinities, zeros and NaN as in the C library.  Errors in units of the last place, as
 * tests/unit/tensor/test_fast_math.c measures them: below 2, of tanh, erf, sin and cos below 3.  The polynomials are Chebyshev fits of our
 * own.
 *
 *     exp    x = k ln 2 + r, |r| <= ln 2 / 2;  p = exp(r) - 1 = r + r^2 E(r);  exp(x) = 2^k (1 + p)
 *     expm1  2^k (p + (1 - 2^-k))
 *     tanh   m / (m + 2) with m = expm1(2 |x|)
 *     log    x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2);  s = f / (2 + f), h = f^2 / 2, R = s^2 L(s^2):
 *            log(1 + f) = f - (h - s (h + R))
 *     log1p  log(u) - ((u - 1) - x) / u with u = 1 + x
 *     erf    |x| < 1: x F(x^2);  else 1 - exp(-x^2) G(1 / (1 + |x| / 2))
 *     sin    x = k pi / 2 + r, |r| <= pi / 4:  +- r + r^3 S(r^2) or +- 1 - r^2 / 2 + r^4 C(r^2), by k modulo 4; cos likewise
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_FAST_MATH_H
#define TENSOR_FAST_MATH_H

#include <float.h>
#include <math.h>
#include <tgmath.h>

#include "base/float_bits.h"

/* --- exp and its relatives: x is not so large that 2^k has no half ---------------------------------------------------- */

#define F32_TO_WHOLE 0x1.8p23F /* adding it rounds to whole numbers, which then stand in the low bits */
#define F64_TO_WHOLE 0x1.8p52

struct exp_f32 {
    float p, power; /* exp(r) - 1; k */
    uint32_t k;     /* modulo 2^32 */
};

static inline struct exp_f32 exp_parts_f32(float x)
{
    float shifted = x * 0x1.715476p+0F + F32_TO_WHOLE, k = shifted - F32_TO_WHOLE;
    float r = x - k * 0x1.62ep-1F; /* ln 2 in two parts, the first of few bits: k times it is exact */
    r -= k * 0x1.0bfbe8p-15F;
    float e = 0.0013926926614F;
    e = e * r + 0.00836377387441F;
    e = e * r + 0.0416665501103F;
    e = e * r + 0.166665733819F;
    e = e * r + 0.5F;
    return (struct exp_f32){ .p = e * (r * r) + r, .power = k, .k = float_bits(shifted) - float_bits(F32_TO_WHOLE) };
}

/* y 2^k in two steps, so that the least numbers come out too. */
static inline float scaled_f32(float y, uint32_t k)
{
    uint32_t half = ((k + 256) >> 1) - 128;
    return y * float_of_bits((half + 127) << 23) * float_of_bits((k - half + 127) << 23);
}

static inline float exp_f32(float x)
{
    float near = x < -104.0F ? -104.0F : x;
    near = near > 89.0F ? 89.0F : near; /* beyond, the result is 0 or infinite; NaN stays */
    struct exp_f32 e = exp_parts_f32(near);
    return scaled_f32(e.p + 1.0F, e.k);
}

static inline float expm1_f32(float x)
{
    float near = x < -20.0F ? -20.0F : x;
    near = near > 89.0F ? 89.0F : near;
    struct exp_f32 e = exp_parts_f32(near);
    float inverse = e.power > 60.0F ? 0.0F : float_of_bits((127 - e.k) << 23);
    float y = scaled_f32(e.p + (1.0F - inverse), e.k);
    return x == 0 ? x : y;
}

struct exp_f64 {
    double p, power;
    uint64_t k;
};

static inline struct exp_f64 exp_parts_f64(double x)
{
    double shifted = x * 0x1.71547652b82fep+0 + F64_TO_WHOLE, k = shifted - F64_TO_WHOLE;
    double r = x - k * 0x1.62e42feep-1;
    r -= k * 0x1.a39ef35793c76p-33;
    double e = 2.5100472505694996003e-8;
    e = e * r + 2.7620201591031548792e-7;
    e = e * r + 2.7557268276905696187e-6;
    e = e * r + 0.000024801521057868205199;
    e = e * r + 0.00019841269863171556026;
    e = e * r + 0.0013888888917367080562;
    e = e * r + 0.0083333333333300381973;
    e = e * r + 0.041666666666623820532;
    e = e * r + 0.1666666666666666746;
    e = e * r + 0.5;
    return (struct exp_f64){ .p = e * (r * r) + r, .power = k, .k = double_bits(shifted) - double_bits(F64_TO_WHOLE) };
}

static inline double scaled_f64(double y, uint64_t k)
{
    uint64_t half = ((k + 2048) >> 1) - 1024;
    return y * double_of_bits((half + 1023) << 52) * double_of_bits((k - half + 1023) << 52);
}

static inline double exp_f64(double x)
{
    double near = x < -746.0 ? -746.0 : x;
    near = near > 710.0 ? 710.0 : near;
    struct exp_f64 e = exp_parts_f64(near);
    return scaled_f64(e.p + 1.0, e.k);
}

static inline double expm1_f64(double x)
{
    double near = x < -40.0 ? -40.0 : x;
    near = near > 710.0 ? 710.0 : near;
    struct exp_f64 e = exp_parts_f64(near);
    double inverse = e.power > 60.0 ? 0.0 : double_of_bits((1023 - e.k) << 52);
    double y = scaled_f64(e.p + (1.0 - inverse), e.k);
    return x == 0 ? x : y;
}

static inline float tanh_f32(float x)
{
    float size = x < 0 ? -x : x, near = size > 10.0F ? 10.0F : size; /* beyond, it is 1 */
    float m = expm1_f32(2.0F * near), y = m / (m + 2.0F);
    return x < 0 ? -y : y;
}

static inline double tanh_f64(double x)
{
    double size = x < 0 ? -x : x, near = size > 22.0 ? 22.0 : size;
    double m = expm1_f64(2.0 * near), y = m / (m + 2.0);
    return x < 0 ? -y : y;
}

/* --- logarithms -------------------------------------------------------------------------------------------------------- */

#define F32_SQRT_HALF 0x3f3504f3U
#define F64_SQRT_HALF 0x3fe6a09e667f3bcdU

static inline float log_f32(float x)
{
    float normal = x < FLT_MIN ? x * 0x1p25F : x;
    uint32_t bits = float_bits(normal) + (0x3f800000U - F32_SQRT_HALF);
    float k = (float)(int32_t)(bits >> 23) - (x < FLT_MIN ? 152.0F : 127.0F);
    float f = float_of_bits((bits & 0x7fffffU) + F32_SQRT_HALF) - 1.0F;
    float s = f / (2.0F + f), z = s * s, h = 0.5F * f * f, l = 0.233316144718F;
    l = l * z + 0.285507786332F;
    l = l * z + 0.400001222118F;
    l = l * z + 0.66666666554F;
    float y = k * 0x1.62e3p-1F - ((h - (s * (h + z * l) + k * 0x1.2fefa2p-17F)) - f);
    y = x > FLT_MAX ? x : y;
    y = x < 0 || x != x ? NAN : y;
    return x == 0 ? -INFINITY : y;
}

static inline double log_f64(double x)
{
    double normal = x < DBL_MIN ? x * 0x1p54 : x;
    uint64_t bits = double_bits(normal) + (0x3ff0000000000000U - F64_SQRT_HALF);
    /* A number below 2^52 in the low bits of 2^52 is their sum. */
    double k = double_of_bits((bits >> 52) | 0x4330000000000000U) - (x < DBL_MIN ? 0x1p52 + 1077 : 0x1p52 + 1023);
    double f = double_of_bits((bits & 0xfffffffffffffU) + F64_SQRT_HALF) - 1.0;
    double s = f / (2.0 + f), z = s * s, h = 0.5 * f * f, l = 0.14617807153417324964;
    l = l * z + 0.15331611722055007885;
    l = l * z + 0.18182892432536871201;
    l = l * z + 0.22222211089379496214;
    l = l * z + 0.28571428626253837606;
    l = l * z + 0.39999999999898890514;
    l = l * z + 0.66666666666666697077;
    double y = k * 0x1.62e42feep-1 - ((h - (s * (h + z * l) + k * 0x1.a39ef35793c76p-33)) - f);
    y = x > DBL_MAX ? x : y;
    y = x < 0 || x != x ? (double)NAN : y;
    return x == 0 ? -(double)INFINITY : y;
}

static inline float log1p_f32(float x)
{
    float u = 1.0F + x, lost = (u - 1.0F) - x, correction = lost / u;
    float y = log_f32(u) - (u > FLT_MAX || u == 0 ? 0.0F : correction);
    return x == 0 ? x : y;
}

static inline double log1p_f64(double x)
{
    double u = 1.0 + x, lost = (u - 1.0) - x, correction = lost / u;
    double y = log_f64(u) - (u > DBL_MAX || u == 0 ? 0.0 : correction);
    return x == 0 ? x : y;
}

/* --- the error function ------------------------------------------------------------------------------------------------ */

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

static inline double erf_f64(double x)
{
    double z = x * x, f = -7.7958988270021422416e-10;
    f = f * z + 1.3720064546777685604e-8;
    f = f * z - 1.6208483801871705902e-7;
    f = f * z + 1.644742470331736241e-6;
    f = f * z - 0.000014924736907419660338;
    f = f * z + 0.00012055294904839707917;
    f = f * z - 0.00085483259753896920806;
    f = f * z + 0.0052239776071164227321;
    f = f * z - 0.02686617064323777036;
    f = f * z + 0.11283791670945006266;
    f = f * z - 0.37612638903183540438;
    double inner = x * (f * z + 1.1283791670955125665), size = x < 0 ? -x : x;
    double t = 1.0 / (1.0 + 0.5 * size), g = 0.064177099569977565351;
    g = g * t - 0.46415031005127023163;
    g = g * t + 1.4993273861992587855;
    g = g * t - 2.8084696200812490296;
    g = g * t + 3.3141789939074117687;
    g = g * t - 2.5485795151627721857;
    g = g * t + 1.3907243547276612598;
    g = g * t - 0.67205878221902889897;
    g = g * t + 0.19483233899524952566;
    g = g * t + 0.03477897668837143768;
    g = g * t + 0.18531641297586197468;
    g = g * t + 0.24562975816641905566;
    g = g * t + 0.28220514173766230087;
    g = g * t + 0.28208857293202290197;
    g = g * t + 1.624228474007759057e-7;
    double outer = 1.0 - exp_f64(-z) * g;
    outer = x < 0 ? -outer : outer;
    return size < 1.0 ? inner : outer;
}

/* --- sine and cosine of |x| <= TRIG_BOUND; beyond, and of NaN, what comes out is anything ------------------------------- */

#define TRIG_BOUND 0x1p19 /* k has so few bits that its products with the parts of pi / 2, of 33 bits each, are exact */

static inline double sin_f64_of_quadrant(double x, uint64_t first)
{
    double shifted = x * 0x1.45f306dc9c883p-1 + F64_TO_WHOLE, k = shifted - F64_TO_WHOLE;
    double r = x - k * 0x1.921fb544p+0;
    r -= k * 0x1.0b4611a6p-34;
    r -= k * 0x1.3198a2ep-69;
    r -= k * 0x1.b839a252049c1p-104;
    double z = r * r, s = 1.5918115263265975194e-10, c = -1.1382623647474604629e-11;
    s = s * z - 2.505113165023518147e-8;
    s = s * z + 2.7557316101617874437e-6;
    s = s * z - 0.00019841269836756772528;
    s = s * z + 0.0083333333333309472945;
    s = s * z - 0.16666666666666664622;
    c = c * z + 2.0876146146558611582e-9;
    c = c * z - 2.7557317271145145962e-7;
    c = c * z + 0.000024801587298764560771;
    c = c * z - 0.0013888888888887396492;
    c = c * z + 0.041666666666666665388;
    uint64_t quadrant = double_bits(shifted) + first;
    double h = 0.5 * z, one = 1.0 - h, sine = r + r * (z * s), cosine = one + (((1.0 - one) - h) + z * z * c);
    double y = (quadrant & 1) != 0 ? cosine : sine;
    return double_of_bits(double_bits(y) ^ (quadrant & 2) << 62);
}

/* In f64, of which fewer parts and terms are enough. */
static inline float sin_f32_of_quadrant(float x, uint64_t first)
{
    double shifted = (double)x * 0x1.45f306dc9c883p-1 + F64_TO_WHOLE, k = shifted - F64_TO_WHOLE;
    double r = (double)x - k * 0x1.921fb544p+0;
    r -= k * 0x1.0b4611a626331p-34;
    double z = r * r, s = 2.7249895230611678095e-6, c = -2.7300933687212943059e-7;
    s = s * z - 0.00019840086499593598134;
    s = s * z + 0.0083333318742737136675;
    s = s * z - 0.16666666663854167038;
    c = c * z + 0.000024800600180363808652;
    c = c * z - 0.0013888887671652503855;
    c = c * z + 0.041666666664320266605;
    uint64_t quadrant = double_bits(shifted) + first;
    double sine = r + r * (z * s), cosine = (1.0 - 0.5 * z) + z * z * c;
    double y = (quadrant & 1) != 0 ? cosine : sine;
    return (float)double_of_bits(double_bits(y) ^ (quadrant & 2) << 62);
}

static inline double sin_f64(double x)
{
    double y = sin_f64_of_quadrant(x, 0);
    return x == 0 ? x : y; /* -0 too */
}

static inline double cos_f64(double x)
{
    return sin_f64_of_quadrant(x, 1);
}

static inline float sin_f32(float x)
{
    float y = sin_f32_of_quadrant(x, 0);
    return x == 0 ? x : y;
}

static inline float cos_f32(float x)
{
    return sin_f32_of_quadrant(x, 1);
}

/* A name without an argument list is the function of the C library, not the macro. */
#undef exp
#undef expm1
#undef log
#undef log1p
#undef tanh
#undef erf
#undef sin
#undef cos
#define exp(x)   _Generic((x), float : exp_f32, default : exp_f64)(x)
#define expm1(x) _Generic((x), float : expm1_f32, default : expm1_f64)(x)
#define log(x)   _Generic((x), float : log_f32, default : log_f64)(x)
#define log1p(x) _Generic((x), float : log1p_f32, default : log1p_f64)(x)
#define tanh(x)  _Generic((x), float : tanh_f32, default : tanh_f64)(x)
#define erf(x)   _Generic((x), float : erf_f32, default : erf_f64)(x)
#define sin(x)   _Generic((x), float : sin_f32, default : sin_f64)(x)
#define cos(x)   _Generic((x), float : cos_f32, default : cos_f64)(x)

#endif
