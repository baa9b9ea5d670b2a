/* client/autograd/grads.h - the gradient functions of the operator table, and what they are written with.
 *
 * The builders return a new tensor of the innermost scope, or NULL with the error set; NULL goes in, NULL comes out, so
 * that a formula is written whole.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_GRADS_H
#define AUTOGRAD_GRADS_H

#include "autograd/tape.h"

const struct gradient *gradient_of(enum op_id id); /* never NULL; run is NULL when the operator has none */

/* Of results that move in jumps (comparisons, indices): they are never recorded, nor is that an error. */
extern const struct gradient CONSTANT;

/* One for each name in the gradient column of ops.def. */
extern const struct gradient g_add, g_sub, g_mul, g_div, g_neg, g_mul_scalar, g_add_scalar;
extern const struct gradient g_relu, g_gelu, g_tanh;
extern const struct gradient g_matmul, g_linear, g_conv2d;
extern const struct gradient g_transpose, g_reshape, g_expand, g_sum, g_mean;
extern const struct gradient g_softmax, g_log_softmax, g_cross_entropy_rows, g_cross_entropy_sum;
#define UNARY(name, ...) extern const struct gradient g_##name;
#include "tensor/unary.def"
extern const struct gradient g_maximum, g_minimum, g_pow, g_lerp, g_where, g_masked_fill, g_tril, g_triu, g_cast;

extern const struct gradient g_permute, g_flip, g_roll, g_cat, g_narrow, g_select, g_pad, g_repeat;
extern const struct gradient g_take, g_gather, g_scatter_add;

extern const struct gradient g_amax, g_amin, g_prod, g_var, g_norm, g_logsumexp, g_cumsum, g_sort;
extern const struct gradient g_layer_norm, g_rms_norm, g_squared_difference, g_nll_loss, g_sharded_cross_entropy;

mesh_dtensor *grad_op(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr); /* no input NULL */
mesh_dtensor *grad_op1(enum op_id id, mesh_dtensor *a, const struct op_attr *attr);
mesh_dtensor *grad_op2(enum op_id id, mesh_dtensor *a, mesh_dtensor *b, const struct op_attr *attr);
mesh_dtensor *grad_scale(mesh_dtensor *x, double factor);
mesh_dtensor *grad_transpose(mesh_dtensor *x);                 /* the last two dims */
mesh_dtensor *grad_reshape(mesh_dtensor *x, mesh_shape shape); /* x itself when it has that shape */
mesh_dtensor *grad_sum_to(mesh_dtensor *x, mesh_shape shape);  /* undoes a broadcast; x itself when there was none */

#endif
