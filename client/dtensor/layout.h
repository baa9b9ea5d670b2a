/* client/dtensor/layout.h - who holds what: the ceil-chunk rule, nested over mesh dims.  Pure functions.
 *
 * Extent n over m parts: c = ceil(n/m), part i is [min(n, i c), min(n, (i+1) c)).  Two mesh dims on one tensor dim: the
 * earlier mesh dim splits first, the later splits each piece again.  The offset of an empty part is the whole extent.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_LAYOUT_H
#define DTENSOR_LAYOUT_H

#include <mesh/placement.h>

#include "tensor/kernels.h"

struct chunk {
    int64_t offset, extent;
};
struct chunk layout_chunk(int64_t n, int parts, int i);

/* The part of a tensor of this global shape at a coordinate of a mesh of these sizes.  box.offset[d] is global; of an empty
 * part the global extent. */
void layout_box(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p,
                struct box *ret_box);
mesh_shape layout_local_shape(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p);

/* Pending reductions of different kinds in one list, other than {sum, avg}: they do not commute. */
bool placements_mix_reductions(const mesh_placements *p);
const char *placement_text(mesh_placement p, char *buf, size_t cap); /* "S(0)" */

/* Normalises negative shard dims and unused fields, so that equal lists are equal as bytes.  From global facts: MESH_EINVAL for
 * a number of placements unlike the mesh's ndim, a shard dim out of range (names dim and ndim), an unknown op; MESH_EPLACEMENT
 * for avg of integers, bitwise ops of floats, mixed pending reductions other than {sum, avg}. */
int placements_check(const char *what, mesh_shape global, mesh_dtype t, int mesh_ndim, mesh_placements *inout);

#endif
