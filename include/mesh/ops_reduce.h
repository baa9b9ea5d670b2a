/* mesh/ops_reduce.h - reductions, scans, sorts, normalisation and losses on DTensors.
 *
 * The remarks at the top of ops.h hold here too.  Along a sharded dim nothing is gathered where numbers per line will
 * do: the parts' maxima, sums, counts or candidates are reduced, and the tensor stays where it is.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_OPS_REDUCE_H
#define MESH_OPS_REDUCE_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The largest element over some or all dims; a NaN wins.
 *
 * Placements  a shard of a dim that stays is kept; of a dim that goes: Partial(max).  Partial(max) stays.
 * Errors      as mesh_sum(); MESH_EINVAL over no elements: nothing has no largest.
 * Gradient    equal elements share alike. */
MESH_API mesh_dtensor *mesh_amax_opt(mesh_dtensor *x, const mesh_reduce_options *o);

/* The smallest element over some or all dims; a NaN wins.
 *
 * Placements  as mesh_amax(), with Partial(min).
 * Errors      as mesh_amax().
 * Gradient    equal elements share alike. */
MESH_API mesh_dtensor *mesh_amin_opt(mesh_dtensor *x, const mesh_reduce_options *o);

/* The product over some or all dims; of nothing it is 1.
 *
 * Shapes      products of integers and truth values are i64, and wrap.
 * Placements  a shard of a dim that stays is kept; of a dim that goes: Partial(prod).
 * Errors      as mesh_sum().
 * Gradient    right with zeros: dy times the product of the others. */
MESH_API mesh_dtensor *mesh_prod_opt(mesh_dtensor *x, const mesh_reduce_options *o);

/* Whether all elements over some or all dims are true (numbers: not 0); of nothing it is true.
 *
 * Placements  a shard of a dim that stays is kept; of a dim that goes: Partial(min).
 * Errors      as mesh_sum(). */
MESH_API mesh_dtensor *mesh_all_opt(mesh_dtensor *x, const mesh_reduce_options *o);

/* Whether some element over some or all dims is true (numbers: not 0); of nothing it is false.
 *
 * Placements  a shard of a dim that stays is kept; of a dim that goes: Partial(max).
 * Errors      as mesh_sum(). */
MESH_API mesh_dtensor *mesh_any_opt(mesh_dtensor *x, const mesh_reduce_options *o);

/* log(sum(exp(x))) over some or all dims, without overflow; of nothing it is -inf.
 *
 * Placements  a shard of a dim that stays is kept.
 * Cost        where a dim that goes is sharded: two all_reduces of the result's size.
 * Errors      as mesh_sum(); MESH_EUNSUPPORTED for integers. */
MESH_API mesh_dtensor *mesh_logsumexp_opt(mesh_dtensor *x, const mesh_reduce_options *o);

/* The variance over some or all dims: the sum of squared deviations from the mean over (number of elements -
 * correction).
 *
 * Placements  a shard of a dim that stays is kept.
 * Cost        where a dim that goes is sharded: three all_reduces of the result's size; exact for uneven and empty
 *             shards.
 * Rounding    of too few elements (no more than correction) it is NaN, or inf.
 * Errors      as mesh_sum(); MESH_EUNSUPPORTED for integers. */
MESH_API mesh_dtensor *mesh_var_opt(mesh_dtensor *x, double correction, const mesh_reduce_options *o);

/* The standard deviation over some or all dims: the square root of mesh_var().
 *
 * Placements  as mesh_var().
 * Cost        as mesh_var().
 * Errors      as mesh_var(). */
MESH_API mesh_dtensor *mesh_std_opt(mesh_dtensor *x, double correction, const mesh_reduce_options *o);

/* The p-norm over some or all dims: sum(|x|^p)^(1/p); p inf and -inf: the largest and smallest |x|; p 0: how many are not 0.
 *
 * Placements  a shard of a dim that stays is kept.
 * Cost        where a dim that goes is sharded: one all_reduce of the result's size.
 * Errors      as mesh_sum(); MESH_EUNSUPPORTED for integers; MESH_EINVAL for p NaN, and for an infinite one over no
 *             elements.
 * Gradient    0 where the norm is 0. */
MESH_API mesh_dtensor *mesh_norm_opt(mesh_dtensor *x, double p, const mesh_reduce_options *o);

/* Where the largest element is: its index along the one dim named, or among several (or all, when none is named) the
 * flat row-major index.  Of equal ones the lowest index; a NaN wins, the first of several.  i64.
 *
 * Placements  a shard of a dim that stays is kept.
 * Cost        where a dim that goes is sharded: two all_reduces of the result's size.
 * Errors      as mesh_amax(). */
MESH_API mesh_dtensor *mesh_argmax_opt(mesh_dtensor *x, const mesh_reduce_options *o);

/* Where the smallest element is: as mesh_argmax().
 *
 * Placements  a shard of a dim that stays is kept.
 * Errors      as mesh_amax(). */
MESH_API mesh_dtensor *mesh_argmin_opt(mesh_dtensor *x, const mesh_reduce_options *o);

#define mesh_amax(...)      MESH_REDUCE_(mesh_amax_opt, __VA_ARGS__, .size = sizeof(mesh_reduce_options))
#define mesh_amin(...)      MESH_REDUCE_(mesh_amin_opt, __VA_ARGS__, .size = sizeof(mesh_reduce_options))
#define mesh_prod(...)      MESH_REDUCE_(mesh_prod_opt, __VA_ARGS__, .size = sizeof(mesh_reduce_options))
#define mesh_all(...)       MESH_REDUCE_(mesh_all_opt, __VA_ARGS__, .size = sizeof(mesh_reduce_options))
#define mesh_any(...)       MESH_REDUCE_(mesh_any_opt, __VA_ARGS__, .size = sizeof(mesh_reduce_options))
#define mesh_logsumexp(...) MESH_REDUCE_(mesh_logsumexp_opt, __VA_ARGS__, .size = sizeof(mesh_reduce_options))
#define mesh_argmax(...)    MESH_REDUCE_(mesh_argmax_opt, __VA_ARGS__, .size = sizeof(mesh_reduce_options))
#define mesh_argmin(...)    MESH_REDUCE_(mesh_argmin_opt, __VA_ARGS__, .size = sizeof(mesh_reduce_options))

/* mesh_var(x, 1), mesh_var(x, 0, .dims = Dims(1)), mesh_norm(x, 2, .keepdim = true), ... */
#define MESH_REDUCE_BY_(f, x, by, ...) f((x), (by), &(mesh_reduce_options){ __VA_ARGS__ })
#define mesh_var(x, ...)               MESH_REDUCE_BY_(mesh_var_opt, x, __VA_ARGS__, .size = sizeof(mesh_reduce_options))
#define mesh_std(x, ...)               MESH_REDUCE_BY_(mesh_std_opt, x, __VA_ARGS__, .size = sizeof(mesh_reduce_options))
#define mesh_norm(x, ...)              MESH_REDUCE_BY_(mesh_norm_opt, x, __VA_ARGS__, .size = sizeof(mesh_reduce_options))

/* The running sum along one dim.
 *
 * Shapes      sums of integers and truth values are i64, and wrap.
 * Placements  y like x.  Partial(sum) and Partial(avg) stay where dim is not sharded.
 * Cost        where dim is sharded: one all_reduce of a number per line and part.
 * Rounding    f32 runs in f64 within a rank and from rank to rank, and is rounded element by element.
 * Errors      MESH_EINVAL when dim is out of range. */
MESH_API mesh_dtensor *mesh_cumsum(mesh_dtensor *x, int dim);

/* The elements along one dim in order, and where they were (i64).  Equal ones keep their order either way; NaN counts
 * as the largest.  Either pointer may be NULL; on failure both become NULL.
 *
 * Placements  shards of the other dims are kept; one of dim is redistributed first.
 * Cost        scratch of 48 bytes per element of one line.  The indices are kept for the gradient; else one that nobody
 *             asks for is freed.
 * Errors      MESH_EINVAL when dim is out of range.
 * Gradient    of the values: back to where each came from. */
MESH_API void mesh_sort(mesh_dtensor *x, int dim, bool descending, mesh_dtensor **ret_values,
                        mesh_dtensor **ret_indices);

/* The k largest elements along one dim, in descending order, and where they are (i64).  Of equal ones the lowest index
 * comes first; NaN counts as the largest.  Either pointer may be NULL; on failure both become NULL.
 *
 * Placements  shards of the other dims are kept.
 * Cost        where dim is sharded: an all_gather of each part's k candidates.
 * Errors      MESH_EINVAL when dim is out of range, or k negative or more than its extent.
 * Gradient    of the values: back to where each came from. */
MESH_API void mesh_topk(mesh_dtensor *x, int64_t k, int dim, mesh_dtensor **ret_values, mesh_dtensor **ret_indices);

/* y = (x - mean) / sqrt(variance + eps) * weight + bias, mean and (uncorrected) variance over the last normalized_dims
 * dims.
 *
 * Shapes      weight and bias have these dims of x; either may be NULL.
 * Placements  y like x: a shard of a normalised dim is kept too, and weight and bias may be sharded along.
 * Cost        where a normalised dim is sharded: three all_reduces of a number per row, in backward five.
 * Errors      MESH_EINVAL for normalized_dims outside [1, ndim]; MESH_ESHAPE.
 * Source      Ba, Kiros & Hinton 2016, "Layer normalization". */
MESH_API mesh_dtensor *mesh_layer_norm(mesh_dtensor *x, int normalized_dims, mesh_dtensor *weight, mesh_dtensor *bias,
                                       double eps);

/* y = x / sqrt(mean(x^2) + eps) * weight, the mean over the last normalized_dims dims.
 *
 * Shapes      weight has these dims of x; it may be NULL.
 * Placements  as mesh_layer_norm().
 * Cost        where a normalised dim is sharded: one all_reduce of a number per row, in backward two.
 * Errors      as mesh_layer_norm().
 * Source      Zhang & Sennrich 2019, "Root mean square layer normalization". */
MESH_API mesh_dtensor *mesh_rms_norm(mesh_dtensor *x, int normalized_dims, mesh_dtensor *weight, double eps);

/* The squared difference of x and target: its mean, its sum, or each element by itself.
 *
 * Shapes      x and target alike: nothing is broadcast behind the program's back.
 * Placements  sharded alike: the mean and the sum are Partial(sum), right for uneven shards.
 * Errors      MESH_ESHAPE; MESH_EINVAL for an unknown reduction. */
MESH_API mesh_dtensor *mesh_mse_loss(mesh_dtensor *x, mesh_dtensor *target, mesh_reduction reduction);

typedef struct MESH_BY_NAME mesh_nll_loss_options {
    size_t size;
    mesh_reduction reduction;    /* 0: mean */
    const int64_t *ignore_index; /* rows of this class do not count; NULL: -100 */
    mesh_dtensor *weight;        /* [classes]: what a row of each class counts; NULL: 1; of any dtype, as ops.h says */
} mesh_nll_loss_options;

/* Minus the log-probability of the target class: mesh_cross_entropy() without its log_softmax.
 *
 * Shapes      log_probabilities [n, classes, ...], target [n, ...] of i64 or i32; or [classes] and [].  Result [], or
 *             like target.
 * Placements  rows or classes sharded: as mesh_cross_entropy().
 * Rounding    the mean divides by the global number (with weight: the total weight) of rows that count.  When no row
 *             counts it is NaN.
 * Errors      MESH_ESHAPE; MESH_EINVAL for a class out of range (as for mesh_cross_entropy()). */
MESH_API mesh_dtensor *mesh_nll_loss_opt(mesh_dtensor *log_probabilities, mesh_dtensor *target,
                                         const mesh_nll_loss_options *o);
#define mesh_nll_loss(log_probabilities, ...)                                                                          \
    mesh_nll_loss_(log_probabilities, __VA_ARGS__, .size = sizeof(mesh_nll_loss_options))
#define mesh_nll_loss_(log_probabilities, target, ...)                                                                 \
    mesh_nll_loss_opt((log_probabilities), (target), &(mesh_nll_loss_options){ __VA_ARGS__ })

#ifdef __cplusplus
}
#endif

#endif
