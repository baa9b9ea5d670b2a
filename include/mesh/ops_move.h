/* mesh/ops_move.h - operators that put elements elsewhere: views, permutations, joining, cutting, padding, repeating.
 *
 * Any dtype will do and is kept; gradients move back the way the elements came.  What mesh/ops.h says of all
 * operators holds here too.
 *
 * flip, roll, cat, split, narrow and pad along a dim that one mesh dim shards: the result is sharded there too, and only
 * the elements that change their rank cross (one all_to_all, none when there are none).  A dim that several mesh dims
 * shard is gathered first.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_OPS_MOVE_H
#define MESH_OPS_MOVE_H

#include "dtensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mesh_reshape() that never communicates: the same elements in row-major order under another shape; one extent may be
 * -1.
 *
 * Placements  a shard becomes a shard of another dim, plain or strided, where every rank's part stays what it is: [2,8] S(1) as
 *             [16] is StridedShard(0, 2), and the other way round.  Partial stays.
 * Errors      MESH_ESHAPE when the number of elements differs; MESH_EPLACEMENT, on all ranks with one text, when elements
 *             would have to move between ranks. */
MESH_API mesh_dtensor *mesh_view(mesh_dtensor *x, mesh_shape to);

/* The dims in another order: dim d of the result is dim dims[d] of x; negative ones count from the end.
 *
 * Placements  a shard moves along with its dim; Partial stays.
 * Errors      MESH_ESHAPE for another number of dims; MESH_EINVAL when one is out of range or named twice. */
MESH_API mesh_dtensor *mesh_permute(mesh_dtensor *x, mesh_shape dims);

/* A new dim of extent 1 in front of dim `dim`; -1 puts it last.
 *
 * Placements  shards are renumbered; Partial stays.
 * Errors      MESH_EINVAL when dim is out of range. */
MESH_API mesh_dtensor *mesh_unsqueeze(mesh_dtensor *x, int dim);

/* Without dim `dim` if its (global) extent is 1; else x's elements as they are.
 *
 * Placements  shards are renumbered; a shard of the dim that goes is brought to all ranks.  Partial stays.
 * Errors      MESH_EINVAL when dim is out of range. */
MESH_API mesh_dtensor *mesh_squeeze(mesh_dtensor *x, int dim);

/* The order of elements reversed along some dims.
 *
 * Placements  y like x, Partial included.
 * Errors      MESH_EINVAL when a dim is out of range or named twice. */
MESH_API mesh_dtensor *mesh_flip(mesh_dtensor *x, mesh_shape dims);

/* Moved `shift` places up along one dim; what falls off the end comes in at the beginning.  shift may be negative.
 *
 * Placements  y like x, Partial included.
 * Errors      MESH_EINVAL when dim is out of range. */
MESH_API mesh_dtensor *mesh_roll(mesh_dtensor *x, int64_t shift, int dim);

/* n tensors one after another along a dim that they have; of several dtypes, the one that holds them all.
 *
 * Shapes      equal but for dim.
 * Placements  all sharded alike: the result too.  All Partial of one kind: the result too; one that is
 *             Replicate beside Partial(sum) ones counts once.
 * Errors      MESH_EINVAL for n < 1, a NULL, a dim out of range; MESH_ESHAPE. */
MESH_API mesh_dtensor *mesh_cat(mesh_dtensor *const *tensors, int n, int dim);

/* n tensors of one shape along a new dim: tensor i is mesh_select(result, dim, i).
 *
 * Placements  as mesh_cat() after mesh_unsqueeze().
 * Errors      as mesh_cat(). */
MESH_API mesh_dtensor *mesh_stack(mesh_dtensor *const *tensors, int n, int dim);

/* Cuts x along dim into pieces of split_size, the last of what is left; writes them into ret_pieces and returns how
 * many: extent / split_size rounded up, and 1 for an extent of 0.  0 when it failed; unused places are NULL.
 *
 * Placements  each piece like x, Partial included.
 * Errors      MESH_EINVAL when dim is out of range, split_size < 1, or max_pieces too few. */
MESH_API int mesh_split(mesh_dtensor *x, int64_t split_size, int dim, mesh_dtensor **ret_pieces, int max_pieces);

/* `length` places of dim from place `start` on; a negative start counts from the end.
 *
 * Placements  y like x, Partial included.  At most half of a dim that several mesh dims shard: Partial(sum).
 * Errors      MESH_EINVAL when the range is not within the dim. */
MESH_API mesh_dtensor *mesh_narrow(mesh_dtensor *x, int dim, int64_t start, int64_t length);

/* Place `index` of dim, which goes; negative ones count from the end.
 *
 * Placements  shards of other dims are kept, renumbered; Partial stays.  Of a sharded dim: the owner puts in the slice,
 *             and the result is Partial(sum).
 * Errors      MESH_EINVAL when dim or index is out of range. */
MESH_API mesh_dtensor *mesh_select(mesh_dtensor *x, int dim, int64_t index);

/* x between constant borders: pad holds (before, after) of the last dim, then of the one before it, and so on.
 *
 * Placements  y like x.  Partial(max) and (min) stay; (sum) and (avg) when value is 0.
 * Errors      MESH_EINVAL for a negative or odd number of borders, or a value that the dtype cannot hold. */
MESH_API mesh_dtensor *mesh_pad(mesh_dtensor *x, mesh_shape pad, double value);

/* x repeats[d] times in a row along each dim d of the result; more repeats than dims add leading dims.
 *
 * Placements  shards of dims that are not repeated are kept; Partial stays.
 * Errors      MESH_ESHAPE for fewer repeats than dims; MESH_EINVAL for a negative one. */
MESH_API mesh_dtensor *mesh_repeat(mesh_dtensor *x, mesh_shape repeats);

#ifdef __cplusplus
}
#endif

#endif
