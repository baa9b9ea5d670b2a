/* client/dtensor/rules_attention.c - how attention and its gradients may be sharded.
 *
 * Each input and output goes with q (its heads and its rows) or with k (its heads and its places).  Batches are cut
 * alike on all, heads where both cuts meet; rows of q, and heads of q beside all of k's, are cut alone, and then what
 * goes with k is a sum over the parts; so are places of k, and then what goes with q is a sum.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dtensor/attention.h"
#include "dtensor/rules.h"

struct roles { /* "qkk": one letter each */
    const char *in, *out;
};

static void cut_all(const struct roles *roles, int dim, struct rule_list *inout)
{
    struct rule r = rule_whole();
    for (size_t i = 0; i < strlen(roles->in); i++) {
        r.in[i] = mesh_shard(dim);
    }
    for (size_t o = 0; o < strlen(roles->out); o++) {
        r.out[o] = mesh_shard(dim);
    }
    rule_add(inout, &r);
}

/* What goes with q, or with k; the other is whole, and its results are sums over the parts. */
static void cut_alone(const struct roles *roles, char which, int dim, struct rule_list *inout)
{
    struct rule r = rule_whole();
    for (size_t i = 0; i < strlen(roles->in); i++) {
        r.in[i] = roles->in[i] == which ? mesh_shard(dim) : mesh_replicate();
    }
    for (size_t o = 0; o < strlen(roles->out); o++) {
        r.out[o] = roles->out[o] == which ? mesh_shard(dim) : mesh_partial(MESH_SUM);
    }
    rule_add(inout, &r);
}

bool attention_keeps_groups(const struct op_shapes *s, int64_t parts)
{
    return s->attr.groups == 1 || s->attr.index[1] % parts == 0;
}

static void attention(const struct op_shapes *s, int parts, const struct roles *roles, struct rule_list *inout)
{
    int rows = s->in[0].ndim - 2, heads = rows - 1;
    for (int d = 0; d < heads; d++) {
        cut_all(roles, d, inout);
    }
    if (heads >= 0 && attention_keeps_groups(s, parts)) {
        cut_all(roles, heads, inout);
    }
    /* Else it might meet the rule above on another mesh dim. */
    if (heads >= 0 && (s->mesh_ndim == 1 || s->attr.index[1] == 1)) {
        cut_alone(roles, 'q', heads, inout);
    }
    cut_alone(roles, 'q', rows, inout);
}

/* Of the forward call: with results that attention_join() makes what they are said to be. */
static void cut_places(int dim, struct rule_list *inout)
{
    struct rule r = rule_whole();
    r.in[1] = r.in[2] = mesh_shard(dim);
    r.out[0] = mesh_partial(MESH_SUM);
    r.out[1] = ATTENTION_PART;
    rule_add(inout, &r);
}

void rule_attention(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    attention(s, parts, &(struct roles){ "qkk", "qq" }, inout);
    if ((s->attr.mode & ATTENTION_BY_KEYS) != 0) {
        cut_places(s->in[0].ndim - 2, inout);
    }
}

void rule_attention_grad_q(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    const struct roles roles = { "qqkkq", "q" };
    attention(s, parts, &roles, inout);
    cut_alone(&roles, 'k', s->in[0].ndim - 2, inout);
}

void rule_attention_grad_kv(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    const struct roles roles = { "qqkkq", "kk" };
    attention(s, parts, &roles, inout);
    cut_alone(&roles, 'k', s->in[0].ndim - 2, inout);
}
