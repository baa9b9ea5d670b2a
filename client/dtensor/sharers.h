/* client/dtensor/sharers.h - the ranks that share a dim: those that differ only in the mesh dims that split it into
 * chunks.
 *
 * Parts are counted in the order of the dim: the last of the mesh dims fastest.  Where one mesh dim splits they are its
 * group; else the whole mesh makes one call, in which each such set of ranks fills in its own counts.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_SHARERS_H
#define DTENSOR_SHARERS_H

#include "dtensor/dtensor.h"

struct sharers {
    const mesh_device_mesh *mesh;
    uint32_t mesh_dims; /* set of those that split */
    int n, me;          /* parts, and this rank's one (undefined on ranks outside the mesh) */
};
struct sharers sharers_of(const mesh_device_mesh *m, const mesh_placements *p, int dim);

/* Whether a mesh dim of several ranks splits the dim into chunks. */
bool sharers_split(const mesh_device_mesh *m, const mesh_placements *p, int mesh_dim, int dim);

/* The coordinate that differs from this rank's by having another part. */
void sharers_coordinate(const struct sharers *s, int part, int *ret_coordinate);

/* Chunk of an extent that the mesh dims of a set split, at a coordinate; and a part of these ranks' dim. */
struct chunk sharers_chunk_at(const mesh_device_mesh *m, uint32_t mesh_dims, const int *coordinate, int64_t extent);
struct chunk sharers_chunk(const struct sharers *s, int part, int64_t extent);

/* One all_to_all: counts are elements for and from each part, one after another in sent and got, of one dtype. */
struct sharers_swap {
    const struct mesh_tensor *sent;
    struct mesh_tensor *got;
    const size_t *sent_counts, *got_counts; /* [n] */
};
int sharers_swap(const struct sharers *s, const struct sharers_swap *w);

#endif
