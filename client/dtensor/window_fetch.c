/* client/dtensor/window_fetch.c - the exchange of an operator that looks at few places along a split dim.
 *
 * What a chunk that one rank holds and the places that another wants have in common crosses in one all_to_all_v, and nothing else
 * does.  The ranks that take part differ only in the mesh dims that split the input; where that is one mesh dim they are its group,
 * else the whole mesh makes one call in which every line fills in its own counts.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/collective.h"
#include "dtensor/window.h"
#include "tensor/shape.h"

struct exchange { /* of one input, seen by one rank */
    const struct window *w;
    const mesh_dtensor *x;
    int input, parts, me;
    uint32_t mesh_dims;    /* that split this input; of its parts, the last one fastest */
    int first, last;       /* the parts that take part: all, or only this rank's */
    int64_t extent, width; /* places; elements per place */
    size_t item;
};

/* The coordinate that differs from this rank's by having another part. */
static void coordinate_of(const struct exchange *e, int part, int *ret_coordinate)
{
    const mesh_device_mesh *m = e->x->mesh;
    memcpy(ret_coordinate, m->coordinate, sizeof m->coordinate);
    for (int i = m->ndim - 1; i >= 0; i--) {
        if ((e->mesh_dims >> i & 1U) != 0) {
            ret_coordinate[i] = part % m->size[i];
            part /= m->size[i];
        }
    }
}

static struct chunk held_by(const struct exchange *e, int part)
{
    int at[MESH_MAX_MESH_NDIM];
    coordinate_of(e, part, at);
    return window_chunk(e->x->mesh, e->mesh_dims, at, e->extent);
}

static struct spans wanted_by(const struct exchange *e, int part)
{
    int at[MESH_MAX_MESH_NDIM];
    coordinate_of(e, part, at);
    return window_wanted(e->w, e->input, e->extent, window_chunk(e->x->mesh, e->w->mesh_dims, at, e->w->out_extent));
}

static struct box box_along(mesh_shape s, int d, int64_t offset, int64_t extent)
{
    struct box b = { .ndim = s.ndim };
    memcpy(b.extent, s.dim, sizeof b.extent);
    b.offset[d] = offset;
    b.extent[d] = extent;
    return b;
}

/* What each part gets of mine, one after another. */
static void pack(const struct exchange *e, char *to)
{
    struct chunk mine = held_by(e, e->me);
    const struct mesh_tensor *local = e->x->local;
    for (int part = e->first; part <= e->last; part++) {
        struct spans s = wanted_by(e, part);
        for (int64_t k = 0; k < spans_count(&s); k++) {
            struct chunk c = chunk_overlap(spans_at(&s, k), mine);
            struct box b = box_along(local->shape, e->w->dim, c.offset - mine.offset, c.extent);
            if (c.extent > 0) {
                box_pack(to, local->data, local->shape, &b, e->item);
                to += (size_t)(c.extent * e->width) * e->item;
            }
        }
    }
}

static void unpack(const struct exchange *e, struct mesh_tensor *out, const char *from)
{
    struct spans s = wanted_by(e, e->me);
    for (int part = e->first; part <= e->last; part++) {
        struct chunk held = held_by(e, part);
        int64_t begin = 0;
        for (int64_t k = 0; k < spans_count(&s); k++) {
            struct chunk span = spans_at(&s, k), c = chunk_overlap(span, held);
            struct box b = box_along(out->shape, e->w->dim, begin + c.offset - span.offset, c.extent);
            if (c.extent > 0) {
                box_unpack(out->data, out->shape, from, &b, e->item);
                from += (size_t)(c.extent * e->width) * e->item;
            }
            begin += span.extent;
        }
    }
}

/* The group whose members take part, and this part's place in it. */
static mesh_group *group_of(const struct exchange *e)
{
    const mesh_device_mesh *m = e->x->mesh;
    for (int i = 0; i < m->ndim; i++) {
        if (e->mesh_dims == UINT32_C(1) << i) {
            return m->group[i];
        }
    }
    return m->whole;
}

static size_t place_of(const struct exchange *e, int part)
{
    const mesh_device_mesh *m = e->x->mesh;
    int at[MESH_MAX_MESH_NDIM];
    size_t place = 0;
    if (group_of(e) != m->whole) {
        return (size_t)part;
    }
    coordinate_of(e, part, at);
    for (int i = 0; i < m->ndim; i++) {
        place = place * (size_t)m->size[i] + (size_t)at[i];
    }
    return place;
}

static int swap(const struct exchange *e, const struct mesh_tensor *sent, struct mesh_tensor *got)
{
    mesh_group *group = group_of(e);
    size_t n = group == e->x->mesh->whole ? (size_t)e->x->mesh->n_ranks : (size_t)e->parts;
    size_t *counts = mem_new_array(size_t, 2 * n);
    if (counts == NULL) {
        return err_no_memory(2 * n * sizeof *counts, "the sizes of the parts");
    }
    memset(counts, 0, 2 * n * sizeof *counts);
    struct spans mine = wanted_by(e, e->me);
    for (int part = 0; part < e->parts; part++) {
        struct spans theirs = wanted_by(e, part);
        counts[place_of(e, part)] = (size_t)(spans_overlap(&theirs, held_by(e, e->me)) * e->width);
        counts[n + place_of(e, part)] = (size_t)(spans_overlap(&mine, held_by(e, part)) * e->width);
    }
    struct collective_call call = { .kind = MESH_COMM_ALL_TO_ALL,
                                    .dtype = sent->dtype,
                                    .in_counts = counts,
                                    .out_counts = counts + n,
                                    .in = sent->data,
                                    .out = got->data };
    int r = collective_run(group, &call);
    mem_free(counts);
    return r;
}

static struct exchange exchange_of(const struct window *w, int i, const mesh_dtensor *x)
{
    struct exchange e = {
        .w = w, .x = x, .input = i, .parts = 1, .extent = x->shape.dim[w->dim], .width = 1, .item = dtype_size(x->dtype)
    };
    for (int m = 0; m < x->mesh->ndim; m++) {
        if (window_splits(x, m, w->dim)) {
            e.mesh_dims |= UINT32_C(1) << m;
            e.parts *= x->mesh->size[m];
            e.me = e.me * x->mesh->size[m] + x->mesh->coordinate[m];
        }
    }
    bool is_alone = e.parts == 1 || w->is_local;
    e.first = is_alone ? e.me : 0;
    e.last = is_alone ? e.me : e.parts - 1;
    for (int d = 0; d < x->shape.ndim; d++) {
        e.width *= d == w->dim ? 1 : x->local->shape.dim[d];
    }
    return e;
}

/* Through two dense buffers, of which one does where nothing crosses. */
static int exchange(const struct exchange *e, struct mesh_tensor *out)
{
    int64_t n_sent = 0;
    bool is_alone = e->first == e->last;
    for (int part = e->first; part <= e->last; part++) {
        struct spans s = wanted_by(e, part);
        n_sent += spans_overlap(&s, held_by(e, e->me));
    }
    struct mesh_tensor *sent = tensor_new(MESH_SHAPE(n_sent * e->width), out->dtype), *got = NULL;
    if (sent != NULL) {
        got = is_alone ? tensor_ref(sent) : tensor_new(out->shape, out->dtype);
    }
    int r = got != NULL ? 0 : (int)mesh_last_error()->status;
    if (r == 0) {
        pack(e, sent->data);
        r = is_alone || e->width == 0 ? 0 : swap(e, sent, got);
    }
    if (r == 0) {
        unpack(e, out, got->data);
    }
    tensor_unref(sent);
    tensor_unref(got);
    return r;
}

struct mesh_tensor *window_fetch(const struct window *w, int i, const mesh_dtensor *x)
{
    if (tensor_settle(x->local) < 0) {
        return NULL;
    }
    if (!x->mesh->is_member || w->in[i].map == WINDOW_STAYS) {
        return tensor_ref(x->local);
    }
    struct exchange e = exchange_of(w, i, x);
    struct spans mine = wanted_by(&e, e.me);
    mesh_shape shape = x->local->shape;
    shape.dim[w->dim] = mine.length;
    struct mesh_tensor *out = tensor_new(shape, x->dtype);
    if (out != NULL && exchange(&e, out) < 0) {
        tensor_unref(out);
        return NULL;
    }
    return out;
}
