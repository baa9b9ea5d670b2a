/* client/dtensor/device_mesh.c - makes meshes: checking, agreement of all ranks, groups, sub-meshes.
 *
 * Only mesh_init_device_mesh() talks to anyone: every member posts the same descriptor and waits for the others.  Groups and
 * sub-meshes are arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/device_mesh.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "core/scope.h"
#include "dtensor/state.h"

void device_mesh_free(mesh_device_mesh *m)
{
    if (!m) {
        return;
    }
    for (int i = 0; i < m->ndim; i++) {
        if (m->owns_group[i]) {
            group_free(m->group[i]);
        }
    }
    if (m->owns_whole) {
        group_free(m->whole);
    }
    mem_free(m->ranks);
    mem_free(m);
}

static int check_device(const char *device)
{
    bool is_word = device && device[0];
    for (const char *c = device; is_word && *c; c++) {
        is_word = isalpha((unsigned char)*c) != 0;
    }
    if (!is_word) {
        return err_set(MESH_EINVAL,
                       "device type \"%.40s\" must be letters only, as \"cpu\": an index does not belong here",
                       device ? device : "(null)");
    }
    return 0;
}

static int check_shape(mesh_shape shape, int world_size)
{
    if (shape.ndim < 1 || shape.ndim > MESH_MAX_MESH_NDIM) {
        return err_set(MESH_EINVAL, "a mesh has 1 to %d dims, not %d", MESH_MAX_MESH_NDIM, shape.ndim);
    }
    int64_t product = 1;
    for (int i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] < 1 || shape.dim[i] > INT32_MAX / product) {
            return err_set(MESH_EINVAL,
                           "mesh dim %d has size %lld: sizes are positive, their product is the world's size, %d", i,
                           (long long)shape.dim[i], world_size);
        }
        product *= shape.dim[i];
    }
    if (product != world_size) {
        return err_set(
            MESH_EINVAL,
            "the mesh has %lld ranks but the job has %d: choose sizes whose product is %d, or start %lld ranks",
            (long long)product, world_size, world_size, (long long)product);
    }
    return 0;
}

static bool is_name(const char *name)
{
    size_t n = 0;
    for (; name[n]; n++) {
        if (!isalnum((unsigned char)name[n]) && !strchr("_-.", name[n])) {
            return false;
        }
    }
    return n > 0 && n < MESH_NAME_BYTES && !isdigit((unsigned char)name[0]) && name[0] != '-';
}

static int check_names(const char *const *names, int ndim)
{
    int n = 0;
    for (; names && names[n]; n++) {
        if (n >= ndim) {
            return err_set(MESH_EINVAL, "more names than the mesh's %d dims", ndim);
        }
        if (!is_name(names[n])) {
            return err_set(MESH_EINVAL,
                           "mesh dim name \"%.40s\": use at most %d letters, digits, _ - . and begin with a letter",
                           names[n], MESH_NAME_BYTES - 1);
        }
        for (int i = 0; i < n; i++) {
            if (strcmp(names[i], names[n]) == 0) {
                return err_set(MESH_EINVAL, "mesh dim name \"%s\" stands for dims %d and %d: names must differ",
                               names[n], i, n);
            }
        }
    }
    if (names && n != ndim) {
        return err_set(MESH_EINVAL, "%d names for a mesh of %d dims: one each, or none", n, ndim);
    }
    return 0;
}

static uint64_t identity(const mesh_device_mesh *m)
{
    uint64_t h = hash_bytes(m->size, (size_t)m->ndim * sizeof m->size[0], 0);
    h = hash_bytes(m->name, sizeof m->name, h);
    return hash_bytes(m->ranks, (size_t)m->n_ranks * sizeof m->ranks[0], h);
}

static bool is_equal(const mesh_device_mesh *a, const mesh_device_mesh *b)
{
    return a->ndim == b->ndim && a->n_ranks == b->n_ranks && memcmp(a->size, b->size, sizeof a->size) == 0 &&
           memcmp(a->name, b->name, sizeof a->name) == 0 &&
           memcmp(a->ranks, b->ranks, (size_t)a->n_ranks * sizeof a->ranks[0]) == 0;
}

/* A mesh without groups.  names may be NULL.  NULL: error set. */
static mesh_device_mesh *mesh_new(struct mesh_session *s, int ndim, const int *size, const char *const *names)
{
    mesh_device_mesh *m = mem_new(mesh_device_mesh);
    if (!m) {
        err_no_memory(sizeof *m, "a device mesh");
        return NULL;
    }
    m->session = s;
    m->state = dtensor_state(s);
    m->ndim = ndim;
    m->n_ranks = 1;
    m->has_names = names != NULL;
    for (int i = 0; i < ndim; i++) {
        m->size[i] = size[i];
        m->n_ranks *= size[i];
        if (names) {
            snprintf(m->name[i], sizeof m->name[i], "%s", names[i]);
        }
    }
    m->ranks = mem_new_array(int, (size_t)m->n_ranks);
    if (!m->ranks) {
        err_no_memory((size_t)m->n_ranks * sizeof(int), "the ranks of a device mesh");
        device_mesh_free(m);
        return NULL;
    }
    return m;
}

static void locate(mesh_device_mesh *m)
{
    for (int place = 0; place < m->n_ranks; place++) {
        if (m->ranks[place] == m->session->rank) {
            m->is_member = true;
            mesh_coordinate_of(m, place, m->coordinate);
        }
    }
    m->id = identity(m);
}

/* The ranks that differ from this one in mesh dim i only, in order. */
static void line_ranks(const mesh_device_mesh *m, int i, int *ret_ranks)
{
    int stride = 1, place = 0;
    for (int j = m->ndim - 1; j >= 0; j--) {
        if (j > i) {
            stride *= m->size[j];
        }
    }
    for (int j = 0; j < m->ndim; j++) {
        place = place * m->size[j] + (j == i ? 0 : m->coordinate[j]);
    }
    for (int k = 0; k < m->size[i]; k++) {
        ret_ranks[k] = m->ranks[place + k * stride];
    }
}

static const char *group_name(const mesh_device_mesh *m, int i, char *buf, size_t cap)
{
    if (m->has_names) {
        snprintf(buf, cap, "%s", m->name[i]);
    } else {
        snprintf(buf, cap, "mesh[%d]", i);
    }
    return buf;
}

static int make_whole(mesh_device_mesh *m)
{
    if (m->ndim == 1) {
        m->whole = m->group[0];
        return 0;
    }
    m->whole = group_new(m->session, m->ranks, m->n_ranks, "mesh");
    m->owns_whole = m->whole != NULL;
    return m->whole ? 0 : (int)mesh_last_error()->status;
}

static int make_groups(mesh_device_mesh *m)
{
    int *line = mem_new_array(int, (size_t)m->n_ranks);
    if (!line) {
        return err_no_memory((size_t)m->n_ranks * sizeof(int), "the groups of a device mesh");
    }
    int r = 0;
    for (int i = 0; r == 0 && i < m->ndim; i++) {
        char name[MESH_NAME_BYTES];
        line_ranks(m, i, line);
        m->group[i] = group_new(m->session, line, m->size[i], group_name(m, i, name, sizeof name));
        m->owns_group[i] = m->group[i] != NULL;
        r = m->group[i] ? 0 : (int)mesh_last_error()->status;
    }
    mem_free(line);
    return r < 0 ? r : make_whole(m);
}

static mesh_device_mesh *find_equal(struct dtensor_state *st, const mesh_device_mesh *m)
{
    pthread_mutex_lock(&st->lock);
    mesh_device_mesh *found = st->meshes;
    while (found && !is_equal(found, m)) {
        found = found->next;
    }
    pthread_mutex_unlock(&st->lock);
    return found;
}

static void remember(struct dtensor_state *st, mesh_device_mesh *m)
{
    pthread_mutex_lock(&st->lock);
    m->next = st->meshes;
    st->meshes = m;
    pthread_mutex_unlock(&st->lock);
}

/* Blocks until every rank of the mesh posted the same description. */
static int agree(struct dtensor_state *st, const mesh_device_mesh *m, const char *device)
{
    struct mesh_session *s = m->session;
    char key[48], text[320];
    pthread_mutex_lock(&st->lock);
    snprintf(key, sizeof key, "device_mesh/%d", st->n_made++);
    pthread_mutex_unlock(&st->lock);
    int at = snprintf(text, sizeof text, "device=%.32s shape=", device);
    for (int i = 0; i < m->ndim; i++) {
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", i ? "x" : "", m->size[i]);
    }
    at += snprintf(text + at, sizeof text - (size_t)at, " names=");
    for (int i = 0; i < m->ndim; i++) {
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", i && m->has_names ? "," : "", m->name[i]);
    }
    snprintf(text + at, sizeof text - (size_t)at, " ranks=0-%d", m->n_ranks - 1);
    return s->control->ops->agree(s->control, key, m->ranks, m->n_ranks, text, session_timeout(s, 0));
}

static mesh_device_mesh *make(struct dtensor_state *st, struct mesh_session *s, const char *device, mesh_shape shape,
                              const char *const *names)
{
    int size[MESH_MAX_MESH_NDIM];
    for (int i = 0; i < shape.ndim; i++) {
        size[i] = (int)shape.dim[i];
    }
    mesh_device_mesh *m = mesh_new(s, shape.ndim, size, names);
    if (!m) {
        return NULL;
    }
    for (int i = 0; i < m->n_ranks; i++) {
        m->ranks[i] = i;
    }
    locate(m);
    if (agree(st, m, device) < 0) {
        device_mesh_free(m);
        return NULL;
    }
    mesh_device_mesh *equal = find_equal(st, m);
    if (equal || make_groups(m) < 0) {
        device_mesh_free(m);
        return equal;
    }
    remember(st, m);
    return m;
}

mesh_device_mesh *mesh_init_device_mesh(const char *device_type, mesh_shape shape, const char *const *names)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    struct mesh_session *s = session_require();
    struct dtensor_state *st = s ? dtensor_state(s) : NULL;
    if (!st) {
        return scope_fail((int)mesh_last_error()->status);
    }
    int r = check_device(device_type);
    r = r < 0 ? r : check_shape(shape, s->world_size);
    r = r < 0 ? r : check_names(names, shape.ndim);
    if (r < 0) {
        return scope_fail(r);
    }
    mesh_device_mesh *m = make(st, s, device_type, shape, names);
    return m ? m : scope_fail((int)mesh_last_error()->status);
}

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
            return (int)mesh_last_error()->status;
        }
        ret_dims[n] = i;
    }
    *ret_n = n;
    return n > 0 ? 0 : err_set(MESH_EINVAL, "a sub-mesh needs at least one dim: name it");
}

/* The ranks of the sub-mesh: those coordinates vary, the others are this rank's own. */
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
    mesh_device_mesh *sub = st ? mesh_new(m->session, n, size, m->has_names ? names : NULL) : NULL;
    if (!sub) {
        return NULL;
    }
    submesh_ranks(m, dims, sub);
    locate(sub);
    mesh_device_mesh *equal = find_equal(st, sub);
    for (int i = 0; i < n; i++) {
        sub->group[i] = m->group[dims[i]];
    }
    if (equal || make_whole(sub) < 0) {
        device_mesh_free(sub);
        return equal;
    }
    remember(st, sub);
    return sub;
}

mesh_device_mesh *mesh_submesh(mesh_device_mesh *m, const char *const *dims)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    char text[MESH_TEXT_BYTES];
    int picked[MESH_MAX_MESH_NDIM], n = 0;
    int r = !m              ? err_set(MESH_EINVAL, "the mesh is NULL")
            : !m->is_member ? err_set(MESH_ENOTMEMBER, "rank %d is not in mesh %s", m->session->rank,
                                      mesh_text(m, text, sizeof text))
                            : pick_dims(m, dims, picked, &n);
    if (r < 0) {
        return scope_fail(r);
    }
    mesh_device_mesh *sub = submesh_make(m, picked, n);
    return sub ? sub : scope_fail((int)mesh_last_error()->status);
}
