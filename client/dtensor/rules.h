/* client/dtensor/rules.h - which placements are right: one-dimensional rules derived from an operator's row.
 *
 * Truth only; what is cheapest is dispatch's business.  "Everything Replicate" is always a rule and comes first.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_RULES_H
#define DTENSOR_RULES_H

#include <mesh/placement.h>

#include "tensor/kernels.h"

#define RULES_MAX 48

struct rule {
    mesh_placement in[OP_MAX_INPUTS];
    mesh_placement out[OP_MAX_OUTPUTS];
};

struct rule_list {
    int         n;
    struct rule at[RULES_MAX];
};

struct op_shapes { /* the global facts a rule may look at */
    int            n_in, n_out;
    mesh_shape     in[OP_MAX_INPUTS], out[OP_MAX_OUTPUTS];
    mesh_dtype     in_dtype[OP_MAX_INPUTS], out_dtype[OP_MAX_OUTPUTS];
    bool           has[OP_MAX_INPUTS];
    struct op_attr attr;
};

struct op_row;
/* The rules for one mesh dim of `parts` ranks (views look at divisibility; `outer` is the product of earlier mesh dims that
 * may already split the same tensor dims). */
void rules_derive(const struct op_row *op, const struct op_shapes *s, int parts, struct rule_list *ret_rules);

#endif
