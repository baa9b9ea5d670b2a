/* client/comm/group.h - a process group as the layers above see it.
 *
 * Ranks keep the order the maker gave.  Making a group is arithmetic: its id is a hash of (generation, ranks, the
 * how-manieth group of just these ranks), links open at first use.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_GROUP_H
#define COMM_GROUP_H

#include "session/session.h"

/* NULL: error set (MESH_EINVAL for a rank out of range or twice).  A rank outside gets an object with group rank -1, on
 * which every call returns MESH_ENOTMEMBER.  `name` is for messages and meshctl; groups that programs make have none, and only
 * those are theirs to free. */
mesh_group *group_new(struct mesh_session *s, const int *world_ranks, int n, const char *name);
mesh_group *group_free(mesh_group *g);

int group_size(const mesh_group *g);
int group_rank(const mesh_group *g);               /* -1: not a member */
const int *group_world_ranks(const mesh_group *g); /* [size] */
struct mesh_session *group_session(const mesh_group *g);
bool group_is_lent(const mesh_group *g); /* of the session or of a mesh */

#endif
