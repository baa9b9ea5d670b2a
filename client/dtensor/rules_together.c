/* client/dtensor/rules_together.c - whether rules of several mesh dims, each right by itself, are right together.
 *
 * Mostly they are.  A view's parts must end alike under all cuts at once; groups of heads or of channels must stay whole
 * when several mesh dims cut them.
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
    return true;
}
