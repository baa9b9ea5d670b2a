/* mesh/ops_in_place.h - operators that write their result over their first input and return it.
 *
 * x keeps its mesh, shape, dtype and placements; the other input is brought to it.  Of two dtypes the result is
 * computed in the one that holds both and stored in x's, rounded (f32 += f64) or wrapped (i32 += i64), unless x's is of
 * a lower kind (bool < integers < floats): i32 += f32 is refused.  All that shares x's memory changes with it, also
 * what a pending backward pass has saved.  A pending x takes only what its reduction lets through (see the form without
 * the underscore); x += y brings y to parts of the same kind, so that y counts once.
 *
 * The result is computed beside x and then written over it, so that a call that fails leaves x as it was: memory for as
 * much again, freed when the call returns.
 *
 * Errors common to all: NULL: MESH_ESTATE when an input requires a gradient and gradients are recorded
 * (mesh_grad_enable); MESH_EINVAL when x is pending and its parts cannot be changed one by one, when the other input is
 * pending where x is not, or when the result is of a higher kind than x's dtype; MESH_ESHAPE when x cannot hold the
 * result's shape; all before any traffic, and alike on all ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_OPS_IN_PLACE_H
#define MESH_OPS_IN_PLACE_H

#include "dtensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x = x + other, elementwise.
 *
 * Shapes      other broadcasts to x.
 * Placements  x's stay, any Partial but (prod) included. */
MESH_API mesh_dtensor *mesh_add_(mesh_dtensor *x, mesh_dtensor *other);
/* x = x - other, elementwise.
 *
 * Shapes      other broadcasts to x.
 * Placements  x's stay, Partial(sum) and Partial(avg) included. */
MESH_API mesh_dtensor *mesh_sub_(mesh_dtensor *x, mesh_dtensor *other);
/* x = x other, elementwise.
 *
 * Shapes      other broadcasts to x.
 * Placements  x's stay, Partial(sum) and Partial(avg) included. */
MESH_API mesh_dtensor *mesh_mul_(mesh_dtensor *x, mesh_dtensor *other);
/* x = x / other, elementwise.
 *
 * Shapes      other broadcasts to x.
 * Placements  x's stay, Partial(sum) and Partial(avg) included. */
MESH_API mesh_dtensor *mesh_div_(mesh_dtensor *x, mesh_dtensor *other);
/* x = x + value, elementwise.
 *
 * Placements  x's stay, Partial(avg), (max) and (min) included. */
MESH_API mesh_dtensor *mesh_add_scalar_(mesh_dtensor *x, double value);
/* x = x value, elementwise.
 *
 * Placements  x's stay, Partial(sum) and Partial(avg) included; (max) and (min) when value is positive. */
MESH_API mesh_dtensor *mesh_mul_scalar_(mesh_dtensor *x, double value);
/* x = -x, elementwise.
 *
 * Placements  x's stay, Partial(sum) and Partial(avg) included. */
MESH_API mesh_dtensor *mesh_neg_(mesh_dtensor *x);
/* x = max(x, 0), elementwise.
 *
 * Placements  x's stay, Partial(max) and Partial(min) included. */
MESH_API mesh_dtensor *mesh_relu_(mesh_dtensor *x);
/* x is brought into [min, max]; see mesh_clamp().
 *
 * Placements  x's stay, Partial(max) and Partial(min) included. */
MESH_API mesh_dtensor *mesh_clamp_(mesh_dtensor *x, double min, double max);

/* The elements of another tensor are written over x, in x's dtype.
 *
 * Shapes      from broadcasts to x.
 * Placements  x's stay, any Partial included; from's may be any. */
MESH_API mesh_dtensor *mesh_copy_(mesh_dtensor *x, mesh_dtensor *from);
/* Every element of x becomes value: of a pending x the logical one.
 *
 * Placements  x's stay, any Partial included.
 * Cost        no traffic. */
MESH_API mesh_dtensor *mesh_fill_(mesh_dtensor *x, double value);

#ifdef __cplusplus
}
#endif

#endif
