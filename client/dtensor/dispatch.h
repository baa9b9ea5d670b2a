/* client/dtensor/dispatch.h - apply an operator: shapes, rule, redistribution of the inputs, kernel, wrapping.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_DISPATCH_H
#define DTENSOR_DISPATCH_H

#include "dtensor/dtensor.h"
#include "dtensor/rules.h"

enum op_id {
#define OP(name, ...) OP_##name,
#include "dtensor/ops.def"
#undef OP
    N_OPS
};

enum partial_rule {
    PARTIAL_NONE,  /* no pending input passes through */
    PARTIAL_SUM,   /* all inputs pending sum (or all avg) together */
    PARTIAL_EACH,  /* any one input pending sum or avg, the others whole */
    PARTIAL_FIRST, /* only the first */
    PARTIAL_ANY    /* one input, any pending reduction: it only moves elements */
};

typedef int (*shape_fn)(struct op_shapes *inout); /* fills out, out_dtype; normalises attr; MESH_ESHAPE... from global facts */
typedef void (*rule_fn)(const struct op_shapes *s, int parts, struct rule_list *inout);

struct op_row {
    const char       *name;
    int               n_in, n_out;
    const char       *index; /* NULL: rule_of */
    rule_fn           rule_of;
    enum partial_rule partial;
    shape_fn          shape;
    kernel_fn         kernel;
};
extern const struct op_row op_table[N_OPS];
const struct op_row *op_find(const char *name); /* NULL: no such row */

/* The result(s) belong to the innermost scope.  in[i] NULL: absent.  0 or a status with the error set: legality is decided
 * from global facts before any traffic.  No tape: autograd/apply.c adds it. */
int op_apply(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_out);

#endif
