/* client/dtensor/equal.c - counts truth values over all ranks of a mesh in one small all_reduce.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/equal.h"

#include <string.h>

#include "base/check.h"
#include "comm/collective.h"
#include "tensor/tensor.h"

int dtensor_has_none(const mesh_dtensor *x, bool *ret_has_none)
{
    PRE(x->dtype == MESH_BOOL);
    if (!x->mesh->is_member) {
        *ret_has_none = false;
        return 0;
    }
    uint8_t found = x->local->n > 0 && memchr(x->local->data, 1, (size_t)x->local->n) != NULL;
    struct collective_call call = {
        .kind = MESH_COMM_ALL_REDUCE, .dtype = MESH_U8, .op = MESH_MAX, .count = 1, .in = &found, .out = &found
    };
    int r = collective_run(x->mesh->whole, &call);
    if (r == 0) {
        *ret_has_none = found == 0;
    }
    return r;
}
