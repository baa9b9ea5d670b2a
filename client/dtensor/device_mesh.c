/* client/dtensor/device_mesh.c - makes meshes: checking, agreement of all ranks, groups.
 *
 * Only mesh_init_device_mesh() talks to anyone: every member posts the same descriptor and waits for the others.
 * Groups and meshes of given ranks are arithmetic.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/mesh_make.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
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
                       device ? device : "(NULL)");
    }
    if (strcmp(device, "cpu") != 0) {
        return err_set(MESH_EUNSUPPORTED, "device type \"%.40s\" is not supported: tensors live on \"cpu\"", device);
    }
    return 0;
}

static int check_sizes(mesh_shape shape, int64_t *ret_product)
{
    if (shape.ndim < 1 || shape.ndim > MESH_MAX_MESH_NDIM) {
        return err_set(MESH_EINVAL, "a mesh has 1 to %d dims, not %d", MESH_MAX_MESH_NDIM, shape.ndim);
    }
    int64_t product = 1;
    for (int i = 0; i < shape.ndim; i++) {
        if (shape.dim[i] < 1 || shape.dim[i] > INT32_MAX / product) {
            return err_set(MESH_EINVAL,
                           "mesh dim %d has size %lld: sizes are positive, their product is the number of ranks", i,
                           (long long)shape.dim[i]);
        }
        product *= shape.dim[i];
    }
    *ret_product = product;
    return 0;
}

static int check_shape(mesh_shape shape, int world_size)
{
    int64_t product = 0;
    int r = check_sizes(shape, &product);
    if (r == 0 && product != world_size) {
        return err_set(
            MESH_EINVAL,
            "the mesh has %lld ranks but the job has %d: choose sizes whose product is %d, start %lld ranks, "
            "or name the ranks with mesh_new_device_mesh()",
            (long long)product, world_size, world_size, (long long)product);
    }
    return r;
}

/* Each rank of the world at most once. */
static int check_ranks(mesh_shape shape, const int *ranks, int world_size)
{
    int64_t n = 0;
    int r = check_sizes(shape, &n);
    if (r < 0 || !ranks) {
        return r < 0 ? r : err_set(MESH_EINVAL, "the ranks are NULL: %lld are needed, row-major", (long long)n);
    }
    if (n > world_size) {
        return err_set(MESH_EINVAL, "the mesh has %lld ranks but the job has %d", (long long)n, world_size);
    }
    for (int64_t i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= world_size) {
            return err_set(MESH_EINVAL, "rank %d at place %lld of the mesh: the job has ranks 0 to %d", ranks[i],
                           (long long)i, world_size - 1);
        }
        for (int64_t j = 0; j < i; j++) {
            if (ranks[j] == ranks[i]) {
                return err_set(MESH_EINVAL, "rank %d stands at places %lld and %lld of the mesh: once is enough",
                               ranks[i], (long long)j, (long long)i);
            }
        }
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
    return n > 0 && n < MESH_NAME_BYTES && isalpha((unsigned char)name[0]);
}

int mesh_check_name(const char *name)
{
    if (!is_name(name)) {
        return err_set(MESH_EINVAL,
                       "mesh dim name \"%.40s\": use at most %d letters, digits, _ - . and begin with a letter", name,
                       MESH_NAME_BYTES - 1);
    }
    return 0;
}

static int check_names(const char *const *names, int ndim)
{
    int n = 0;
    for (; names && names[n]; n++) {
        if (n >= ndim) {
            return err_set(MESH_EINVAL, "more names than the mesh's %d dims", ndim);
        }
        if (mesh_check_name(names[n]) < 0) {
            return MESH_EINVAL;
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

mesh_device_mesh *mesh_bare(struct mesh_session *s, int ndim, const int *size, const char *const *names)
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

void mesh_locate(mesh_device_mesh *m)
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

int mesh_make_whole(mesh_device_mesh *m)
{
    if (m->ndim == 1) {
        m->whole = m->group[0];
        return 0;
    }
    m->whole = group_new(m->session, m->ranks, m->n_ranks, "mesh");
    m->owns_whole = m->whole != NULL;
    return m->whole ? 0 : err_status();
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
        r = m->group[i] ? 0 : err_status();
    }
    mem_free(line);
    return r < 0 ? r : mesh_make_whole(m);
}

mesh_device_mesh *mesh_find_equal(struct dtensor_state *st, const mesh_device_mesh *m)
{
    pthread_mutex_lock(&st->lock);
    mesh_device_mesh *found = st->meshes;
    while (found && !is_equal(found, m)) {
        found = found->next;
    }
    pthread_mutex_unlock(&st->lock);
    return found;
}

void mesh_remember(struct dtensor_state *st, mesh_device_mesh *m)
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

/* What make() and a mesh of given ranks share: row-major ranks, or NULL for 0, 1, ... */
static mesh_device_mesh *with_ranks(struct mesh_session *s, mesh_shape shape, const int *ranks,
                                    const char *const *names)
{
    int size[MESH_MAX_MESH_NDIM];
    for (int i = 0; i < shape.ndim; i++) {
        size[i] = (int)shape.dim[i];
    }
    mesh_device_mesh *m = mesh_bare(s, shape.ndim, size, names);
    if (!m) {
        return NULL;
    }
    for (int i = 0; i < m->n_ranks; i++) {
        m->ranks[i] = ranks ? ranks[i] : i;
    }
    mesh_locate(m);
    return m;
}

/* m, or the equal mesh made before; takes m.  NULL: error set. */
static mesh_device_mesh *finish(struct dtensor_state *st, mesh_device_mesh *m)
{
    mesh_device_mesh *equal = mesh_find_equal(st, m);
    if (equal || (m->is_member && make_groups(m) < 0)) {
        device_mesh_free(m);
        return equal;
    }
    mesh_remember(st, m);
    return m;
}

static bool has_all(const mesh_device_mesh *m, const mesh_device_mesh *of)
{
    bool has = true;
    for (int i = 0; has && i < of->n_ranks; i++) {
        has = false;
        for (int k = 0; !has && k < m->n_ranks; k++) {
            has = m->ranks[k] == of->ranks[i];
        }
    }
    return has;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The ranks of both, each once, ascending; returns how many. */
static int merge_ranks(const mesh_device_mesh *a, const mesh_device_mesh *b, int *ret_ranks)
{
    int n = 0;
    memcpy(ret_ranks, a->ranks, (size_t)a->n_ranks * sizeof(int));
    memcpy(ret_ranks + a->n_ranks, b->ranks, (size_t)b->n_ranks * sizeof(int));
    qsort(ret_ranks, (size_t)(a->n_ranks + b->n_ranks), sizeof(int), by_number);
    for (int i = 0; i < a->n_ranks + b->n_ranks; i++) {
        if (n == 0 || ret_ranks[n - 1] != ret_ranks[i]) {
            ret_ranks[n++] = ret_ranks[i];
        }
    }
    return n;
}

mesh_device_mesh *mesh_of_both(mesh_device_mesh *a, mesh_device_mesh *b)
{
    if (has_all(a, b) || has_all(b, a)) {
        return has_all(a, b) ? a : b;
    }
    size_t most = (size_t)(a->n_ranks + b->n_ranks);
    int *ranks = mem_new_array(int, most);
    if (!ranks) {
        err_no_memory(most * sizeof(int), "the ranks of two meshes");
        return NULL;
    }
    int n = merge_ranks(a, b, ranks);
    mesh_device_mesh *m = with_ranks(a->session, MESH_SHAPE(n), ranks, NULL);
    mem_free(ranks);
    return m ? finish(a->state, m) : NULL;
}

/* The session's state; NULL: the scope has failed. */
static struct dtensor_state *enter(const char *function, struct mesh_session **ret_session)
{
    if (!scope_enter(function)) {
        return NULL;
    }
    struct mesh_session *s = session_require();
    struct dtensor_state *st = s ? dtensor_state(s) : NULL;
    if (!st) {
        return scope_fail(err_status());
    }
    *ret_session = s;
    return st;
}

mesh_device_mesh *mesh_init_device_mesh(const char *device_type, mesh_shape shape, const char *const *names)
{
    struct mesh_session *s = NULL;
    struct dtensor_state *st = enter(__func__, &s);
    if (!st) {
        return NULL;
    }
    int r = check_device(device_type);
    r = r < 0 ? r : check_shape(shape, s->world_size);
    r = r < 0 ? r : check_names(names, shape.ndim);
    mesh_device_mesh *m = r < 0 ? NULL : with_ranks(s, shape, NULL, names);
    if (m && agree(st, m, device_type) < 0) {
        device_mesh_free(m);
        m = NULL;
    }
    m = m ? finish(st, m) : NULL;
    return m ? m : scope_fail(err_status());
}

mesh_device_mesh *mesh_new_device_mesh(const char *device_type, mesh_shape shape, const int *ranks,
                                       const char *const *names)
{
    struct mesh_session *s = NULL;
    struct dtensor_state *st = enter(__func__, &s);
    if (!st) {
        return NULL;
    }
    int r = check_device(device_type);
    r = r < 0 ? r : check_ranks(shape, ranks, s->world_size);
    r = r < 0 ? r : check_names(names, shape.ndim);
    mesh_device_mesh *m = r < 0 ? NULL : with_ranks(s, shape, ranks, names);
    m = m ? finish(st, m) : NULL;
    return m ? m : scope_fail(err_status());
}
