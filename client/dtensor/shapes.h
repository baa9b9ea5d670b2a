/* client/dtensor/shapes.h - shape functions: what an operator makes of global shapes, dtypes and arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_SHAPES_H
#define DTENSOR_SHAPES_H

#include "dtensor/rules.h"

/* Fills out and out_dtype and normalises attr, or refuses with a sentence: MESH_ESHAPE, MESH_EINVAL, MESH_EUNSUPPORTED.  Looks
 * at global facts only, so every rank decides alike.  Named in ops.def without op_. */
typedef int (*shape_fn)(struct op_shapes *inout);

int op_shape_broadcast(struct op_shapes *inout);
int op_shape_broadcast_float(struct op_shapes *inout);
int op_shape_like_first(struct op_shapes *inout);
int op_shape_like_first_float(struct op_shapes *inout);
int op_shape_matmul(struct op_shapes *inout);
int op_shape_linear(struct op_shapes *inout);
int op_shape_linear_grad_input(struct op_shapes *inout);
int op_shape_linear_grad_weight(struct op_shapes *inout);
int op_shape_transpose(struct op_shapes *inout);
int op_shape_reshape(struct op_shapes *inout);
int op_shape_expand(struct op_shapes *inout);
int op_shape_expand_inverse(struct op_shapes *inout);
int op_shape_reduce(struct op_shapes *inout);
int op_shape_mean(struct op_shapes *inout);
int op_shape_along(struct op_shapes *inout);
int op_shape_cross_entropy(struct op_shapes *inout);
int op_shape_cross_entropy_grad(struct op_shapes *inout);

#endif
