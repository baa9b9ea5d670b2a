/* client/dtensor/rules.h - which placements are right: one-dimensional rules derived from an operator's row.
 *
 * Truth only; what is cheapest is dispatch's business.  "Everything Replicate" is always a rule and comes first.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_RULES_H
#define DTENSOR_RULES_H

#include <mesh/placement.h>

#include "tensor/kernels.h"

#define RULES_MAX 96

struct rule {
    mesh_placement in[OP_MAX_INPUTS]; /* of an absent input: Replicate */
    mesh_placement out[OP_MAX_OUTPUTS];
};

struct rule_list {
    int n;
    struct rule at[RULES_MAX];
};

struct op_shapes { /* the global facts a rule may look at */
    const char *name;
    int n_in, n_out;
    mesh_shape in[OP_MAX_INPUTS], out[OP_MAX_OUTPUTS];
    mesh_dtype in_dtype[OP_MAX_INPUTS], out_dtype[OP_MAX_OUTPUTS];
    bool has[OP_MAX_INPUTS];
    int mesh_ndim; /* above 1, views also propose what is right only together with other mesh dims: whoever
                                 combines rules asks rules_fit_together() about the whole */
    struct op_attr attr;
    const void *user; /* of an operator that a program registered: whose it is */
    /* On the mesh dim that rules are derived for; kind 0: not known.  Strided rules are only derived for the strides
     * there are. */
    mesh_placement now[OP_MAX_INPUTS];
    int n_earlier, earlier[MESH_MAX_MESH_NDIM]; /* sizes of the mesh dims before it that split input 0 */
};

struct op_row;
/* The rules for one mesh dim of `parts` ranks (only views look at parts). */
void rules_derive(const struct op_row *op, const struct op_shapes *s, int parts, struct rule_list *ret_rules);

/* The local part under `in` of a tensor of shape from is, element by element and in order, the part under `out` of the
 * same elements seen as shape `to`, at every coordinate of the mesh. */
bool reshape_is_exact(mesh_shape from, mesh_shape to, int mesh_ndim, const int *mesh_size, const mesh_placements *in,
                      const mesh_placements *out);

/* Dims of two shapes of the same elements that share strides of the whole: only they can be split alike. */
bool dims_overlap(mesh_shape from, int i, mesh_shape to, int j);

/* For rule functions: adds a rule unless it stands there already. */
void rule_add(struct rule_list *rules, const struct rule *r);
struct rule rule_whole(void); /* everything Replicate */
void rules_from_index(const char *index, const struct op_shapes *s, struct rule_list *inout);
bool rules_is_float(const struct op_shapes *s); /* all inputs are */

/* Rule functions by the name in ops.def. */
typedef void (*rule_fn)(const struct op_shapes *s, int parts, struct rule_list *inout);

/* Whether groups (heads of k, or channels) are whole when their dim is cut into so many parts. */
bool attention_keeps_groups(const struct op_shapes *s, int64_t parts);
bool convolution_keeps_groups(rule_fn of, const struct op_shapes *s, int64_t parts);

struct rule_mesh {
    int ndim;
    const int *size;
};
/* Whether one rule for each mesh dim makes a layout: in and out are what they say together. */
bool rules_fit_together(rule_fn of, const struct op_shapes *s, const struct rule_mesh *m, const mesh_placements *in,
                        const mesh_placements *out);

void rule_add_tensors(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_sub_tensors(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_negate(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_scale(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_add_scalar(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_monotone(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_matmul(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_linear(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_conv2d(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_conv2d_grad_input(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_conv2d_grad_weight(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_attention(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_attention_grad_q(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_attention_grad_kv(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_transpose(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_reshape(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_expand(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_sum_to(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_reduce(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_along(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_cross_entropy(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_cross_entropy_grad(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_permute(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_flip(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_roll(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_cat(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_narrow(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_select(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_pad(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_repeat(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_repeat_backward(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_take(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_take_backward(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_gather(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_scatter_add(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_leaky(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_power(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_pointwise(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_maximum(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_minimum(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_bitwise_and(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_bitwise_or(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_bitwise_xor(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_where(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_masked_fill(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_cast(const struct op_shapes *s, int parts, struct rule_list *inout);
/* rules_reduce.c */
void rule_amax(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_amin(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_prod(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_nonzero_prod(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_all(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_any(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_sums(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_lowest(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_reduce_whole(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_normalize(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_normalize_grad(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_nll_loss(const struct op_shapes *s, int parts, struct rule_list *inout);
void rule_nll_grad(const struct op_shapes *s, int parts, struct rule_list *inout);

#endif
