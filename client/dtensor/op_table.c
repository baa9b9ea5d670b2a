/* client/dtensor/op_table.c - the operator table, expanded from ops.def up to the kernel column.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/dispatch.h"

#include <string.h>

/* clang-format off */
#define RULE(f) NULL, rule_##f
#define OP(op, inputs, outputs, index_or_rule, which, shape_function, kernel_function, gradient) \
    [OP_##op] = { .name = #op, .n_in = (inputs), .n_out = (outputs), .rule = { index_or_rule },  \
                  .partial = PARTIAL_##which, .shape = op_##shape_function, .kernel = kernel_function },
const struct op_row op_table[N_OPS] = {
#include "dtensor/ops.def"
};
#undef OP
#undef RULE
/* clang-format on */

const struct op_row *op_find(const char *name)
{
    for (int i = 0; i < N_OPS; i++) {
        if (strcmp(op_table[i].name, name) == 0) {
            return &op_table[i];
        }
    }
    return NULL;
}
