/* client/tensor/horner.h - polynomials by Horner's rule, every step one fused multiplication.
 *
 *     HORNER_F64(x, c2, c1, c0)     fma(fma(c2, x, c1), x, c0)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_HORNER_H
#define TENSOR_HORNER_H

/* The builtins, as <tgmath.h> would write each argument more than once. */
#define HORNER_F32(x, ...) HORNER_(__builtin_fmaf, x, __VA_ARGS__)
#define HORNER_F64(x, ...) HORNER_(__builtin_fma, x, __VA_ARGS__)

/* The number of coefficients, up to 18, names the macro. */
#define HORNER_(f, x, ...)                                                                                             \
    HORNER_PICK_(__VA_ARGS__, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)(f, x, __VA_ARGS__)
#define HORNER_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, count, ...) HORNER_##count##_

/* clang-format off */
#define HORNER_2_(f, x, y, c)        f(y, x, c)
#define HORNER_3_(f, x, y, c, ...)   HORNER_2_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_4_(f, x, y, c, ...)   HORNER_3_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_5_(f, x, y, c, ...)   HORNER_4_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_6_(f, x, y, c, ...)   HORNER_5_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_7_(f, x, y, c, ...)   HORNER_6_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_8_(f, x, y, c, ...)   HORNER_7_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_9_(f, x, y, c, ...)   HORNER_8_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_10_(f, x, y, c, ...)  HORNER_9_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_11_(f, x, y, c, ...)  HORNER_10_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_12_(f, x, y, c, ...)  HORNER_11_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_13_(f, x, y, c, ...)  HORNER_12_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_14_(f, x, y, c, ...)  HORNER_13_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_15_(f, x, y, c, ...)  HORNER_14_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_16_(f, x, y, c, ...)  HORNER_15_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_17_(f, x, y, c, ...)  HORNER_16_(f, x, f(y, x, c), __VA_ARGS__)
#define HORNER_18_(f, x, y, c, ...)  HORNER_17_(f, x, f(y, x, c), __VA_ARGS__)
/* clang-format on */

#endif
