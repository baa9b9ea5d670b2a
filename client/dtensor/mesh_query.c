/* client/dtensor/mesh_query.c - answers about a mesh: coordinates, ranks, groups, names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/device_mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/scope.h"

const char *mesh_text(const mesh_device_mesh *m, char *buf, size_t cap)
{
    char text[MESH_TEXT_BYTES] = "(";
    size_t at = 1;
    for (int i = 0; i < m->ndim; i++) {
        const char *comma = i ? ", " : "", *equals = m->has_names ? "=" : "";
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s%d", comma, m->name[i], equals, m->size[i]);
    }
    snprintf(text + at, sizeof text - at, ")");
    snprintf(buf, cap, "%s", text);
    return buf;
}

void mesh_coordinate_of(const mesh_device_mesh *m, int place, int *ret_coordinate)
{
    for (int i = m->ndim - 1; i >= 0; i--) {
        ret_coordinate[i] = place % m->size[i];
        place /= m->size[i];
    }
}

static const char *names_text(const mesh_device_mesh *m, char *buf, size_t cap)
{
    size_t at = 0;
    buf[0] = 0;
    for (int i = 0; i < m->ndim && at < cap; i++) {
        int n = m->has_names ? snprintf(buf + at, cap - at, "%s%s", i ? ", " : "", m->name[i])
                             : snprintf(buf + at, cap - at, "%s%d", i ? ", " : "", i);
        at += n > 0 ? (size_t)n : 0;
    }
    return buf;
}

static int dim_by_number(const mesh_device_mesh *m, const char *dim)
{
    char *end = NULL;
    long i = strtol(dim, &end, 10);
    if (end == dim || *end != 0 || i < -m->ndim || i >= m->ndim) {
        return -1;
    }
    return (int)(i < 0 ? i + m->ndim : i);
}

int mesh_dim_index(const mesh_device_mesh *m, const char *dim)
{
    char mesh[MESH_TEXT_BYTES], names[MESH_TEXT_BYTES];
    if (!dim && m->ndim == 1) {
        return 0;
    }
    if (!dim) {
        err_set(MESH_EINVAL, "mesh %s has %d dimensions: say which (%s)", mesh_text(m, mesh, sizeof mesh), m->ndim,
                names_text(m, names, sizeof names));
        return -1;
    }
    for (int i = 0; i < m->ndim; i++) {
        if (m->has_names && strcmp(m->name[i], dim) == 0) {
            return i;
        }
    }
    int i = dim_by_number(m, dim);
    if (i < 0) {
        err_set(MESH_ENOTFOUND, "mesh %s has no dimension \"%.40s\": it has %s", mesh_text(m, mesh, sizeof mesh), dim,
                names_text(m, names, sizeof names));
    }
    return i;
}

/* The mesh of a public call: NULL when the call must do nothing. */
static bool enter(const char *function, const void *m)
{
    if (!scope_enter(function)) {
        return false;
    }
    if (!m) {
        scope_fail(err_set(MESH_EINVAL, "the mesh is NULL"));
        return false;
    }
    return true;
}

static int require_member(const mesh_device_mesh *m)
{
    char mesh[MESH_TEXT_BYTES];
    return m->is_member ? 0
                        : err_set(MESH_ENOTMEMBER, "rank %d is not in mesh %s", m->session->rank,
                                  mesh_text(m, mesh, sizeof mesh));
}

/* A failed status marks the scope; returned as it is. */
static int finish(int r)
{
    if (r < 0) {
        scope_fail(r);
    }
    return r;
}

int mesh_mesh_ndim(const mesh_device_mesh *m)
{
    return enter(__func__, m) ? m->ndim : err_status();
}

int mesh_mesh_size(const mesh_device_mesh *m, const char *dim)
{
    if (!enter(__func__, m)) {
        return err_status();
    }
    if (!dim) {
        return m->n_ranks;
    }
    int i = mesh_dim_index(m, dim);
    return i < 0 ? finish(err_status()) : m->size[i];
}

int mesh_get_rank(const mesh_device_mesh *m, const int *coordinate)
{
    if (!enter(__func__, m)) {
        return err_status();
    }
    if (!coordinate) {
        return m->session->rank;
    }
    int place = 0;
    for (int i = 0; i < m->ndim; i++) {
        if (coordinate[i] < 0 || coordinate[i] >= m->size[i]) {
            char mesh[MESH_TEXT_BYTES];
            return finish(err_set(MESH_EINVAL, "coordinate %d of mesh dim %d is not in 0..%d (mesh %s)", coordinate[i],
                                  i, m->size[i] - 1, mesh_text(m, mesh, sizeof mesh)));
        }
        place = place * m->size[i] + coordinate[i];
    }
    return m->ranks[place];
}

int mesh_get_local_rank(const mesh_device_mesh *m, const char *dim)
{
    if (!enter(__func__, m)) {
        return err_status();
    }
    int i = mesh_dim_index(m, dim);
    if (i < 0) {
        return finish(err_status());
    }
    int r = require_member(m);
    return r < 0 ? finish(r) : m->coordinate[i];
}

const int *mesh_get_coordinate(const mesh_device_mesh *m)
{
    return enter(__func__, m) && m->is_member ? m->coordinate : NULL;
}

mesh_group *mesh_get_group(const mesh_device_mesh *m, const char *dim)
{
    if (!enter(__func__, m)) {
        return NULL;
    }
    int i = mesh_dim_index(m, dim);
    if (i < 0) {
        return scope_fail(err_status());
    }
    int r = require_member(m);
    return r < 0 ? scope_fail(r) : m->group[i];
}

int mesh_get_all_groups(const mesh_device_mesh *m, mesh_group **groups)
{
    if (!enter(__func__, m)) {
        return err_status();
    }
    int r = groups ? require_member(m) : err_set(MESH_EINVAL, "groups is NULL: give room for %d", m->ndim);
    if (r < 0) {
        return finish(r);
    }
    for (int i = 0; i < m->ndim; i++) {
        groups[i] = m->group[i];
    }
    return 0;
}

mesh_placements mesh_placements_named(const mesh_device_mesh *m, const mesh_named_placement *list)
{
    mesh_placements p = { .n = 0 }, none = { .n = 0 };
    if (!enter(__func__, m)) {
        return none;
    }
    for (int i = 0; i < m->ndim; i++) {
        p.at[i] = mesh_replicate();
    }
    uint32_t named = 0;
    for (int k = 0; list && list[k].dim; k++) {
        int i = mesh_dim_index(m, list[k].dim);
        if (i >= 0 && (named & 1U << i)) {
            i = -1;
            err_set(MESH_EINVAL, "mesh dim \"%.40s\" is placed twice", list[k].dim);
        }
        if (i < 0) {
            (void)finish(err_status());
            return none;
        }
        named |= 1U << i;
        p.at[i] = list[k].placement;
    }
    p.n = m->ndim;
    return p;
}
