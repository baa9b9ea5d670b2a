/* client/dtensor/attention.c - puts together what ranks found among their places of k, and says what that costs.
 *
 * lse of all parts is one tensor [parts, ...lse], its dim 0 split as the places are; gathered, every rank knows every
 * part's share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/attention.h"

#include "base/error.h"
#include "dtensor/redistribute.h"
#include "dtensor/watch.h"

/* --- all parts of lse --------------------------------------------------------------------------------------------- */

struct parts {
    mesh_shape shape;
    mesh_placements split, whole; /* before and after they are gathered */
};

static bool is_part(mesh_placement p)
{
    return p.kind == MESH_IS_PARTIAL && p.op == MESH_MAX;
}

/* false: no places are spread. */
static bool parts_of(mesh_shape lse, const struct rule_mesh *m, const mesh_placements *p, struct parts *ret_parts)
{
    struct parts x = { .shape = { .ndim = lse.ndim + 1, .dim = { 1 } }, .split = *p, .whole = *p };
    bool has_any = false;
    for (int d = 0; d < lse.ndim; d++) {
        x.shape.dim[d + 1] = lse.dim[d];
    }
    for (int i = 0; i < m->ndim; i++) {
        bool is_one = is_part(p->at[i]);
        has_any = has_any || is_one;
        x.shape.dim[0] *= is_one ? m->size[i] : 1;
        x.split.at[i].dim += placement_is_shard(p->at[i]) ? 1 : 0;
        x.whole.at[i] = is_one ? mesh_replicate() : x.split.at[i];
        x.split.at[i] = is_one ? mesh_shard(0) : x.split.at[i];
    }
    *ret_parts = x;
    return has_any;
}

static mesh_dtensor *gather(const mesh_dtensor *lse, const struct parts *all)
{
    mesh_shape local = lse->local->shape;
    if (lse->mesh->is_member) {
        local.ndim++;
        local.dim[0] = 1;
        for (int d = 0; d < lse->shape.ndim; d++) {
            local.dim[d + 1] = lse->local->shape.dim[d];
        }
    }
    struct mesh_tensor *part = tensor_view(lse->local->data, local, lse->dtype);
    mesh_dtensor *x = part == NULL ? NULL : dtensor_new(lse->mesh, all->shape, lse->dtype, &all->split, part);
    return x == NULL ? NULL : dtensor_redistribute(x, &all->whole);
}

/* --- where results go --------------------------------------------------------------------------------------------- */

/* The input that output o is laid out like in the end; -1: it stays as it comes. */
static int home_of(const struct op_row *op, int o)
{
    return op == &op_table[OP_attention]           ? (o == 0 ? 0 : -1)
           : op == &op_table[OP_attention_grad_q]  ? 1
           : op == &op_table[OP_attention_grad_kv] ? 2 + o
                                                   : -1;
}

/* Pending sums become the shards that there are at home, or are reduced on every rank where `completes`. */
static mesh_placements placed_like(const mesh_placements *out, const mesh_placements *home, int n_dims, bool completes)
{
    mesh_placements to = *out;
    for (int i = 0; i < out->n; i++) {
        bool is_split = home->at[i].kind == MESH_IS_SHARD && home->at[i].dim < n_dims;
        if (out->at[i].kind == MESH_IS_PARTIAL) {
            to.at[i] = is_split ? home->at[i] : completes ? mesh_replicate() : out->at[i];
        }
    }
    return to;
}

/* The last dim of y is not that of q. */
static mesh_placements joined(const mesh_placements *y, const mesh_placements *q, int ndim)
{
    return placed_like(y, q, ndim - 1, true);
}

/* Up to the limit: what is dearer is not planned. */
static int add_cost(const struct relayout *q, double limit, double *inout_cost)
{
    struct move_list moves;
    int r = redistribute_plan_below(q, limit - *inout_cost, &moves);
    *inout_cost += r < 0 ? 0 : moves.cost;
    return r;
}

static int add_cost_of_parts(const struct op_shapes *s, const struct rule_mesh *m, double limit,
                             struct op_choice *inout)
{
    struct parts all;
    if (!parts_of(s->out[1], m, &inout->out[1], &all)) {
        return 0;
    }
    return add_cost(&(struct relayout){ all.shape, s->out_dtype[1], m->ndim, m->size, &all.split, &all.whole }, limit,
                    &inout->cost);
}

int attention_later_cost(const struct op_row *op, const struct op_shapes *s, const struct rule_mesh *m,
                         const mesh_placements *now, double limit, struct op_choice *inout)
{
    bool is_forward = op == &op_table[OP_attention];
    int r = is_forward ? add_cost_of_parts(s, m, limit, inout) : 0;
    for (int o = 0; r == 0 && inout->cost < limit && o < s->n_out && home_of(op, o) >= 0; o++) {
        const mesh_placements *home = &now[home_of(op, o)];
        int ndim = s->out[o].ndim;
        mesh_placements to =
            is_forward ? joined(&inout->out[o], home, ndim) : placed_like(&inout->out[o], home, ndim, false);
        struct relayout q = { s->out[o], s->out_dtype[o], m->ndim, m->size, &inout->out[o], &to };
        r = add_cost(&q, limit, &inout->cost);
    }
    return r;
}

void attention_attr_at(const struct op_row *op, const struct op_shapes *s, const struct rule_mesh *m,
                       const int *coordinate, const mesh_placements *in, struct op_attr *inout)
{
    int k = op == &op_table[OP_attention] ? 1 : 2;
    struct box b;
    if (home_of(op, 0) >= 0) {
        layout_box(s->in[k], m->size, coordinate, &in[k], &b);
        inout->index[0] -= b.offset[s->in[k].ndim - 2];
    }
}

/* --- putting together --------------------------------------------------------------------------------------------- */

/* In place: y becomes its share, lse the whole's. */
static int take_shares(mesh_dtensor *y, mesh_dtensor *lse, const mesh_dtensor *all)
{
    struct kernel_call call = { .in = { y->local, lse->local, all->local }, .out = { y->local, lse->local } };
    return y->mesh->is_member ? kernel_run(k_attention_share, &call) : 0;
}

static int join(const mesh_dtensor *q, const struct parts *all, mesh_dtensor *inout[2])
{
    mesh_placements to = joined(&inout[0]->placements, &q->placements, q->shape.ndim), whole = { .n = to.n };
    mesh_dtensor *gathered = gather(inout[1], all);
    int r = gathered == NULL ? err_status() : take_shares(inout[0], inout[1], gathered);
    if (r < 0) {
        return r;
    }
    for (int i = 0; i < to.n; i++) {
        mesh_placement p = inout[1]->placements.at[i];
        whole.at[i] = is_part(p) ? mesh_replicate() : p;
    }
    inout[1]->placements = whole;
    inout[0] = dtensor_redistribute(inout[0], &to);
    return inout[0] != NULL ? 0 : err_status();
}

int attention_join(const mesh_dtensor *q, mesh_dtensor *inout[2])
{
    const mesh_device_mesh *m = q->mesh;
    const char *outer = watch.op;
    struct parts all;
    if (!parts_of(inout[1]->shape, &(struct rule_mesh){ m->ndim, m->size }, &inout[1]->placements, &all)) {
        return 0;
    }
    watch.op = op_table[OP_attention].name;
    int r = join(q, &all, inout);
    watch.op = outer;
    return r;
}
