/* client/dtensor/layout.h - what part of a tensor a rank holds.  Pure functions.
 *
 * Extent n over m parts: c = ceil(n/m), part i is [min(n, i c), min(n, (i+1) c)).  Two mesh dims on one tensor dim: the
 * earlier mesh dim splits first, the later splits each piece again.  The offset of an empty part is the whole extent.
 * A part without strided shards is a box; with them it is made up of one box for each run of every dim (places.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_LAYOUT_H
#define DTENSOR_LAYOUT_H

#include "dtensor/places.h"
#include "tensor/kernels.h"

/* The part of a tensor of this global shape at a coordinate of a mesh of these sizes.  box.offset[d] is global; of an empty
 * part the global extent.  Of a strided shard the offset is that of its first place, and the extent how many places it has. */
void layout_box(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p,
                struct box *ret_box);
mesh_shape layout_local_shape(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p);

/* The boxes of a part one after another, the last dim fastest: for (...first(); is_some; ...next()). */
struct box_walk {
    bool is_some;
    struct places places[MESH_MAX_NDIM];
    struct box global, local; /* the current one in the whole, and in the part */
};
void box_walk_first(struct box_walk *w, mesh_shape global, const int *mesh_size, const int *coordinate,
                    const mesh_placements *p);
void box_walk_next(struct box_walk *w);

/* Where element `index` of the whole is in the part at a coordinate, row-major; -1: elsewhere. */
int64_t layout_find(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p,
                    const int64_t *index);

/* The part of a whole tensor, dense. */
void layout_pack(void *part, const void *whole, struct box_walk *w, mesh_shape global, size_t item_bytes);

/* Pending reductions of different kinds in one list, other than {sum, avg}: they do not commute. */
bool placements_mix_reductions(const mesh_placements *p);
const char *placement_text(mesh_placement p, char *buf, size_t cap); /* "S(0)" */

/* Normalises negative shard dims, split factors of 1 and unused fields, so that equal lists are equal as bytes.  From global facts:
 * MESH_EINVAL for a number of placements unlike the mesh's ndim, a shard dim out of range (names dim and ndim), a split factor below
 * 1, an unknown op; MESH_EPLACEMENT for avg of integers, bitwise ops of floats, mixed pending reductions other than {sum, avg}. */
int placements_check(const char *what, mesh_shape global, mesh_dtype t, int mesh_ndim, mesh_placements *inout);

#endif
