/* mesh/ops_index.h - operators that choose elements by numbers that stand in another tensor.
 *
 * Index tensors are of an integer dtype.  A dim that is indexed may be sharded: it is never gathered; every rank looks up
 * what it has, and the result is Partial(sum).
 *
 * An index out of range is MESH_EINVAL on all ranks when they all have the whole index tensor (on a mesh of all ranks);
 * else the rank that finds it gets MESH_EINVAL and the others MESH_EABORTED with its sentence.
 * What mesh/ops.h says of all operators holds here too.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_OPS_INDEX_H
#define MESH_OPS_INDEX_H

#include "dtensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a table: y[i..., :] = weight[ids[i...], :].
 *
 * Shapes      weight [rows, width], ids any [...] -> y [..., width].
 * Placements  weight sharded over its rows, ids Replicate: y Partial(sum).  Over its width: y over its last dim.  ids
 *             sharded: y alike.  weight Partial: y too.
 * Errors      MESH_ESHAPE; MESH_EINVAL for an id outside [0, rows).
 * Gradient    of weight: the rows of dy added up by id, in the layout of weight: no rank makes more than its part. */
MESH_API mesh_dtensor *mesh_embedding(mesh_dtensor *weight, mesh_dtensor *ids);

/* Slices of x along dim: place i of the result's dim is place index[i] of x's; negative ones count from the end.
 *
 * Shapes      index [n]; the result as x, with n along dim.
 * Placements  x sharded over another dim: the result alike.  x over dim, index Replicate: Partial(sum).  index sharded, x
 *             whole: sharded over dim.  x Partial: the result too.
 * Errors      MESH_ESHAPE; MESH_EINVAL for an index or a dim out of range. */
MESH_API mesh_dtensor *mesh_index_select(mesh_dtensor *x, mesh_dtensor *index, int dim);

/* Single elements (known as `gather` elsewhere, which here is a collective): for dim 1,
 * y[i, j, k] = x[i, index[i, j, k], k]; negative indices count from the end.
 *
 * Shapes      index has the dims of x, none longer than x's but dim; y as index.
 * Placements  x and index sharded alike over another dim of equal extents: y alike.  x over dim, index Replicate:
 *             Partial(sum).  index over dim, x whole: y over dim.  x Partial: y too.
 * Errors      MESH_ESHAPE; MESH_EINVAL for an index or a dim out of range.
 * Gradient    of x: mesh_scatter_add() of dy. */
MESH_API mesh_dtensor *mesh_take_along_dim(mesh_dtensor *x, mesh_dtensor *index, int dim);

/* x with src added at chosen places: for dim 1, y[i, index[i, j, k], k] += src[i, j, k]; negative indices count from the
 * end.  Places named several times get the sum.
 *
 * Shapes      index and src are alike, with the dims of x, none longer than x's but dim; y as x.
 * Placements  all sharded alike over another dim of equal extents: y alike.  x over dim: y alike, nothing moves but
 *             index and src.  index and src over dim, x Partial(sum): y Partial(sum).  x and src Partial(sum): y too.
 * Rounding    added in the order of src within a rank, then over ranks in a fixed order.
 * Errors      MESH_ESHAPE; MESH_EINVAL for an index or a dim out of range.
 * Gradient    of x: dy; of src: mesh_take_along_dim() of dy. */
MESH_API mesh_dtensor *mesh_scatter_add(mesh_dtensor *x, mesh_dtensor *index, mesh_dtensor *src, int dim);

/* 1 at the place that each index names, 0 elsewhere, as i64.
 *
 * Shapes      index [...] -> [..., num_classes].
 * Placements  shards of index are kept.
 * Errors      MESH_EINVAL for num_classes < 1 or an index outside [0, num_classes). */
MESH_API mesh_dtensor *mesh_one_hot(mesh_dtensor *index, int64_t num_classes);

#ifdef __cplusplus
}
#endif

#endif
