/* client/dtensor/window_fetch.c - the exchange of an operator that looks at few places along a split dim.
 *
 * What a chunk that one rank holds and the places that another wants have in common crosses in one all_to_all_v, and
 * nothing else does.
 * SPDX-License-Identifier: Apache-2.0 */

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "dtensor/window.h"
#include "tensor/shape.h"

struct exchange { /* of one input, seen by one rank */
    const struct window *w;
    const struct window_input *from;
    int input;
    struct sharers sharers;
    int first, last;       /* the parts that take part: all, or only this rank's */
    int64_t extent, width; /* places; elements per place */
    size_t item;
};

static struct chunk held_by(const struct exchange *e, int part)
{
    return sharers_chunk(&e->sharers, part, e->extent);
}

static struct spans wanted_by(const struct exchange *e, int part)
{
    int at[MESH_MAX_MESH_NDIM];
    sharers_coordinate(&e->sharers, part, at);
    struct chunk out = sharers_chunk_at(e->from->x->mesh, e->w->mesh_dims, at, e->w->out_extent);
    return window_wanted(e->w, e->input, e->extent, out);
}

/* What each part gets of mine, one after another. */
static void pack(const struct exchange *e, char *to)
{
    struct chunk mine = held_by(e, e->sharers.me);
    const struct mesh_tensor *local = e->from->local;
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
    struct spans s = wanted_by(e, e->sharers.me);
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

static int swap(const struct exchange *e, const struct mesh_tensor *sent, struct mesh_tensor *got)
{
    size_t n = (size_t)e->sharers.n, *counts = mem_new_array(size_t, 2 * n);
    if (counts == NULL) {
        return err_no_memory(2 * n * sizeof *counts, "the sizes of the parts");
    }
    struct spans mine = wanted_by(e, e->sharers.me);
    for (int part = 0; part < e->sharers.n; part++) {
        struct spans theirs = wanted_by(e, part);
        counts[part] = (size_t)(spans_overlap(&theirs, held_by(e, e->sharers.me)) * e->width);
        counts[n + (size_t)part] = (size_t)(spans_overlap(&mine, held_by(e, part)) * e->width);
    }
    int r = sharers_swap(&e->sharers, &(struct sharers_swap){ sent, got, counts, counts + n });
    mem_free(counts);
    return r;
}

static struct exchange exchange_of(const struct window *w, int i, const struct window_input *from)
{
    const mesh_dtensor *x = from->x;
    struct exchange e = { .w = w,
                          .from = from,
                          .input = i,
                          .sharers = sharers_of(x->mesh, from->placements, w->dim),
                          .extent = x->shape.dim[w->dim],
                          .width = 1,
                          .item = dtype_size(x->dtype) };
    bool is_alone = e.sharers.n == 1 || w->is_local;
    e.first = is_alone ? e.sharers.me : 0;
    e.last = is_alone ? e.sharers.me : e.sharers.n - 1;
    for (int d = 0; d < x->shape.ndim; d++) {
        e.width *= d == w->dim ? 1 : from->local->shape.dim[d];
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
        n_sent += spans_overlap(&s, held_by(e, e->sharers.me));
    }
    struct mesh_tensor *sent = tensor_new(MESH_SHAPE(n_sent * e->width), out->dtype), *got = NULL;
    if (sent != NULL) {
        got = is_alone ? tensor_ref(sent) : tensor_new(out->shape, out->dtype);
    }
    int r = got != NULL ? 0 : err_status();
    if (r == 0) {
        pack(e, sent->data);
        r = is_alone ? 0 : swap(e, sent, got); /* also of nothing: in a call of the whole mesh others have something */
    }
    if (r == 0) {
        unpack(e, out, got->data);
    }
    tensor_unref(sent);
    tensor_unref(got);
    return r;
}

struct mesh_tensor *window_fetch(const struct window *w, int i, const struct window_input *from)
{
    if (tensor_settle(from->local) < 0) {
        return NULL;
    }
    if (!from->x->mesh->is_member || w->in[i].map == WINDOW_STAYS) {
        return tensor_ref(from->local);
    }
    struct exchange e = exchange_of(w, i, from);
    struct spans mine = wanted_by(&e, e.sharers.me);
    mesh_shape shape = from->local->shape;
    shape.dim[w->dim] = mine.length;
    struct mesh_tensor *out = tensor_new(shape, from->local->dtype);
    if (out != NULL && exchange(&e, out) < 0) {
        tensor_unref(out);
        return NULL;
    }
    return out;
}
