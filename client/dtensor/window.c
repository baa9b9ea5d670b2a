/* client/dtensor/window.c - finds out whether an operator fetches places along a split dim, and what becomes of the
 * layout.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/window.h"

#include <math.h>

#include "base/util.h"

/* What splits dim, of all inputs that have to do with it. */
static uint32_t splitters(const struct window *w, mesh_dtensor *const *in, int n_in)
{
    uint32_t found = 0;
    for (int i = 0; i < n_in && in[i] != NULL; i++) {
        for (int m = 0; m < in[i]->placements.n; m++) {
            bool counts = w->in[i].map != WINDOW_STAYS && sharers_split(in[i]->mesh, &in[i]->placements, m, w->dim);
            found |= counts ? UINT32_C(1) << m : 0;
        }
    }
    return found;
}

/* Of the mesh dims that are to split the result of a padding whose input has the dim whole, those that can. */
static uint32_t wished_splitters(const mesh_dtensor *x, uint32_t wish)
{
    uint32_t can = 0;
    for (int m = 0; m < x->placements.n; m++) {
        bool is_free = x->mesh->size[m] > 1 && x->placements.at[m].kind == MESH_IS_REPLICATE;
        can |= is_free ? wish & UINT32_C(1) << m : 0;
    }
    return can;
}

static bool is_whole_on(const mesh_dtensor *x, uint32_t mesh_dims, int dim)
{
    for (int m = 0; m < x->placements.n; m++) {
        mesh_placement p = x->placements.at[m];
        bool is_chunk = p.kind == MESH_IS_SHARD && p.dim == dim;
        if ((mesh_dims >> m & 1U) != 0 && p.kind != MESH_IS_REPLICATE && !is_chunk) {
            return false;
        }
        if ((mesh_dims >> m & 1U) == 0 && p.kind != MESH_IS_REPLICATE && p.kind != MESH_IS_PARTIAL && !is_chunk &&
            p.dim == dim) {
            return false; /* spread over it otherwise than in chunks */
        }
    }
    return true;
}

/* On the mesh dims that split, each input is in chunks or whole; on all others they are laid out alike. */
static bool are_alike(const struct window *w, mesh_dtensor *const *in, int n_in)
{
    for (int i = 0; i < n_in && in[i] != NULL; i++) {
        mesh_placements a = in[0]->placements, b = in[i]->placements;
        if (!is_whole_on(in[i], w->mesh_dims, w->dim)) {
            return false;
        }
        for (int m = 0; m < a.n; m++) {
            if ((w->mesh_dims >> m & 1U) != 0) {
                a.at[m] = b.at[m] = mesh_replicate();
            }
        }
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

/* The only one of the dims that is split; -1: none, or several, or in strides. */
static int split_dim(const mesh_dtensor *x, uint32_t dims)
{
    int found = -1;
    for (int m = 0; m < x->placements.n; m++) {
        mesh_placement p = x->placements.at[m];
        if (p.kind == MESH_IS_STRIDED_SHARD && (dims >> p.dim & 1U) != 0) {
            return -1;
        }
        if (p.kind == MESH_IS_SHARD && (dims >> p.dim & 1U) != 0 && x->mesh->size[m] > 1) {
            if (found >= 0 && found != p.dim) {
                return -1;
            }
            found = p.dim;
        }
    }
    return found;
}

static uint32_t repeated_dims(const struct op_shapes *s)
{
    uint32_t dims = 0;
    int lead = s->out[0].ndim - s->in[0].ndim;
    for (int d = 0; d < s->in[0].ndim; d++) {
        dims |= s->in[0].dim[d] != s->out[0].dim[d + lead] ? UINT32_C(1) << d : 0;
    }
    return dims;
}

/* What the operator does to places; false: it is none of these. */
static bool describe(enum op_id id, mesh_dtensor *const *in, const struct op_shapes *s, struct window *w)
{
    w->dim = s->attr.dim[0];
    w->in[0].map = WINDOW_SHIFT;
    switch (id) {
    case OP_narrow:
        w->in[0].shift = -s->attr.index[0];
        return s->attr.mode == 0;
    case OP_pad:
        w->in[0].shift = s->attr.index[0];
        return padding_survives(in[0], s->attr.value[0]);
    case OP_roll:
        w->in[0].shift = s->attr.index[0];
        w->in[0].map = WINDOW_WRAP;
        return true;
    case OP_flip:
        w->dim = split_dim(in[0], s->attr.dims);
        w->in[0].map = WINDOW_MIRROR;
        return w->dim >= 0;
    case OP_repeat:
        w->dim = split_dim(in[0], repeated_dims(s));
        w->lead = s->out[0].ndim - s->in[0].ndim;
        w->in[0].map = WINDOW_WRAP;
        return w->dim >= 0;
    case OP_cat:
        for (int i = 1; i < s->n_in && s->has[i]; i++) {
            w->in[i].map = WINDOW_SHIFT;
            w->in[i].shift = w->in[i - 1].shift + s->in[i - 1].dim[w->dim];
        }
        return true;
    default:
        return false;
    }
}

/* The next coordinate in the dims of the set; false after the last. */
static bool step_coordinate(const mesh_device_mesh *m, uint32_t mesh_dims, int *inout)
{
    for (int i = m->ndim - 1; i >= 0; i--) {
        if ((mesh_dims >> i & 1U) != 0) {
            if (++inout[i] < m->size[i]) {
                return true;
            }
            inout[i] = 0;
        }
    }
    return false;
}

/* p: of the n_in inputs. */
static bool is_local_at(const struct window *w, mesh_dtensor *const *in, int n_in, const mesh_placements *p,
                        const int *coordinate)
{
    const mesh_device_mesh *m = in[0]->mesh;
    struct chunk out = sharers_chunk_at(m, w->mesh_dims, coordinate, w->out_extent);
    for (int i = 0; i < n_in && in[i] != NULL; i++) {
        if (w->in[i].map == WINDOW_STAYS) {
            continue;
        }
        int64_t extent = in[i]->shape.dim[w->dim];
        struct spans s = window_wanted(w, i, extent, out);
        uint32_t holders = sharers_of(m, &p[i], w->dim).mesh_dims;
        if (spans_overlap(&s, sharers_chunk_at(m, holders, coordinate, extent)) < s.length) {
            return false;
        }
    }
    return true;
}

static bool is_local(const struct window *w, mesh_dtensor *const *in, int n_in, const mesh_placements *p)
{
    int at[MESH_MAX_MESH_NDIM] = { 0 };
    do {
        if (!is_local_at(w, in, n_in, p, at)) {
            return false;
        }
    } while (step_coordinate(in[0]->mesh, w->mesh_dims, at));
    return true;
}

/* Inputs stay as they are. */
static void choose(const struct window *w, mesh_dtensor *const *in, const struct op_shapes *s,
                   struct op_choice *ret_choice)
{
    *ret_choice = (struct op_choice){ .cost = 0 };
    for (int i = 0; i < s->n_in && in[i] != NULL; i++) {
        ret_choice->in[i] = in[i]->placements;
    }
    mesh_placements out = in[0]->placements;
    for (int m = 0; m < out.n; m++) {
        if ((w->mesh_dims >> m & 1U) != 0) {
            out.at[m] = mesh_shard(w->dim + w->lead);
        } else if (placement_is_shard(out.at[m])) {
            out.at[m].dim += w->lead;
        }
    }
    ret_choice->out[0] = out;
}

static bool find_one(const struct op_row *op, mesh_dtensor *const *in, const struct op_shapes *s, struct window *inout)
{
    if (!describe((enum op_id)(op - op_table), in, s, inout)) {
        return false;
    }
    inout->mesh_dims = splitters(inout, in, s->n_in);
    inout->mesh_dims |= op == &op_table[OP_pad] ? wished_splitters(in[0], (uint32_t)s->attr.mode) : 0;
    if (inout->mesh_dims == 0 || !are_alike(inout, in, s->n_in)) {
        return false;
    }
    inout->out_extent = s->out[0].dim[inout->dim + inout->lead];
    return true;
}

int window_find(const struct op_row *op, mesh_dtensor *const *in, const struct op_shapes *s,
                struct windows *ret_windows, struct op_choice *ret_choice)
{
    struct windows w = { .n = 0 };
    struct op_choice choice;
    int r = 0;
    if (window_is_convolution(op)) {
        r = window_of_convolution(op, in, s, &w, &choice);
    } else if (find_one(op, in, s, &w.at[0])) {
        choose(&w.at[0], in, s, &choice);
        w.n = 1;
    }
    if (r < 0 || w.n == 0) {
        ret_windows->n = 0;
        return r;
    }
    for (int k = 0; k < w.n; k++) {
        w.at[k].is_local = is_local(&w.at[k], in, s->n_in, choice.in);
    }
    *ret_windows = w;
    *ret_choice = choice;
    return 0;
}

void window_finish_attr(const struct window *w, const struct op_row *op, mesh_dtensor *const *in, struct op_attr *inout)
{
    enum op_id id = (enum op_id)(op - op_table);
    const mesh_device_mesh *m = in[0]->mesh;
    struct chunk out = sharers_chunk_at(m, w->mesh_dims, m->coordinate, w->out_extent);
    int which = w->is_pending ? 1 : 0, along = w->dim - 2;
    int64_t shift = w->in[which].shift, extent = in[which]->shape.dim[w->dim];
    int64_t begin = window_wanted(w, which, extent, out).begin;
    switch (id) {
    case OP_narrow:
        inout->mode = 1;
        break;
    case OP_roll:
        inout->index[0] = 0;
        break;
    case OP_pad:
        inout->index[0] = MIN(out.extent, MAX(0, shift - out.offset));
        inout->index[1] = MIN(out.extent, MAX(0, out.offset + out.extent - shift - extent));
        break;
    case OP_conv2d:
    case OP_conv2d_grad_weight: /* the first place of the result looks at the place out.offset stride - shift */
        inout->index[along] = begin - out.offset * w->stride + shift;
        break;
    case OP_conv2d_grad_input:
        inout->index[along] = shift + out.offset - begin * w->stride;
        break;
    default:
        break;
    }
}
