/* client/dtensor/window_conv.c - convolutions of images whose rows or columns are split, or both.
 *
 *      mesh dim    images       weight       result                     gradient by the weight: dy, images -> weight
 *      splits      S(2), S(3)   R            as images                  S(2), S(3), or R       -> Partial(sum)
 *      others      as the rules of the operator say for a mesh of these alone
 *
 * Images that are split in strides are first brought to plain shards of the same mesh dims.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "dtensor/window.h"

#define FIRST_DIM 2 /* rows, then columns */

struct conv {
    const struct op_row *op;
    mesh_dtensor *const *in;
    const struct op_shapes *s;
    bool is_weight_made;               /* the gradient by the weight: both inputs have places */
    int split_dim[MESH_MAX_MESH_NDIM]; /* of each mesh dim: 2, 3, or -1: left to the rules */
};

bool window_is_convolution(const struct op_row *op)
{
    return op == &op_table[OP_conv2d] || op == &op_table[OP_conv2d_grad_input] ||
           op == &op_table[OP_conv2d_grad_weight];
}

static int split_place_dim(const mesh_dtensor *x, int m)
{
    mesh_placement p = x->placements.at[m];
    return placement_is_shard(p) && p.dim >= FIRST_DIM && x->mesh->size[m] > 1 ? p.dim : -1;
}

static bool find_splits(struct conv *inout)
{
    bool has_any = false;
    for (int m = 0; m < inout->in[0]->mesh->ndim; m++) {
        int d = split_place_dim(inout->in[inout->is_weight_made ? 1 : 0], m);
        d = d < 0 && inout->is_weight_made ? split_place_dim(inout->in[0], m) : d;
        inout->split_dim[m] = d;
        has_any = has_any || d >= 0;
    }
    return has_any;
}

static struct window window_along(const struct conv *c, int dim)
{
    int d = dim - FIRST_DIM, looked_at = c->is_weight_made ? 1 : 0;
    mesh_shape weight = c->is_weight_made ? c->s->out[0] : c->s->in[1];
    struct window w = { .dim = dim,
                        .is_pending = c->is_weight_made,
                        .out_extent = c->is_weight_made ? c->s->in[0].dim[dim] : c->s->out[0].dim[dim],
                        .stride = c->s->attr.dim[d],
                        .reach = (weight.dim[dim] - 1) * c->s->attr.dilation[d] };
    w.in[looked_at].map = c->op == &op_table[OP_conv2d_grad_input] ? WINDOW_TAPPED : WINDOW_TAPS;
    w.in[looked_at].shift = c->s->attr.index[d];
    w.in[1 - looked_at].map = c->is_weight_made ? WINDOW_SHIFT : WINDOW_STAYS;
    for (int m = 0; m < c->in[0]->mesh->ndim; m++) {
        w.mesh_dims |= c->split_dim[m] == dim ? UINT32_C(1) << m : 0;
    }
    return w;
}

/* --- the other mesh dims ------------------------------------------------------------------------------------------ */

static mesh_shape part_shape(const struct conv *c, mesh_shape s)
{
    for (int m = 0; m < c->in[0]->mesh->ndim; m++) {
        int d = c->split_dim[m], n = c->in[0]->mesh->size[m];
        if (d >= 0) {
            s.dim[d] = (s.dim[d] + n - 1) / n;
        }
    }
    return s;
}

/* Costs are those of parts; the rules look at channels only. */
static struct op_shapes part_shapes(const struct conv *c, int mesh_ndim)
{
    struct op_shapes s = *c->s;
    s.mesh_ndim = mesh_ndim;
    s.in[0] = part_shape(c, s.in[0]);
    if (c->is_weight_made) {
        s.in[1] = part_shape(c, s.in[1]);
    } else {
        s.out[0] = part_shape(c, s.out[0]);
    }
    return s;
}

static int choose_others(const struct conv *c, struct op_choice *ret_choice)
{
    const mesh_device_mesh *m = c->in[0]->mesh;
    mesh_placements now[OP_MAX_INPUTS] = { { .n = 0 } };
    int n = 0, size[MESH_MAX_MESH_NDIM];
    for (int k = 0; k < m->ndim; k++) {
        if (c->split_dim[k] < 0) {
            now[0].at[n] = c->in[0]->placements.at[k];
            now[1].at[n] = c->in[1]->placements.at[k];
            size[n++] = m->size[k];
        }
    }
    now[0].n = now[1].n = n;
    if (n == 0) {
        *ret_choice = (struct op_choice){ .cost = 0 };
        return 0;
    }
    struct op_shapes s = part_shapes(c, n);
    return op_choose(c->op, &s, n, size, now, ret_choice);
}

/* --- all of them together ----------------------------------------------------------------------------------------- */

/* What is whole stays so where each rank may take its places out of it. */
static mesh_placement placed(const struct conv *c, int i, int m)
{
    bool has_places = i == 0 || c->is_weight_made;
    bool is_whole = c->in[i]->placements.at[m].kind == MESH_IS_REPLICATE;
    return has_places && !is_whole ? mesh_shard(c->split_dim[m]) : mesh_replicate();
}

static void merge(const struct conv *c, const struct op_choice *others, struct op_choice *ret_choice)
{
    int n = c->in[0]->mesh->ndim;
    struct op_choice all = { .cost = others->cost };
    all.in[0].n = all.in[1].n = all.out[0].n = n;
    for (int m = 0, k = 0; m < n; m++) {
        bool is_split = c->split_dim[m] >= 0;
        mesh_placement made = c->is_weight_made ? mesh_partial(MESH_SUM) : mesh_shard(c->split_dim[m]);
        for (int i = 0; i < 2; i++) {
            all.in[i].at[m] = is_split ? placed(c, i, m) : others->in[i].at[k];
        }
        all.out[0].at[m] = is_split ? made : others->out[0].at[k];
        k += !is_split;
    }
    *ret_choice = all;
}

int window_of_convolution(const struct op_row *op, mesh_dtensor *const *in, const struct op_shapes *s,
                          struct windows *ret_windows, struct op_choice *ret_choice)
{
    struct conv c = { .op = op, .in = in, .s = s, .is_weight_made = op == &op_table[OP_conv2d_grad_weight] };
    struct windows w = { .n = 0 };
    struct op_choice others;
    if (!find_splits(&c)) {
        *ret_windows = w;
        return 0;
    }
    int r = choose_others(&c, &others);
    for (int dim = FIRST_DIM; r == 0 && dim < FIRST_DIM + WINDOWS_MAX; dim++) {
        w.at[w.n] = window_along(&c, dim);
        w.n += w.at[w.n].mesh_dims != 0;
    }
    if (r == 0) {
        merge(&c, &others, ret_choice);
        *ret_windows = w;
    }
    return r;
}
