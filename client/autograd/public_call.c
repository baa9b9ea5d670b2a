/* client/autograd/public_call.c - the frame around a public operator.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/public_call.h"

#include "autograd/promote.h"
#include "base/error.h"
#include "core/scope.h"

bool public_enter(const char *public_function, mesh_dtensor *const *in, int n)
{
    if (!scope_enter(public_function)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (in[i] == NULL) {
            scope_fail(err_set(MESH_EINVAL, "input %d is NULL", i + 1));
            return false;
        }
        if (tensor_settle(in[i]->local) < 0) {
            scope_fail(err_status());
            return false;
        }
    }
    return true;
}

mesh_dtensor *public_result(const struct object *mark, mesh_dtensor *y)
{
    struct object *kept = y != NULL ? &y->object : NULL;
    scope_sweep(mark, &kept, 1);
    return y;
}

mesh_dtensor *public_apply(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr)
{
    mesh_dtensor *out[OP_MAX_OUTPUTS];
    int r = ag_apply(id, in, attr, out);
    return r < 0 ? scope_fail(r) : out[0];
}

mesh_dtensor *public_promoted(enum op_id id, mesh_dtensor **in, uint32_t which, const struct op_attr *attr)
{
    const struct object *mark = scope_mark();
    int r = promote(&op_table[id], in, which, attr);
    return public_result(mark, r < 0 ? scope_fail(r) : public_apply(id, in, attr));
}

mesh_dtensor *public_op1(const char *public_function, enum op_id id, mesh_dtensor *x, const struct op_attr *attr)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x };
    return public_enter(public_function, in, 1) ? public_apply(id, in, attr) : NULL;
}

mesh_dtensor *public_pair(const char *public_function, enum op_id id, mesh_dtensor *a, mesh_dtensor *b,
                          const struct op_attr *attr)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { a, b };
    return public_enter(public_function, in, 2) ? public_promoted(id, in, 0x3, attr) : NULL;
}
