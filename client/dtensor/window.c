/* client/dtensor/window.c - finds and runs the exchange of an operator that shifts places along a split dim.
 *
 * From the shift every rank computes, for every rank of its line, which spans of places that one wants; what two chunks and spans
 * have in common crosses in one all_to_all_v, and nothing else does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/window.h"

#include <math.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/collective.h"
#include "tensor/shape.h"

struct spans { /* of places of an input, in the order in which they stand in the result */
    int n;
    struct chunk at[2];
};

static struct spans wanted(const struct window *w, int i, int64_t extent, struct chunk out)
{
    struct spans s = { .n = 1 };
    if (out.extent == 0 || extent == 0) {
        return (struct spans){ .n = 0 };
    }
    if (w->is_mirrored) {
        s.at[0] = (struct chunk){ extent - out.offset - out.extent, out.extent };
        return s;
    }
    if (w->wraps) {
        int64_t begin = ((out.offset - w->shift[i]) % extent + extent) % extent;
        s.at[0] = (struct chunk){ begin, MIN(out.extent, extent - begin) };
        s.at[1] = (struct chunk){ 0, out.extent - s.at[0].extent };
        s.n = s.at[1].extent > 0 ? 2 : 1;
        return s;
    }
    int64_t begin = MAX(0, out.offset - w->shift[i]), end = MIN(extent, out.offset + out.extent - w->shift[i]);
    s.at[0] = (struct chunk){ begin, end - begin };
    s.n = begin < end ? 1 : 0;
    return s;
}

static struct chunk overlap(struct chunk a, struct chunk b)
{
    int64_t begin = MAX(a.offset, b.offset), end = MIN(a.offset + a.extent, b.offset + b.extent);
    return (struct chunk){ begin, MAX(0, end - begin) };
}

static int64_t overlap_all(const struct spans *s, struct chunk held)
{
    int64_t n = 0;
    for (int k = 0; k < s->n; k++) {
        n += overlap(s->at[k], held).extent;
    }
    return n;
}

static int64_t length_of(const struct spans *s)
{
    int64_t n = 0;
    for (int k = 0; k < s->n; k++) {
        n += s->at[k].extent;
    }
    return n;
}

/* --- whether, and how far ------------------------------------------------------------------------------------------- */

static bool is_split(const mesh_dtensor *x, int mesh_dim, int dim)
{
    mesh_placement p = x->placements.at[mesh_dim];
    return p.kind == MESH_IS_SHARD && p.dim == dim && x->mesh->size[mesh_dim] > 1;
}

/* The one mesh dim that splits dim, of any input; -1: none, or several. */
static int splitter(mesh_dtensor *const *in, int n_in, int dim)
{
    int found = -1;
    for (int i = 0; i < n_in && in[i] != NULL; i++) {
        for (int m = 0; m < in[i]->placements.n; m++) {
            if (is_split(in[i], m, dim) && found != m) {
                if (found >= 0) {
                    return -1;
                }
                found = m;
            }
        }
    }
    return found;
}

/* The mesh dim that is to split the result of a padding whose input it has whole; -1: it has not. */
static int wished_splitter(const mesh_dtensor *x, int dim, int wish)
{
    for (int m = 0; m < x->placements.n; m++) {
        if (is_split(x, m, dim)) {
            return -1;
        }
    }
    bool can = wish < x->placements.n && x->mesh->size[wish] > 1;
    return can && x->placements.at[wish].kind == MESH_IS_REPLICATE ? wish : -1;
}

/* Of several dims to be reversed, the only one that is split. */
static int flipped_dim(const mesh_dtensor *x, uint32_t dims)
{
    int found = -1;
    for (int m = 0; m < x->placements.n; m++) {
        mesh_placement p = x->placements.at[m];
        if (p.kind == MESH_IS_SHARD && (dims >> p.dim & 1U) != 0 && is_split(x, m, p.dim)) {
            if (found >= 0) {
                return -1;
            }
            found = p.dim;
        }
    }
    return found;
}

/* On all other mesh dims the inputs are laid out alike; here each is split or whole. */
static bool are_alike(mesh_dtensor *const *in, int n_in, int mesh_dim, int dim)
{
    for (int i = 0; i < n_in && in[i] != NULL; i++) {
        mesh_placements a = in[0]->placements, b = in[i]->placements;
        if (!is_split(in[i], mesh_dim, dim) && b.at[mesh_dim].kind != MESH_IS_REPLICATE) {
            return false;
        }
        a.at[mesh_dim] = b.at[mesh_dim] = mesh_replicate();
        if (!mesh_placements_equal(a, b)) {
            return false;
        }
    }
    return true;
}

/* Padding every part of a pending value with v gives what is reduced to v. */
static bool padding_survives(const mesh_dtensor *x, double v)
{
    for (int m = 0; m < x->placements.n; m++) {
        mesh_placement p = x->placements.at[m];
        bool is_sum = p.op == MESH_SUM || p.op == MESH_AVG, is_extreme = p.op == MESH_MAX || p.op == MESH_MIN;
        if (p.kind == MESH_IS_PARTIAL && !is_extreme && !(is_sum && fpclassify(v) == FP_ZERO)) {
            return false;
        }
    }
    return true;
}

/* What the operator does to places; false: it is none of these. */
static bool describe(enum op_id id, mesh_dtensor *const *in, const struct op_shapes *s, struct window *w)
{
    w->dim = s->attr.dim[0];
    switch (id) {
    case OP_narrow:
        w->shift[0] = -s->attr.index[0];
        return s->attr.mode == 0;
    case OP_pad:
        w->shift[0] = s->attr.index[0];
        return padding_survives(in[0], s->attr.value[0]);
    case OP_roll:
        w->shift[0] = s->attr.index[0];
        w->wraps = true;
        return true;
    case OP_flip:
        w->dim = flipped_dim(in[0], s->attr.dims);
        w->is_mirrored = true;
        return w->dim >= 0;
    case OP_cat:
        for (int i = 1; i < s->n_in && s->has[i]; i++) {
            w->shift[i] = w->shift[i - 1] + s->in[i - 1].dim[w->dim];
        }
        return true;
    default:
        return false;
    }
}

static bool stays_local(const struct window *w, mesh_dtensor *const *in, int n_in)
{
    int parts = in[0]->mesh->size[w->mesh_dim];
    for (int i = 0; i < n_in && in[i] != NULL; i++) {
        int64_t extent = in[i]->shape.dim[w->dim];
        for (int r = 0; r < parts && is_split(in[i], w->mesh_dim, w->dim); r++) {
            struct spans s = wanted(w, i, extent, layout_chunk(w->out_extent, parts, r));
            if (overlap_all(&s, layout_chunk(extent, parts, r)) < length_of(&s)) {
                return false;
            }
        }
    }
    return true;
}

bool window_find(const struct op_row *op, mesh_dtensor *const *in, const struct op_shapes *s, struct window *ret_window)
{
    struct window w = { .is_used = true };
    if (!describe((enum op_id)(op - op_table), in, s, &w)) {
        return false;
    }
    w.mesh_dim = splitter(in, s->n_in, w.dim);
    if (w.mesh_dim < 0 && op == &op_table[OP_pad] && s->attr.mode > 0) {
        w.mesh_dim = wished_splitter(in[0], w.dim, s->attr.mode - 1);
    }
    if (w.mesh_dim < 0 || !are_alike(in, s->n_in, w.mesh_dim, w.dim)) {
        return false;
    }
    w.out_extent = s->out[0].dim[w.dim];
    w.is_local = stays_local(&w, in, s->n_in);
    *ret_window = w;
    return true;
}

void window_choose(const struct window *w, mesh_dtensor *const *in, const struct op_shapes *s,
                   struct op_choice *ret_choice)
{
    *ret_choice = (struct op_choice){ .cost = 0 };
    for (int i = 0; i < s->n_in && in[i] != NULL; i++) {
        ret_choice->in[i] = in[i]->placements;
    }
    ret_choice->out[0] = in[0]->placements;
    ret_choice->out[0].at[w->mesh_dim] = mesh_shard(w->dim);
}

void window_finish_attr(const struct window *w, const struct op_row *op, const mesh_dtensor *x, struct op_attr *inout)
{
    enum op_id id = (enum op_id)(op - op_table);
    if (id == OP_narrow) {
        inout->mode = 1;
    } else if (id == OP_roll) {
        inout->index[0] = 0;
    } else if (id == OP_pad) {
        int m = w->mesh_dim;
        struct chunk out = layout_chunk(w->out_extent, x->mesh->size[m], x->mesh->coordinate[m]);
        int64_t end = w->shift[0] + x->shape.dim[w->dim];
        inout->index[0] = MIN(out.extent, MAX(0, w->shift[0] - out.offset));
        inout->index[1] = MIN(out.extent, MAX(0, out.offset + out.extent - end));
    }
}

/* --- the exchange --------------------------------------------------------------------------------------------------- */

struct exchange { /* of one input, seen by one rank */
    const struct window *w;
    int input, parts, me;
    int first, last;       /* the ranks that take part: the line, or only this one */
    bool is_whole;         /* everybody has all places */
    int64_t extent, width; /* places; elements per place */
    const struct mesh_tensor *local;
    size_t item;
};

static struct chunk held_by(const struct exchange *e, int rank)
{
    return e->is_whole ? (struct chunk){ 0, e->extent } : layout_chunk(e->extent, e->parts, rank);
}

static struct spans wanted_by(const struct exchange *e, int rank)
{
    return wanted(e->w, e->input, e->extent, layout_chunk(e->w->out_extent, e->parts, rank));
}

static struct box box_along(mesh_shape s, int d, int64_t offset, int64_t extent)
{
    struct box b = { .ndim = s.ndim };
    for (int k = 0; k < s.ndim; k++) {
        b.extent[k] = s.dim[k];
    }
    b.offset[d] = offset;
    b.extent[d] = extent;
    return b;
}

/* What each rank gets of mine, one after another. */
static void pack(const struct exchange *e, char *to)
{
    struct chunk mine = held_by(e, e->me);
    for (int r = e->first; r <= e->last; r++) {
        struct spans s = wanted_by(e, r);
        for (int k = 0; k < s.n; k++) {
            struct chunk c = overlap(s.at[k], mine);
            struct box b = box_along(e->local->shape, e->w->dim, c.offset - mine.offset, c.extent);
            if (c.extent > 0) {
                box_pack(to, e->local->data, e->local->shape, &b, e->item);
                to += (size_t)(c.extent * e->width) * e->item;
            }
        }
    }
}

static void unpack(const struct exchange *e, struct mesh_tensor *out, const char *from)
{
    struct spans s = wanted_by(e, e->me);
    for (int r = e->first; r <= e->last; r++) {
        int64_t begin = 0;
        for (int k = 0; k < s.n; k++) {
            struct chunk c = overlap(s.at[k], held_by(e, r));
            struct box b = box_along(out->shape, e->w->dim, begin + c.offset - s.at[k].offset, c.extent);
            if (c.extent > 0) {
                box_unpack(out->data, out->shape, from, &b, e->item);
                from += (size_t)(c.extent * e->width) * e->item;
            }
            begin += s.at[k].extent;
        }
    }
}

static int swap(const struct exchange *e, mesh_group *group, const struct mesh_tensor *sent, struct mesh_tensor *got)
{
    size_t *counts = mem_new_array(size_t, 2 * (size_t)e->parts);
    if (counts == NULL) {
        return err_no_memory(2 * (size_t)e->parts * sizeof *counts, "the sizes of the parts");
    }
    size_t *in_counts = counts, *out_counts = counts + e->parts;
    struct spans mine = wanted_by(e, e->me);
    for (int r = 0; r < e->parts; r++) {
        struct spans theirs = wanted_by(e, r);
        in_counts[r] = (size_t)(overlap_all(&theirs, held_by(e, e->me)) * e->width);
        out_counts[r] = (size_t)(overlap_all(&mine, held_by(e, r)) * e->width);
    }
    struct collective_call call = { .kind = MESH_COMM_ALL_TO_ALL,
                                    .dtype = sent->dtype,
                                    .in_counts = in_counts,
                                    .out_counts = out_counts,
                                    .in = sent->data,
                                    .out = got->data };
    int r = collective_run(group, &call);
    mem_free(counts);
    return r;
}

static struct exchange exchange_of(const struct window *w, int i, const mesh_dtensor *x)
{
    int m = w->mesh_dim;
    struct exchange e = { .w = w,
                          .input = i,
                          .parts = x->mesh->size[m],
                          .me = x->mesh->coordinate[m],
                          .is_whole = !is_split(x, m, w->dim),
                          .extent = x->shape.dim[w->dim],
                          .width = 1,
                          .local = x->local,
                          .item = dtype_size(x->dtype) };
    bool is_alone = e.is_whole || w->is_local;
    e.first = is_alone ? e.me : 0;
    e.last = is_alone ? e.me : e.parts - 1;
    for (int d = 0; d < x->shape.ndim; d++) {
        e.width *= d == w->dim ? 1 : x->local->shape.dim[d];
    }
    return e;
}

struct mesh_tensor *window_fetch(const struct window *w, int i, const mesh_dtensor *x)
{
    if (!x->mesh->is_member) {
        return tensor_ref(x->local);
    }
    if (tensor_settle(x->local) < 0) {
        return NULL;
    }
    struct exchange e = exchange_of(w, i, x);
    struct spans mine = wanted_by(&e, e.me);
    int64_t n_sent = 0;
    mesh_shape shape = x->local->shape;
    shape.dim[w->dim] = length_of(&mine);
    for (int r = e.first; r <= e.last; r++) {
        struct spans s = wanted_by(&e, r);
        n_sent += overlap_all(&s, held_by(&e, e.me));
    }
    bool is_alone = e.first == e.last && e.parts > 1;
    struct mesh_tensor *sent = tensor_new(MESH_SHAPE(n_sent * e.width), x->dtype);
    struct mesh_tensor *got = is_alone && sent ? tensor_ref(sent) : NULL;
    got = sent && !got ? tensor_new(shape, x->dtype) : got;
    struct mesh_tensor *out = got ? tensor_new(shape, x->dtype) : NULL;
    int r = out ? 0 : (int)mesh_last_error()->status;
    if (r == 0) {
        pack(&e, sent->data);
        r = is_alone || e.width == 0 ? 0 : swap(&e, x->mesh->group[w->mesh_dim], sent, got);
    }
    if (r == 0) {
        unpack(&e, out, got->data);
    }
    tensor_unref(sent);
    tensor_unref(got);
    if (r < 0) {
        tensor_unref(out);
        return NULL;
    }
    return out;
}
