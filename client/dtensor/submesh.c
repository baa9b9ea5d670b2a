/* client/dtensor/submesh.c - a mesh seen by some of its dims: arithmetic on its ranks, on the groups it has already.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "core/scope.h"
#include "dtensor/mesh_make.h"

/* Which dims of m, in the order asked for. */
static int pick_dims(const mesh_device_mesh *m, const char *const *names, int *ret_dims, int *ret_n)
{
    int n = 0;
    if (!m->has_names) {
        return err_set(MESH_EINVAL, "a sub-mesh is named by its dims, and this mesh has no names: give them to "
                                    "mesh_init_device_mesh()");
    }
    for (; names && names[n]; n++) {
        int i = n < m->ndim ? mesh_dim_index(m, names[n])
                            : (err_set(MESH_EINVAL, "more than the mesh's %d dims asked for", m->ndim), -1);
        for (int j = 0; i >= 0 && j < n; j++) {
            if (ret_dims[j] == i) {
                return err_set(MESH_EINVAL, "mesh dim \"%.40s\" is asked for twice", names[n]);
            }
        }
        if (i < 0) {
            return err_status();
        }
        ret_dims[n] = i;
    }
    *ret_n = n;
    return n > 0 ? 0 : err_set(MESH_EINVAL, "a sub-mesh needs at least one dim: name it");
}

/* The ranks of the sub-mesh: those coordinates vary, the others are this rank's own (of a rank outside m: 0). */
static void submesh_ranks(const mesh_device_mesh *m, const int *dims, mesh_device_mesh *sub)
{
    for (int k = 0; k < sub->n_ranks; k++) {
        int inner[MESH_MAX_MESH_NDIM], outer[MESH_MAX_MESH_NDIM], place = 0;
        mesh_coordinate_of(sub, k, inner);
        memcpy(outer, m->coordinate, sizeof outer);
        for (int i = 0; i < sub->ndim; i++) {
            outer[dims[i]] = inner[i];
        }
        for (int i = 0; i < m->ndim; i++) {
            place = place * m->size[i] + outer[i];
        }
        sub->ranks[k] = m->ranks[place];
    }
}

static mesh_device_mesh *submesh_make(mesh_device_mesh *m, const int *dims, int n)
{
    struct dtensor_state *st = dtensor_state(m->session);
    int size[MESH_MAX_MESH_NDIM];
    const char *names[MESH_MAX_MESH_NDIM];
    for (int i = 0; i < n; i++) {
        size[i] = m->size[dims[i]];
        names[i] = m->name[dims[i]];
    }
    mesh_device_mesh *sub = st ? mesh_bare(m->session, n, size, m->has_names ? names : NULL) : NULL;
    if (!sub) {
        return NULL;
    }
    submesh_ranks(m, dims, sub);
    mesh_locate(sub);
    mesh_device_mesh *equal = mesh_find_equal(st, sub);
    for (int i = 0; i < n; i++) {
        sub->group[i] = m->group[dims[i]];
    }
    if (equal || (sub->is_member && mesh_make_whole(sub) < 0)) {
        device_mesh_free(sub);
        return equal;
    }
    mesh_remember(st, sub);
    return sub;
}

mesh_device_mesh *mesh_submesh(mesh_device_mesh *m, const char *const *dims)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    int picked[MESH_MAX_MESH_NDIM], n = 0;
    int r = !m ? err_set(MESH_EINVAL, "the mesh is NULL") : pick_dims(m, dims, picked, &n);
    if (r < 0) {
        return scope_fail(r);
    }
    mesh_device_mesh *sub = submesh_make(m, picked, n);
    return sub ? sub : scope_fail(err_status());
}

static const char *flat_name(const mesh_device_mesh *sub, const char *name, char *buf, size_t cap)
{
    size_t at = 0;
    if (name) {
        return name;
    }
    for (int i = 0; i < sub->ndim; i++) {
        at += (size_t)snprintf(buf + at, cap - at, "%s%s", i ? "_" : "", sub->name[i]);
    }
    return buf;
}

/* sub as one dim: its ranks in their order, its group of all. */
static mesh_device_mesh *flatten(mesh_device_mesh *sub, const char *name)
{
    struct dtensor_state *st = dtensor_state(sub->session);
    mesh_device_mesh *flat = st ? mesh_bare(sub->session, 1, &sub->n_ranks, &name) : NULL;
    if (!flat) {
        return NULL;
    }
    memcpy(flat->ranks, sub->ranks, (size_t)sub->n_ranks * sizeof sub->ranks[0]);
    mesh_locate(flat);
    mesh_device_mesh *equal = mesh_find_equal(st, flat);
    if (equal) {
        device_mesh_free(flat);
        return equal;
    }
    flat->group[0] = flat->whole = sub->whole;
    mesh_remember(st, flat);
    return flat;
}

mesh_device_mesh *mesh_flatten(mesh_device_mesh *m, const char *const *dims, const char *name)
{
    char joined[MESH_MAX_MESH_NDIM * MESH_NAME_BYTES];
    mesh_device_mesh *sub = mesh_submesh(m, dims);
    if (!sub || !scope_enter(__func__)) {
        return NULL;
    }
    name = flat_name(sub, name, joined, sizeof joined);
    mesh_device_mesh *flat = mesh_check_name(name) < 0 ? NULL : flatten(sub, name);
    return flat ? flat : scope_fail(err_status());
}
