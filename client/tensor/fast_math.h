/* client/tensor/fast_math.h - <tgmath.h> whose exp, expm1, log, log1p, tanh, erf, sin, cos and pow are loops that the
 * compiler can make vector loops; sigmoid, softplus, gelu and gelu_slope as well.
 *
 * Without branches and without calls; infinities, zeros and NaN as in the C library.  Errors in units of the last
 * place, as tests/unit/tensor/test_fast_math.c measures them: below 2, of some below 3.  The polynomials are minimax
 * fits of our own.  Every fused multiplication is written out, as fma(), so that all machines compute the same bits:
 * see base/vector.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_FAST_MATH_H
#define TENSOR_FAST_MATH_H

#include <tgmath.h>

#include "tensor/fast_exp.h"
#include "tensor/fast_log.h"
#include "tensor/fast_normal.h"
#include "tensor/fast_pow.h"
#include "tensor/fast_trig.h"

/* A name without an argument list is the function of the C library, not the macro. */
#undef exp
#undef expm1
#undef log
#undef log1p
#undef tanh
#undef erf
#undef sin
#undef cos
#undef pow
#define exp(x)            _Generic((x), float : exp_f32, default : exp_f64)(x)
#define expm1(x)          _Generic((x), float : expm1_f32, default : expm1_f64)(x)
#define log(x)            _Generic((x), float : log_f32, default : log_f64)(x)
#define log1p(x)          _Generic((x), float : log1p_f32, default : log1p_f64)(x)
#define tanh(x)           _Generic((x), float : tanh_f32, default : tanh_f64)(x)
#define erf(x)            _Generic((x), float : erf_f32, default : erf_f64)(x)
#define sin(x)            _Generic((x), float : sin_f32, default : sin_f64)(x)
#define cos(x)            _Generic((x), float : cos_f32, default : cos_f64)(x)
#define exp_beside_one(x) _Generic((x), float : exp_beside_one_f32, default : exp_beside_one_f64)(x)
#define pow(x, y)         _Generic((x) + (y), float : pow_f32, default : pow_f64)(x, y)
#define sigmoid(x)        _Generic((x), float : sigmoid_f32, default : sigmoid_f64)(x)
#define softplus(x)       _Generic((x), float : softplus_f32, default : softplus_f64)(x)
#define gelu(x)           _Generic((x), float : gelu_f32, default : gelu_f64)(x)
#define gelu_slope(x)     _Generic((x), float : gelu_slope_f32, default : gelu_slope_f64)(x)

#endif
