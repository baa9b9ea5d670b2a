/* client/dtensor/mesh_make.h - the pieces that making a mesh is made of.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_MESH_MAKE_H
#define DTENSOR_MESH_MAKE_H

#include "dtensor/device_mesh.h"
#include "dtensor/state.h"

/* Sizes and names, no ranks and no groups yet.  names may be NULL.  NULL: error set. */
mesh_device_mesh *mesh_bare(struct mesh_session *s, int ndim, const int *size, const char *const *names);
/* Once the ranks are in: whether this one is among them, where, and what the mesh is known by. */
void mesh_locate(mesh_device_mesh *m);
/* The group of all ranks, once a member has the groups of the dims. */
int mesh_make_whole(mesh_device_mesh *m);
mesh_device_mesh *mesh_find_equal(struct dtensor_state *st, const mesh_device_mesh *m); /* NULL: none yet */
void mesh_remember(struct dtensor_state *st, mesh_device_mesh *m);                      /* takes m */
/* One over the ranks of both: the larger of the two when it has all, else a line in ascending order.  NULL: error set. */
mesh_device_mesh *mesh_of_both(mesh_device_mesh *a, mesh_device_mesh *b);
int mesh_check_name(const char *name); /* of a dim */

#endif
