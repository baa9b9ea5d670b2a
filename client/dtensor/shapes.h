/* client/dtensor/shapes.h - shape functions: what an operator makes of global shapes, dtypes and arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_SHAPES_H
#define DTENSOR_SHAPES_H

#include "dtensor/rules.h"

/* Fills out and out_dtype and normalises attr, or refuses with a sentence: MESH_ESHAPE, MESH_EINVAL, MESH_EUNSUPPORTED.  Looks
 * at global facts only, so every rank decides alike.  Named in ops.def without op_. */
typedef int (*shape_fn)(struct op_shapes *inout);

/* Of shape functions: 0, or the refusal of truth values. */
int shape_needs_numbers(const struct op_shapes *s);
/* The same of different dtypes among the inputs of the set that are there. */
#define ALL_INPUTS UINT32_MAX
int shape_same_dtypes(const struct op_shapes *s, uint32_t which);

int op_shape_broadcast(struct op_shapes *inout);
int op_shape_broadcast_float(struct op_shapes *inout);
int op_shape_like_first(struct op_shapes *inout);
int op_shape_like_first_float(struct op_shapes *inout);
int op_shape_matmul(struct op_shapes *inout);
int op_shape_linear(struct op_shapes *inout);
int op_shape_linear_grad_input(struct op_shapes *inout);
int op_shape_linear_grad_weight(struct op_shapes *inout);
int op_shape_conv2d(struct op_shapes *inout);
int op_shape_conv2d_grad_input(struct op_shapes *inout);
int op_shape_conv2d_grad_weight(struct op_shapes *inout);
int op_shape_transpose(struct op_shapes *inout);
int op_shape_reshape(struct op_shapes *inout);
int op_shape_expand(struct op_shapes *inout);
int op_shape_expand_inverse(struct op_shapes *inout);
int op_shape_reduce(struct op_shapes *inout);
int op_shape_mean(struct op_shapes *inout);
int op_shape_along(struct op_shapes *inout);
int op_shape_cross_entropy(struct op_shapes *inout);
int op_shape_cross_entropy_grad(struct op_shapes *inout);
int op_shape_permute(struct op_shapes *inout);
int op_shape_flip(struct op_shapes *inout);
int op_shape_roll(struct op_shapes *inout);
int op_shape_cat(struct op_shapes *inout);
int op_shape_narrow(struct op_shapes *inout);
int op_shape_select(struct op_shapes *inout);
int op_shape_pad(struct op_shapes *inout);
int op_shape_repeat(struct op_shapes *inout);
int op_shape_repeat_backward(struct op_shapes *inout);
int op_shape_take(struct op_shapes *inout);
int op_shape_take_backward(struct op_shapes *inout);
int op_shape_gather(struct op_shapes *inout);
int op_shape_scatter_add(struct op_shapes *inout);
int op_shape_one_hot(struct op_shapes *inout);
int op_shape_attention(struct op_shapes *inout);
int op_shape_attention_stats(struct op_shapes *inout);
int op_shape_attention_grad_q(struct op_shapes *inout);
int op_shape_attention_grad_kv(struct op_shapes *inout);
int op_shape_number(struct op_shapes *inout);
int op_shape_clamp(struct op_shapes *inout);
int op_shape_pow_scalar(struct op_shapes *inout);
int op_shape_pow(struct op_shapes *inout);
int op_shape_broadcast_all(struct op_shapes *inout);
int op_shape_broadcast_all_float(struct op_shapes *inout);
int op_shape_truth(struct op_shapes *inout);
int op_shape_bits(struct op_shapes *inout);
int op_shape_where(struct op_shapes *inout);
int op_shape_masked_fill(struct op_shapes *inout);
int op_shape_triangle(struct op_shapes *inout);
int op_shape_cast(struct op_shapes *inout);
/* shapes_reduce.c */
int op_shape_extreme(struct op_shapes *inout);
int op_shape_truth_of(struct op_shapes *inout);
int op_shape_reduce_float(struct op_shapes *inout);
int op_shape_index(struct op_shapes *inout);
int op_shape_deviation(struct op_shapes *inout);
int op_shape_index_of(struct op_shapes *inout);
int op_shape_scan(struct op_shapes *inout);
int op_shape_sort(struct op_shapes *inout);
int op_shape_topk(struct op_shapes *inout);
int op_shape_put_along(struct op_shapes *inout);
int op_shape_normalize(struct op_shapes *inout);
int op_shape_normalize_grad_input(struct op_shapes *inout);
int op_shape_normalize_grad_weight(struct op_shapes *inout);
int op_shape_nll_grad(struct op_shapes *inout);

#endif
