/* mesh/ops_pointwise.h - operators that compute each element from the elements at its place: functions, comparisons,
 * choices, casts, triangles.
 *
 * What is said in ops.h about operators holds here.  Functions take f32 and f64, also f16 and bf16, which are computed
 * in f32 and rounded once, as by all operators; where integers have the same function (abs, sign, square, pow, clamp,
 * ceil, floor, round, maximum, minimum, comparisons, where, masked_fill, tril, triu) i8 u8 i32 i64 too, which wrap.
 *
 * A C number never changes the dtype: one that the tensor cannot hold is MESH_EINVAL.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_OPS_POINTWISE_H
#define MESH_OPS_POINTWISE_H

#include "dtensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = |x|; the gradient at 0 is 0.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_abs(mesh_dtensor *x);

/* y = -1, 0 or 1, as x is below, at or above 0; NaN gives 0.
 *
 * Placements  sharded: y too; Partial(max) and Partial(min) stay; any other Partial is reduced first. */
MESH_API mesh_dtensor *mesh_sign(mesh_dtensor *x);

/* y = x x.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_square(mesh_dtensor *x);

/* y = 1 / x.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_reciprocal(mesh_dtensor *x);

/* y = the square root of x; NaN below 0.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_sqrt(mesh_dtensor *x);

/* y = 1 / the square root of x.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_rsqrt(mesh_dtensor *x);

/* y = e to the power x.
 *
 * Placements  sharded: y too; Partial(max) and Partial(min) stay; any other Partial is reduced first. */
MESH_API mesh_dtensor *mesh_exp(mesh_dtensor *x);

/* y = e to the power x, less 1; exact for small x.
 *
 * Placements  sharded: y too; Partial(max) and Partial(min) stay; any other Partial is reduced first. */
MESH_API mesh_dtensor *mesh_expm1(mesh_dtensor *x);

/* y = the natural logarithm of x; NaN below 0.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_log(mesh_dtensor *x);

/* y = the natural logarithm of 1 + x; exact for small x.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_log1p(mesh_dtensor *x);

/* y = the sine of x.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_sin(mesh_dtensor *x);

/* y = the cosine of x.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_cos(mesh_dtensor *x);

/* y = the error function of x.
 *
 * Placements  sharded: y too; Partial(max) and Partial(min) stay; any other Partial is reduced first. */
MESH_API mesh_dtensor *mesh_erf(mesh_dtensor *x);

/* y = 1 / (1 + exp(-x)).
 *
 * Placements  sharded: y too; Partial(max) and Partial(min) stay; any other Partial is reduced first. */
MESH_API mesh_dtensor *mesh_sigmoid(mesh_dtensor *x);

/* y = x / (1 + exp(-x)).
 *
 * Placements  sharded: y too; a Partial x is reduced first.
 * Source      Elfwing et al. 2017. */
MESH_API mesh_dtensor *mesh_silu(mesh_dtensor *x);

/* y = log(1 + exp(x)); x itself above 20.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_softplus(mesh_dtensor *x);

/* y = the least whole number not below x; the gradient is 0.
 *
 * Placements  sharded: y too; Partial(max) and Partial(min) stay; any other Partial is reduced first. */
MESH_API mesh_dtensor *mesh_ceil(mesh_dtensor *x);

/* y = the greatest whole number not above x; the gradient is 0.
 *
 * Placements  sharded: y too; Partial(max) and Partial(min) stay; any other Partial is reduced first. */
MESH_API mesh_dtensor *mesh_floor(mesh_dtensor *x);

/* y = the nearest whole number, of two the even one; the gradient is 0.
 *
 * Placements  sharded: y too; Partial(max) and Partial(min) stay; any other Partial is reduced first. */
MESH_API mesh_dtensor *mesh_round(mesh_dtensor *x);

/* y = x where x > 0, else x * negative_slope.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_leaky_relu(mesh_dtensor *x, double negative_slope);

/* y = x brought into [min, max]; -INFINITY and INFINITY mean no bound.
 *
 * max where min > max.  NaN stays.  At the bounds the gradient passes.
 *
 * Placements  sharded: y too; Partial(max) and Partial(min) stay; any other Partial is reduced first.
 * Errors      MESH_EINVAL for a bound that is NaN, or that an integer tensor cannot hold. */
MESH_API mesh_dtensor *mesh_clamp(mesh_dtensor *x, double min, double max);

/* y = x to the power exponent.
 *
 * Placements  sharded: y too; a Partial x is reduced first.
 * Errors      MESH_EINVAL for integers to a negative or broken power. */
MESH_API mesh_dtensor *mesh_pow_scalar(mesh_dtensor *x, double exponent);

/* y = a to the power b.
 *
 * Integers to a negative power give 0, but for 1 and -1.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  sharded alike: y too; Partial inputs are reduced first.
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_pow(mesh_dtensor *a, mesh_dtensor *b);

/* y = the greater of a and b; NaN if either is.  Where they are equal each gets half of the gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  sharded alike: y too.  Both Partial(max): y too.  One Partial(max) or Partial(min), the other Replicate:
 *             y Partial alike.
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_maximum(mesh_dtensor *a, mesh_dtensor *b);

/* y = the lesser of a and b; NaN if either is.  Where they are equal each gets half of the gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  as mesh_maximum(), both Partial(min) instead of both Partial(max).
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_minimum(mesh_dtensor *a, mesh_dtensor *b);

/* y = a + weight (b - a): a at weight 0, b at 1.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  sharded alike: y too.  Both Partial(sum), or both Partial(avg): y too.
 * Errors      MESH_ESHAPE when the shapes do not broadcast; MESH_EUNSUPPORTED for integers. */
MESH_API mesh_dtensor *mesh_lerp(mesh_dtensor *a, mesh_dtensor *b, double weight);

/* y = a where the condition is true, else b.
 *
 * Shapes      the three broadcast as in NumPy.
 * Placements  sharded alike: y too.  The condition Replicate, a and b Partial alike: y too; one of them Partial(avg),
 *             (max) or (min), the other Replicate: y Partial alike.
 * Errors      MESH_EINVAL when the condition is not bool; MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_where(mesh_dtensor *condition, mesh_dtensor *a, mesh_dtensor *b);

/* y = value where the mask is true, else x.
 *
 * Shapes      x and mask broadcast as in NumPy.
 * Placements  sharded alike: y too.  The mask Replicate, x Partial(avg), (max) or (min): y too; Partial(sum) when value
 *             is 0.
 * Errors      MESH_EINVAL when the mask is not bool or x cannot hold value; MESH_ESHAPE when the shapes do not
 *             broadcast. */
MESH_API mesh_dtensor *mesh_masked_fill(mesh_dtensor *x, mesh_dtensor *mask, double value);

/* y = whether a = b, elementwise, as bool; false if either is NaN.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  sharded alike: y too; Partial inputs are reduced first.
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_eq(mesh_dtensor *a, mesh_dtensor *b);

/* y = whether a is not b, elementwise, as bool; true if either is NaN.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  as mesh_eq().
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_ne(mesh_dtensor *a, mesh_dtensor *b);

/* y = whether a < b, elementwise, as bool; false if either is NaN.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  as mesh_eq().
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_lt(mesh_dtensor *a, mesh_dtensor *b);

/* y = whether a <= b, elementwise, as bool; false if either is NaN.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  as mesh_eq().
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_le(mesh_dtensor *a, mesh_dtensor *b);

/* y = whether a > b, elementwise, as bool; false if either is NaN.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  as mesh_eq().
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_gt(mesh_dtensor *a, mesh_dtensor *b);

/* y = whether a >= b, elementwise, as bool; false if either is NaN.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  as mesh_eq().
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_ge(mesh_dtensor *a, mesh_dtensor *b);

/* y = whether a and b are both true, elementwise, as bool; a number is true unless it is 0.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  as mesh_eq().
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_logical_and(mesh_dtensor *a, mesh_dtensor *b);

/* y = whether a or b is true, elementwise, as bool; a number is true unless it is 0.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  as mesh_eq().
 * Errors      MESH_ESHAPE when the shapes do not broadcast. */
MESH_API mesh_dtensor *mesh_logical_or(mesh_dtensor *a, mesh_dtensor *b);

/* y = whether x is false, elementwise, as bool; a number is false when it is 0.  No gradient.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_logical_not(mesh_dtensor *x);

/* y = a and b, bit by bit; of truth values the logical one.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  sharded alike: y too.  Both Partial(band), integers: y too; one Partial, the other Replicate too.
 * Errors      MESH_ESHAPE when the shapes do not broadcast; MESH_EUNSUPPORTED for floating dtypes. */
MESH_API mesh_dtensor *mesh_bitwise_and(mesh_dtensor *a, mesh_dtensor *b);

/* y = a or b, bit by bit; of truth values the logical one.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  sharded alike: y too.  Both Partial(bor), integers: y too; one Partial, the other Replicate too.
 * Errors      MESH_ESHAPE when the shapes do not broadcast; MESH_EUNSUPPORTED for floating dtypes. */
MESH_API mesh_dtensor *mesh_bitwise_or(mesh_dtensor *a, mesh_dtensor *b);

/* y = a exclusive or b, bit by bit; of truth values the logical one.  No gradient.
 *
 * Shapes      a and b broadcast as in NumPy.
 * Placements  sharded alike: y too.  Both Partial(bxor), integers: y too.
 * Errors      MESH_ESHAPE when the shapes do not broadcast; MESH_EUNSUPPORTED for floating dtypes. */
MESH_API mesh_dtensor *mesh_bitwise_xor(mesh_dtensor *a, mesh_dtensor *b);

/* y = x with every bit turned; of a truth value the other one.  No gradient.
 *
 * Placements  sharded: y too; a Partial x is reduced first.
 * Errors      MESH_EUNSUPPORTED for floating dtypes. */
MESH_API mesh_dtensor *mesh_bitwise_not(mesh_dtensor *x);

/* y = whether x is NaN, elementwise, as bool.  No gradient.
 *
 * Placements  sharded: y too; a Partial x is reduced first. */
MESH_API mesh_dtensor *mesh_isnan(mesh_dtensor *x);

/* Whether a and b have one shape and equal elements, the same answer on every rank of the mesh; NaN equals nothing.
 *
 * Placements  any; b is brought to a's, Partial inputs are reduced.
 * Collective  on their mesh.
 * Cost        one all_reduce of a byte, and what bringing them together takes; nothing when the shapes differ.
 * Errors      false: MESH_EINVAL for inputs on two meshes; those of collectives. */
MESH_API bool mesh_equal(mesh_dtensor *a, mesh_dtensor *b);

/* The lower triangle of the last two dims, zeros elsewhere: what is at most `diagonal` columns right of the main
 * diagonal.
 *
 * Placements  y like x, whatever it is: each rank keeps its share of the triangle.
 * Cost        no traffic.
 * Errors      MESH_ESHAPE for fewer than 2 dims. */
MESH_API mesh_dtensor *mesh_tril(mesh_dtensor *x, int64_t diagonal);

/* The upper triangle of the last two dims, zeros elsewhere: what is at least `diagonal` columns right of the main
 * diagonal.
 *
 * Placements  as mesh_tril().
 * Cost        no traffic.
 * Errors      as mesh_tril(). */
MESH_API mesh_dtensor *mesh_triu(mesh_dtensor *x, int64_t diagonal);

/* x in another dtype.
 *
 * A floating number to an integer: towards 0, beyond its range the nearest, NaN to 0.  An integer to a narrower one
 * keeps its low end.  To bool: whether it is not 0.
 *
 * Placements  sharded: y too.  Partial(max) and (min) stay where the dtype becomes floating or a wider integer, (sum) and
 *             (avg) where one floating dtype becomes a wider one; any other Partial is reduced first, in x's dtype.
 * Errors      MESH_EINVAL when it is not a dtype. */
MESH_API mesh_dtensor *mesh_cast(mesh_dtensor *x, mesh_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
