/* client/autograd/promote.c - the table of type promotion, and the casts that follow from it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/promote.h"

#include "autograd/apply.h"
#include "autograd/grads.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tensor/shape.h"

/* The narrowest first; each holds all before it, but for the pairs below. */
static const int width[] = { [MESH_BOOL] = 0, [MESH_U8] = 1,   [MESH_I8] = 2,  [MESH_I32] = 3, [MESH_I64] = 4,
                             [MESH_F16] = 5,  [MESH_BF16] = 6, [MESH_F32] = 7, [MESH_F64] = 8 };

static const struct {
    mesh_dtype a, b, both;
} pairs[] = {
    { MESH_U8, MESH_I8, MESH_I32 },
    { MESH_F16, MESH_BF16, MESH_F32 },
};

mesh_dtype dtype_promoted(mesh_dtype a, mesh_dtype b)
{
    for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
        if ((pairs[k].a == a && pairs[k].b == b) || (pairs[k].a == b && pairs[k].b == a)) {
            return pairs[k].both;
        }
    }
    return width[a] > width[b] ? a : b;
}

mesh_dtensor *cast_to(mesh_dtensor *x, mesh_dtype t)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x }, *out[OP_MAX_OUTPUTS];
    struct op_attr attr = { .mode = (int32_t)t, .index = { (int64_t)x->dtype } };
    if (x->dtype == t) {
        return x;
    }
    return ag_apply(OP_cast, in, &attr, out) < 0 ? NULL : out[0];
}

int promote_pair(const char *name, mesh_dtensor **in, int first)
{
    mesh_dtensor *a = in[first], *b = in[first + 1];
    if (a->dtype == b->dtype || a->mesh != b->mesh) {
        return 0;
    }
    mesh_shape any;
    int r = shape_broadcast(a->shape, b->shape, name, &any); /* before a cast may have to reduce pending integers */
    mesh_dtype t = dtype_promoted(a->dtype, b->dtype);
    for (int i = first; r == 0 && i < first + 2; i++) {
        in[i] = cast_to(in[i], t);
        r = in[i] == NULL ? (int)mesh_last_error()->status : 0;
    }
    return r;
}

static void cast(struct grad_call *c)
{
    struct op_attr attr = { .mode = (int32_t)c->node->attr.index[0] };
    c->dx[0] = grad_op1(OP_cast, c->dy, &attr);
}
const struct gradient g_cast = { cast, { 0 } };
