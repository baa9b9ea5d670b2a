/* client/dtensor/rules_matrix.c - rules of matrix products and losses.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/rules.h"

/* As NumPy: a vector on the left is a row, on the right a column, and its dimension is gone from the result. */
void rule_matmul(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    static const char *const by_vector[2][2] = { { "*mk,*kn->*mn", "*mk,k->*m" }, { "k,*kn->*n", "k,k->" } };
    (void)parts;
    rules_from_index(by_vector[s->in[0].ndim == 1][s->in[1].ndim == 1], s, inout);
}

/* y = x w' + b.  Where the product is pending (k split, or x or w pending), the bias is pending too, so that it counts once. */
void rule_linear(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    bool has_bias = s->has[2];
    struct rule_list split = { .n = 0 };
    rules_from_index("*k,nk,n->*n", s, &split);
    for (int i = 0; i < split.n; i++) {
        struct rule *r = &split.at[i];
        if (has_bias && r->out[0].kind == MESH_IS_PARTIAL) {
            r->in[2] = mesh_partial(MESH_SUM);
        }
        rule_add(inout, r);
    }
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++) {
            mesh_reduce_op op = k == 0 ? MESH_SUM : MESH_AVG;
            struct rule r = rule_whole();
            r.in[i] = mesh_partial(op);
            r.in[2] = has_bias ? mesh_partial(op) : mesh_replicate();
            r.out[0] = mesh_partial(op);
            if (op == MESH_SUM || rules_is_float(s)) {
                rule_add(inout, &r);
            }
        }
    }
    if (has_bias && rules_is_float(s)) {
        struct rule r = rule_whole(); /* avg(x_i) w' + b = avg(x_i w' + b) */
        r.in[0] = r.out[0] = mesh_partial(MESH_AVG);
        rule_add(inout, &r);
    }
}

/* Row dim t of the target lies before (0) or after (1, ...) the classes in the logits. */
static int logits_dim(int target_dim)
{
    return target_dim == 0 ? 0 : target_dim + 1;
}

/* Rows may be split; the classes are whole. */
void rule_cross_entropy(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    for (int t = 0; t < s->in[1].ndim; t++) {
        struct rule r = rule_whole();
        r.in[0] = mesh_shard(logits_dim(t));
        r.in[1] = mesh_shard(t);
        for (int o = 0; o < s->n_out; o++) {
            r.out[o] = s->n_out == 1 ? mesh_shard(t) : mesh_partial(MESH_SUM);
        }
        rule_add(inout, &r);
    }
}

void rule_cross_entropy_grad(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    for (int t = 0; t < s->in[2].ndim; t++) {
        struct rule r = rule_whole();
        r.in[0] = s->in[0].ndim == 0 ? mesh_replicate() : mesh_shard(t);
        r.in[1] = mesh_shard(logits_dim(t));
        r.in[2] = mesh_shard(t);
        r.out[0] = mesh_shard(logits_dim(t));
        rule_add(inout, &r);
    }
}
