/* client/dtensor/rules_together.c - whether rules of several mesh dims, each right by itself, are right together.
 *
 * Mostly they are.  A view's parts must end alike under all cuts at once; groups of heads or of channels must stay
 * whole when several mesh dims cut them; and where a part of a repeated dim begins within the period, a kernel knows
 * only of one cut.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/layout.h"
#include "dtensor/rules.h"

/* Into how many parts the mesh dims together cut dim d. */
static int64_t parts_of_dim(const struct rule_mesh *m, const mesh_placements *p, int d)
{
    int64_t parts = 1;
    for (int i = 0; i < m->ndim; i++) {
        parts *= placement_is_shard(p->at[i]) && p->at[i].dim == d ? m->size[i] : 1;
    }
    return parts;
}

/* Cut once, a part as long as the period begins with it; cut twice, it need not. */
static bool repeats_are_cut_once(const struct op_shapes *s, const struct rule_mesh *m, const mesh_placements *in)
{
    int lead = s->in[0].ndim - s->out[0].ndim, n_cuts[MESH_MAX_NDIM] = { 0 };
    for (int i = 0; i < m->ndim; i++) {
        int d = placement_is_shard(in->at[i]) ? in->at[i].dim : -1;
        int64_t period = d < lead ? 1 : s->out[0].dim[d - lead];
        if (period > 1 && period != s->in[0].dim[d] && ++n_cuts[d] > 1) {
            return false;
        }
    }
    return true;
}

bool rules_fit_together(rule_fn of, const struct op_shapes *s, const struct rule_mesh *m, const mesh_placements *in,
                        const mesh_placements *out)
{
    if (of == rule_reshape) {
        return reshape_is_exact(s->in[0], s->out[0], m->ndim, m->size, in, out);
    }
    if (of == rule_attention) {
        return attention_keeps_groups(s, parts_of_dim(m, &in[1], s->in[1].ndim - 3));
    }
    if (of == rule_attention_grad_q || of == rule_attention_grad_kv) {
        return attention_keeps_groups(s, parts_of_dim(m, &in[2], s->in[2].ndim - 3));
    }
    if (of == rule_conv2d || of == rule_conv2d_grad_input || of == rule_conv2d_grad_weight) {
        return s->attr.groups == 1 || convolution_keeps_groups(of, s, parts_of_dim(m, &in[0], 1));
    }
    if (of == rule_repeat_backward) {
        return repeats_are_cut_once(s, m, &in[0]);
    }
    return true;
}
