/* client/tensor/fast_pow.h - powers in loops that the compiler can make vector loops.
 *
 *     |x|^y = exp(y log |x|), whose logarithm needs more digits than the result:
 *     f32   in f64:  log2 |x| = k + s P(s^2) with s = f / (2 + f), x = 2^k (1 + f) as in fast_log.h;
 *           2^t = 2^round(t) E(t - round(t))
 *     f64   in pairs high + low:  log(1 + f) = 2 s + s w, w = 2/3 z + z^2 Q(z), z = s^2
 *
 * A sum of two numbers, the greater first, and what it lost: h = a + b, l = (a - h) + b.
 * Of a product: h = a b, l = fma(a, b, -h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_FAST_POW_H
#define TENSOR_FAST_POW_H

#include "tensor/fast_log.h"

/* What C says of pow, `size` being |x|^y where that is no special case. */
#define POW_ENDS(T, suffix, absolute, round_to_even, copy_sign)                                                        \
    VECTOR_INLINE T pow_ends_##suffix(T x, T y, T size)                                                                \
    {                                                                                                                  \
        const int is_whole = round_to_even(y) == y, is_odd = is_whole && round_to_even((T)0.5 * y) * 2 != y;           \
        size = absolute(x) == 1 ? 1 : size; /* to the power of infinity too */                                         \
        size = is_odd ? copy_sign(size, x) : size;                                                                     \
        size = x < 0 && x > -(T)INFINITY && !is_whole ? (T)NAN : size;                                                 \
        return y == 0 || x == 1 ? 1 : size;                                                                            \
    }
POW_ENDS(float, f32, fabsf, rintf, copysignf)
POW_ENDS(double, f64, fabs, rint, copysign)

/* log2 of the size of a float, to 37 bits. */
VECTOR_INLINE double log2_coarse_f64(double x)
{
    uint64_t bits = double_bits(x), k = (bits - F64_SQRT_HALF) & 0xfff0000000000000U;
    double f = double_of_bits(bits - k) - 1.0, s = f / (2.0 + f), z = s * s;
    double l = HORNER_F64(z, 0x1.5ce7cd8f69a61p-2, 0x1.a58d8fc49d905p-2, 0x1.27777fda50da3p-1, 0x1.ec709d12e192ap-1,
                          0x1.71547652bede5p+1);
    return log_ends_f64(x, fma(s, l, whole_f64(k)));
}

/* 2^x to 29 bits, |x| < 1000. */
VECTOR_INLINE double exp2_coarse_f64(double x)
{
    double shifted = x + F64_TO_WHOLE, r = x - (shifted - F64_TO_WHOLE);
    double e = HORNER_F64(r, 0x1.41d31300f5f19p-13, 0x1.5f456c0ec936fp-10, 0x1.3b2dbbfe3ff74p-7, 0x1.c6aed4b4ed644p-5,
                          0x1.ebfbdadc2771ep-3, 0x1.62e430c7ef9cep-1, 0x1.0000000262159p+0);
    return e * double_of_bits((double_bits(shifted) << 52) + F64_ONE);
}

VECTOR_INLINE float pow_f32(float x, float y)
{
    double t = (double)y * log2_coarse_f64((double)fabsf(x));
    t = t < -200.0 ? -200.0 : t;
    t = t > 200.0 ? 200.0 : t;
    return pow_ends_f32(x, y, (float)exp2_coarse_f64(t));
}

struct pair_f64 {
    double high, low;
};

/* log(1 + f) = 2 s + s w, as 2 s and the rest. */
struct log_pair_f64 {
    struct pair_f64 twice, rest;
};

VECTOR_INLINE struct log_pair_f64 log_pair_f64(double f)
{
    double d = 2.0 + f, d_low = f - (d - 2.0), inverse = 1.0 / d;
    double s = f * inverse, s_low = (fma(-s, d, f) - s * d_low) * inverse;
    double z = s * s, z_low = fma(s + s, s_low, fma(s, s, -z));
    double q = HORNER_F64(z, 0x1.0c18aed3ac556p-3, 0x1.0fbeebfedcc69p-3, 0x1.3b1c0e0843039p-3, 0x1.745cfad705558p-3,
                          0x1.c71c71f86eea5p-3, 0x1.2492492480812p-2, 0x1.99999999999bdp-2);
    double first = z * 0x1.5555555555555p-1, more = z * z * q, w = first + more;
    double first_low =
        fma(z_low, 0x1.5555555555555p-1, fma(z, 0x1.5555555555555p-55, fma(z, 0x1.5555555555555p-1, -first)));
    double w_low = (first - w) + more + first_low, rest = s * w;
    return (struct log_pair_f64){ .twice = { s + s, s_low + s_low },
                                  .rest = { rest, fma(s, w, -rest) + fma(s, w_low, s_low * w) } };
}

/* log x of x > 0, to about 64 bits. */
VECTOR_INLINE struct pair_f64 log_fine_f64(double x)
{
    double normal = x < DBL_MIN ? x * 0x1p54 : x;
    uint64_t bits = double_bits(normal), exponent = (bits - F64_SQRT_HALF) & 0xfff0000000000000U;
    double whole = whole_f64(exponent), k = x < DBL_MIN ? whole - 54.0 : whole;
    struct log_pair_f64 l = log_pair_f64(double_of_bits(bits - exponent) - 1.0);
    double powers = k * 0x1.62e42fefa38p-1; /* exactly: ln 2 in two parts, the first of 42 bits */
    double sum = powers + l.twice.high, sum_low = (powers - sum) + l.twice.high;
    double high = sum + l.rest.high, low = (sum - high) + l.rest.high;
    return (struct pair_f64){ high, low + (sum_low + (l.rest.low + fma(k, 0x1.ef35793c7673p-45, l.twice.low))) };
}

VECTOR_INLINE double pow_f64(double x, double y)
{
    struct pair_f64 l = log_fine_f64(fabs(x));
    l.high = log_ends_f64(fabs(x), l.high);
    double t = y * l.high, low = fma(y, l.high, -t) + y * l.low, near = t < -746.0 ? -746.0 : t;
    near = near > 710.0 ? 710.0 : near;
    struct exp_f64 e = exp_parts_of_sum_f64(near, near == t ? low : 0.0);
    return pow_ends_f64(x, y, exp_joined_f64(e, near < 0 ? 0x1p-512 : 0x1p512));
}

#endif
