/* client/dtensor/dispatch.h - apply an operator: shapes, rule, redistribution of the inputs, kernel, wrapping.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_DISPATCH_H
#define DTENSOR_DISPATCH_H

#include "dtensor/dtensor.h"
#include "dtensor/rules.h"
#include "dtensor/shapes.h"

enum op_id {
#define OP(name, ...) OP_##name,
#include "dtensor/ops.def"
#undef OP
    N_OPS
};

enum partial_rule {
    PARTIAL_NONE,  /* no pending input passes through, but for what the rule function says */
    PARTIAL_SUM,   /* all inputs pending sum (or all avg) together */
    PARTIAL_EACH,  /* any one input pending sum or avg, the others whole */
    PARTIAL_FIRST, /* only the first */
    PARTIAL_ANY    /* one input, any pending reduction: it only moves elements */
};

struct op_rule { /* one of the two */
    const char *index;
    rule_fn of;
};

struct op_row {
    const char *name;
    int n_in, n_out;
    struct op_rule rule;
    enum partial_rule partial;
    shape_fn shape;
    kernel_fn kernel;
    const void *user; /* of an operator that a program registered (no row of the table): handed to the two functions */
};
extern const struct op_row op_table[N_OPS];
const struct op_row *op_find(const char *name); /* NULL: no such row */

#define RESHAPE_IS_VIEW 1 /* the mode of a reshape that is refused where it would have to communicate */

/* The result(s) belong to the innermost scope.  in[i] NULL: absent (only the bias of linear may be).  0 or a status with the error
 * set: legality is decided from global facts before any traffic.  No tape: autograd/apply.c adds it. */
int op_apply(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_out);

/* What a shape function looks at. */
void op_facts(const struct op_row *op, mesh_dtensor *const *in, const struct op_attr *attr,
              struct op_shapes *ret_facts);

/* What output 0 would be, without any work or traffic; refuses as op_apply() does. */
struct op_outcome {
    mesh_shape shape;
    mesh_dtype dtype;
    mesh_placements placements;
};
int op_foresee(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr, struct op_outcome *ret_outcome);

/* As op_apply(), of a row outside the table.  id: N_OPS or more, and no other row's in this session. */
int op_apply_row(const struct op_row *op, uint64_t id, mesh_dtensor *const *in, const struct op_attr *attr,
                 mesh_dtensor **ret_out);

/* The cheapest right placements of the inputs and outputs; a pure function of its arguments. */
struct op_choice {
    mesh_placements in[OP_MAX_INPUTS], out[OP_MAX_OUTPUTS];
    double cost;
};
int op_choose(const struct op_row *op, const struct op_shapes *s, int mesh_ndim, const int *mesh_size,
              const mesh_placements *now, struct op_choice *ret_choice);

#endif
