/* client/dtensor/device_mesh.h - the inside of a mesh: rank array, own coordinate, one group per dimension.
 *
 * Meshes are interned: in one session, equal meshes (ranks, shape, names) are the same object.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_DEVICE_MESH_H
#define DTENSOR_DEVICE_MESH_H

#include <mesh/device_mesh.h>

#include "comm/group.h"

#define MESH_NAME_BYTES 32

struct mesh_device_mesh {
    struct mesh_session *session;
    struct dtensor_state *state; /* of the session, which outlives the mesh */
    uint64_t id;                 /* hash of shape, ranks and names: equal meshes are equal */
    int ndim;
    int size[MESH_MAX_MESH_NDIM];
    int n_ranks;
    int *ranks;                                     /* [n_ranks] world ranks, row-major; owned */
    char name[MESH_MAX_MESH_NDIM][MESH_NAME_BYTES]; /* "" when unnamed */
    bool has_names, is_member;
    int coordinate[MESH_MAX_MESH_NDIM];    /* of this rank; undefined when not a member */
    mesh_group *group[MESH_MAX_MESH_NDIM]; /* this rank's line of each dim; group rank = coordinate */
    mesh_group *whole;                     /* all ranks of the mesh, in its order */
    bool owns_group[MESH_MAX_MESH_NDIM], owns_whole;
    struct mesh_device_mesh *next; /* all meshes of the session */
};

#define MESH_TEXT_BYTES 192
const char *mesh_text(const mesh_device_mesh *m, char *buf, size_t cap); /* "(dp=2, tp=4)" */
/* Name, "0" or "-1"; NULL only for a mesh of one dim.  The index, or -1 with MESH_ENOTFOUND or MESH_EINVAL set. */
int mesh_dim_index(const mesh_device_mesh *m, const char *dim);
void mesh_coordinate_of(const mesh_device_mesh *m, int place,
                        int *ret_coordinate); /* of the place-th rank, row-major */

void device_mesh_free(mesh_device_mesh *m); /* by the session's state only */

#endif
