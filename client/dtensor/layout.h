/* client/dtensor/layout.h - who holds what: the ceil-chunk rule, nested over mesh dims.  Pure functions.
 *
 * Extent n over m parts: c = ceil(n/m), part i is [min(n, i c), min(n, (i+1) c)).  Two mesh dims on one tensor dim: the
 * earlier mesh dim splits first, the later splits each piece again.  The offset of an empty part is the whole extent.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_LAYOUT_H
#define DTENSOR_LAYOUT_H

#include <mesh/placement.h>

#include "tensor/kernels.h"

struct chunk { int64_t offset, extent; };
struct chunk layout_chunk(int64_t n, int parts, int i);

/* The part of a tensor of this global shape at a coordinate of a mesh of these sizes.  box.offset[d] is global; of an empty
 * part the global extent. */
void layout_box(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p, struct box *ret_box);
mesh_shape layout_local_shape(mesh_shape global, const int *mesh_size, const int *coordinate, const mesh_placements *p);

/* Normalises negative shard dims; MESH_EINVAL / MESH_EPLACEMENT from global facts: number of placements unlike the mesh's
 * ndim, shard dim out of range (names dim and ndim), unknown op, avg of integers, mixed pending reductions other than
 * {sum, avg}. */
int placements_check(const char *what, mesh_shape global, mesh_dtype t, int mesh_ndim, mesh_placements *inout);

#endif
