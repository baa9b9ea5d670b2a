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

/* y = x w' + b.  Where the product is pending (k split, or x or w pending), the bias is pending too, so that it counts
 * once. */
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

/* --- convolution -------------------------------------------------------------------------------------------------- */

/* The dims of channels of both inputs and the output. */
static const int *channels_of(rule_fn of)
{
    static const int usual[3] = { 1, 0, 1 }, of_weight_gradient[3] = { 1, 1, 0 };
    return of == rule_conv2d_grad_weight ? of_weight_gradient : usual;
}

bool convolution_keeps_groups(rule_fn of, const struct op_shapes *s, int64_t parts)
{
    const int *dim = channels_of(of);
    int64_t groups = s->attr.groups;
    bool is_alike = s->in[0].dim[dim[0]] == groups && s->in[1].dim[dim[1]] == groups && s->out[0].dim[dim[2]] == groups;
    return is_alike || groups % parts == 0;
}

/* One group: any channels, by letters.  Several: whole groups on each rank, so that images, weight and result are cut
 * alike. */
static void convolution(rule_fn of, const struct op_shapes *s, int parts, const char *const index[2],
                        struct rule_list *inout)
{
    const int *dim = channels_of(of);
    struct rule by_group = rule_whole();
    rules_from_index(index[s->attr.groups == 1 ? 0 : 1], s, inout);
    if (s->attr.groups > 1 && convolution_keeps_groups(of, s, parts)) {
        by_group.in[0] = mesh_shard(dim[0]);
        by_group.in[1] = mesh_shard(dim[1]);
        by_group.out[0] = mesh_shard(dim[2]);
        rule_add(inout, &by_group);
    }
}

void rule_conv2d(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    static const char *const index[2] = { "ncHW,ocKL->noIJ", "nCHW,OCKL->nOIJ" };
    convolution(rule_conv2d, s, parts, index, inout);
}

void rule_conv2d_grad_input(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    static const char *const index[2] = { "noIJ,ocKL->ncHW", "nOIJ,OCKL->nCHW" };
    convolution(rule_conv2d_grad_input, s, parts, index, inout);
}

void rule_conv2d_grad_weight(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    static const char *const index[2] = { "noIJ,ncHW->ocKL", "nOIJ,nCHW->OCKL" };
    convolution(rule_conv2d_grad_weight, s, parts, index, inout);
}
