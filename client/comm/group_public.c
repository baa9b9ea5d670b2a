/* client/comm/group_public.c - the public functions about ranks and groups.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/group.h>

#include "base/error.h"
#include "comm/comm.h"
#include "comm/group.h"

int mesh_rank(void)
{
    err_enter(__func__);
    const struct mesh_session *s = session_require();
    return s != NULL ? s->rank : -1;
}

int mesh_world_size(void)
{
    err_enter(__func__);
    const struct mesh_session *s = session_require();
    return s != NULL ? s->world_size : -1;
}

mesh_group *mesh_world(void)
{
    err_enter(__func__);
    struct mesh_session *s = session_require();
    return s != NULL ? comm_of(s)->world : NULL;
}

mesh_group *mesh_new_group(const int *ranks, int n_ranks)
{
    err_enter(__func__);
    struct mesh_session *s = session_require();
    return s != NULL ? group_new(s, ranks, n_ranks, NULL) : NULL;
}

mesh_group *mesh_free_group(mesh_group *g)
{
    err_enter(__func__);
    if (g != NULL && group_is_lent(g)) {
        (void)err_set(MESH_EINVAL, "the group belongs to the session or to a mesh: mesh_finalize() frees it");
        return NULL;
    }
    return group_free(g);
}

int mesh_group_rank(const mesh_group *g)
{
    return g != NULL ? group_rank(g) : -1;
}

int mesh_group_size(const mesh_group *g)
{
    return g != NULL ? group_size(g) : -1;
}

mesh_session *mesh_current(void)
{
    return session_current();
}
