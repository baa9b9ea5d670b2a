/* client/dtensor/rules_attention.c - how attention and its gradients may be sharded.
 *
 * Each input and output goes with q (its heads and its rows) or with k (its heads and its places).  Batches are cut alike on all,
 * heads where both cuts meet; rows of q, and heads of q beside all of k's, are cut alone, and then what goes with k is a sum over
 * the parts; so are places of k, and then what goes with q is a sum.
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

static void cut_queries(const struct roles *roles, int dim, struct rule_list *inout)
{
    struct rule r = rule_whole();
    for (size_t i = 0; i < strlen(roles->in); i++) {
        r.in[i] = roles->in[i] == 'q' ? mesh_shard(dim) : mesh_replicate();
    }
    for (size_t o = 0; o < strlen(roles->out); o++) {
        r.out[o] = roles->out[o] == 'q' ? mesh_shard(dim) : mesh_partial(MESH_SUM);
    }
    rule_add(inout, &r);
}

/* Rows and places are the same dim of their tensors. */
static void cut_places(const struct roles *roles, int dim, struct rule_list *inout)
{
    struct rule r = rule_whole();
    for (size_t i = 0; i < strlen(roles->in); i++) {
        r.in[i] = roles->in[i] == 'k' ? mesh_shard(dim) : mesh_replicate();
    }
    for (size_t o = 0; o < strlen(roles->out); o++) {
        r.out[o] = roles->out[o] == 'k' ? mesh_shard(dim) : mesh_partial(MESH_SUM);
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
    if (heads >= 0 &&
        (s->mesh_ndim == 1 || s->attr.index[1] == 1)) { /* else it might meet the rule above on another mesh dim */
        cut_queries(roles, heads, inout);
    }
    cut_queries(roles, rows, inout);
}

/* With results that attention_join() makes what they are said to be. */
static void cut_places_before_join(int dim, struct rule_list *inout)
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
        cut_places_before_join(s->in[0].ndim - 2, inout);
    }
}

void rule_attention_grad_q(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    const struct roles roles = { "qqkkq", "q" };
    attention(s, parts, &roles, inout);
    cut_places(&roles, s->in[0].ndim - 2, inout);
}

void rule_attention_grad_kv(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    const struct roles roles = { "qqkkq", "kk" };
    attention(s, parts, &roles, inout);
    cut_places(&roles, s->in[0].ndim - 2, inout);
}
