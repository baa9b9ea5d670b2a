/* client/dtensor/distribute.c - from one whole tensor to its parts on the ranks of a mesh.
 *
 * mesh_distribute_tensor() works from the first mesh dim to the last.  Before dim i, the piece under the placements of
 * dims 0..i-1 is right on every rank whose coordinates i, i+1, ... are the source's; the line of dim i through such a
 * rank spreads it: a broadcast, or one message with each rank's part.  So a rank only ever receives what it needs, and
 * nobody's data but those of the rank at the source count.  A pending reduction needs no traffic: the value stays at
 * the source.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/create.h>

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "comm/collective.h"
#include "core/scope.h"
#include "dtensor/line.h"
#include "dtensor/redistribute.h"
#include "tensor/shape.h"

struct spread { /* one distribution, seen by one rank */
    mesh_device_mesh *mesh;
    mesh_shape shape;
    mesh_dtype dtype;
    mesh_placements placements;
    int source; /* whose data win: the coordinate of every mesh dim */
};

/* This rank holds the element that changes nothing: some pending reduction has its value elsewhere. */
static bool is_neutral(const struct spread *s, mesh_reduce_op *ret_op)
{
    for (int i = 0; i < s->mesh->ndim; i++) {
        const mesh_placement *p = &s->placements.at[i];
        if (p->kind == MESH_IS_PARTIAL && p->op != MESH_AVG && s->mesh->coordinate[i] != s->source) {
            *ret_op = p->op;
            return true;
        }
    }
    return false;
}

static struct mesh_tensor *neutral(const struct spread *s, mesh_reduce_op op)
{
    mesh_shape local = layout_local_shape(s->shape, s->mesh->size, s->mesh->coordinate, &s->placements);
    return tensor_identity(local, s->dtype, op);
}

/* The shape under the placements of mesh dims 0..n-1 only. */
static mesh_shape shape_after(const struct spread *s, int n)
{
    mesh_placements p = s->placements;
    for (int i = n; i < p.n; i++) {
        p.at[i] = mesh_replicate();
    }
    return layout_local_shape(s->shape, s->mesh->size, s->mesh->coordinate, &p);
}

static struct mesh_tensor *receive_whole(const struct spread *s, int i, struct mesh_tensor *t)
{
    bool is_root = s->mesh->coordinate[i] == s->source;
    mesh_shape shape = shape_after(s, i);
    struct mesh_tensor *out = is_root ? tensor_ref(t) : tensor_new(shape, s->dtype);
    if (!out) {
        return NULL;
    }
    struct collective_call call = {
        .kind = MESH_COMM_BROADCAST, .dtype = s->dtype, .root = s->source, .count = (size_t)out->n, .out = out->data
    };
    if (collective_run(s->mesh->group[i], &call) < 0) {
        tensor_unref(out);
        return NULL;
    }
    return out;
}

/* Packs each rank's part of t, one after another. */
static struct mesh_tensor *pack_for_line(const struct spread *s, int i, struct mesh_tensor *t, size_t *ret_counts)
{
    struct line l = { t->shape, s->placements.at[i], s->mesh->size[i], dtype_size(s->dtype) };
    struct mesh_tensor *in = tensor_new(t->shape, s->dtype);
    if (in) {
        line_counts(&l, ret_counts);
        line_pack_all(&l, in->data, t->data);
    }
    return in;
}

static struct mesh_tensor *scatter(const struct spread *s, int i, struct mesh_tensor *in, size_t *counts)
{
    int parts = s->mesh->size[i];
    struct mesh_tensor *out = tensor_new(shape_after(s, i + 1), s->dtype);
    if (!out) {
        return NULL;
    }
    counts[parts + s->source] = (size_t)out->n; /* from the source, nothing from the others */
    struct collective_call call = { .kind = MESH_COMM_ALL_TO_ALL,
                                    .dtype = s->dtype,
                                    .in_counts = counts,
                                    .out_counts = counts + parts,
                                    .in = in ? in->data : NULL,
                                    .out = out->data };
    if (collective_run(s->mesh->group[i], &call) < 0) {
        tensor_unref(out);
        return NULL;
    }
    return out;
}

static struct mesh_tensor *receive_part(const struct spread *s, int i, struct mesh_tensor *t)
{
    int parts = s->mesh->size[i];
    bool is_root = s->mesh->coordinate[i] == s->source;
    size_t bytes = 2 * (size_t)parts * sizeof(size_t);
    size_t *counts = mem_zalloc(bytes);
    if (!counts) {
        err_no_memory(bytes, "the sizes of the parts");
        return NULL;
    }
    struct mesh_tensor *in = is_root ? pack_for_line(s, i, t, counts) : NULL;
    struct mesh_tensor *out = in || !is_root ? scatter(s, i, in, counts) : NULL;
    tensor_unref(in);
    mem_free(counts);
    return out;
}

static bool joins(const struct spread *s, int i)
{
    for (int j = i + 1; j < s->mesh->ndim; j++) {
        if (s->mesh->coordinate[j] != s->source) {
            return false;
        }
    }
    return s->mesh->size[i] > 1;
}

static struct mesh_tensor *from_origin(const struct spread *s, const struct mesh_tensor *source)
{
    mesh_reduce_op op;
    if (is_neutral(s, &op)) {
        return neutral(s, op); /* its whole line is: nobody waits for it */
    }
    struct mesh_tensor *t = tensor_view(source->data, source->shape, source->dtype);
    for (int i = 0; t && i < s->mesh->ndim; i++) {
        const mesh_placement *p = &s->placements.at[i];
        if (!joins(s, i) || (p->kind == MESH_IS_PARTIAL && p->op != MESH_AVG)) {
            continue;
        }
        struct mesh_tensor *next = placement_is_shard(*p) ? receive_part(s, i, t) : receive_whole(s, i, t);
        tensor_unref(t);
        t = next;
    }
    return t;
}

static struct mesh_tensor *own_slice(const struct spread *s, const struct mesh_tensor *source)
{
    mesh_reduce_op op;
    if (is_neutral(s, &op)) {
        return neutral(s, op);
    }
    struct box_walk w;
    box_walk_first(&w, s->shape, s->mesh->size, s->mesh->coordinate, &s->placements);
    mesh_shape local = layout_local_shape(s->shape, s->mesh->size, s->mesh->coordinate, &s->placements);
    struct mesh_tensor *out = tensor_new(local, s->dtype);
    if (out) {
        layout_pack(out->data, source->data, &w, source->shape, dtype_size(s->dtype));
    }
    return out;
}

#define EVERYONE (-1)

static int check_source(const mesh_device_mesh *m, int source)
{
    for (int i = 0; i < m->ndim; i++) {
        if (source < 0 || source >= m->size[i]) {
            return err_set(MESH_EINVAL, "distribute_tensor: source %d is no coordinate of mesh dim %d: 0..%d", source,
                           i, m->size[i] - 1);
        }
    }
    return 0;
}

static mesh_dtensor *distribute(const mesh_tensor *t, mesh_device_mesh *m, mesh_placements p, int source)
{
    bool same_everywhere = source == EVERYONE;
    const char *what = same_everywhere ? "distribute_same" : "distribute_tensor";
    if (!t || !m) {
        return scope_fail(err_set(MESH_EINVAL, "%s: the %s is NULL", what, t ? "mesh" : "tensor"));
    }
    int r = placements_check(what, t->shape, t->dtype, m->ndim, &p);
    r = r < 0 || same_everywhere ? r : check_source(m, source);
    if (r < 0) {
        return scope_fail(r);
    }
    struct spread s = { .mesh = m, .shape = t->shape, .dtype = t->dtype, .placements = p };
    s.source = same_everywhere ? 0 : source;
    struct mesh_tensor *local = !m->is_member     ? tensor_new(MESH_SHAPE(0), t->dtype)
                                : same_everywhere ? own_slice(&s, t)
                                                  : from_origin(&s, t);
    local = tensor_detached(local, t);
    mesh_dtensor *x = local ? dtensor_new(m, t->shape, t->dtype, &p, local) : NULL;
    return x ? x : scope_fail(err_status());
}

mesh_dtensor *mesh_distribute_tensor(const mesh_tensor *t, mesh_device_mesh *m, mesh_placements p)
{
    return scope_enter(__func__) ? distribute(t, m, p, 0) : NULL;
}

mesh_dtensor *mesh_distribute_same(const mesh_tensor *t, mesh_device_mesh *m, mesh_placements p)
{
    return scope_enter(__func__) ? distribute(t, m, p, EVERYONE) : NULL;
}

mesh_dtensor *mesh_distribute_tensor_from(const mesh_tensor *t, mesh_device_mesh *m, mesh_placements p, int source)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    /* below 0 is nobody */
    return distribute(t, m, p, source == EVERYONE ? EVERYONE - 1 : source);
}
