/* tests/truth/conformance_rows.c - the operators of conformance_ops.def, found by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/conformance.h"

#include <string.h>

#define ROW(name, min, max, attrs, expression)                                                                         \
    static int call_##name(mesh_dtensor *const *in, const struct case_attr *a, mesh_dtensor **out)                     \
    {                                                                                                                  \
        (void)a;                                                                                                       \
        out[0] = expression;                                                                                           \
        return 1;                                                                                                      \
    }
#define ROW_DISTRIBUTED ROW
#define ROW_LIST(name, min, max, attrs, count)                                                                         \
    static int call_##name(mesh_dtensor *const *in, const struct case_attr *a, mesh_dtensor **out)                     \
    {                                                                                                                  \
        return (count);                                                                                                \
    }
#include "truth/conformance_ops.def"
#undef ROW
#undef ROW_DISTRIBUTED
#undef ROW_LIST

static const struct op_row rows[] = {
#define ROW(name, min, max, attrs, expression)             { #name, min, max, attrs, call_##name, false },
#define ROW_LIST                                           ROW
#define ROW_DISTRIBUTED(name, min, max, attrs, expression) { #name, min, max, attrs, call_##name, true },
#include "truth/conformance_ops.def"
#undef ROW
#undef ROW_DISTRIBUTED
#undef ROW_LIST
};

const struct op_row *op_row_find(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}
