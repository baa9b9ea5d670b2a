/* client/autograd/promote.c - the table of type promotion, and the casts that follow from it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/promote.h"

#include "autograd/apply.h"
#include "autograd/grads.h"
#include "base/dtype.h"
#include "base/error.h"

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

/* false: nothing to do, or several meshes, which is for the operator to refuse. */
static bool find_promoted(mesh_dtensor *const *in, uint32_t which, mesh_dtype *ret_dtype)
{
    const mesh_dtensor *first = NULL;
    bool differ = false;
    for (int i = 0; i < OP_MAX_INPUTS && which >> i != 0; i++) {
        if ((which >> i & 1) == 0 || in[i] == NULL) {
            continue;
        }
        if (first != NULL && in[i]->mesh != first->mesh) {
            return false;
        }
        differ = differ || (first != NULL && in[i]->dtype != first->dtype);
        *ret_dtype = first == NULL ? in[i]->dtype : dtype_promoted(*ret_dtype, in[i]->dtype);
        first = first != NULL ? first : in[i];
    }
    return differ;
}

int promote(const struct op_row *op, mesh_dtensor **in, uint32_t which, const struct op_attr *attr)
{
    static const struct op_attr none = { .dims = 0 };
    struct op_shapes s;
    mesh_dtype t = MESH_F32;
    if (!find_promoted(in, which, &t)) {
        return 0;
    }
    op_facts(op, in, attr != NULL ? attr : &none, &s);
    for (int i = 0; i < op->n_in; i++) {
        s.in_dtype[i] = which >> i & 1 ? t : s.in_dtype[i];
    }
    int r = op->shape(&s);
    for (int i = 0; r == 0 && i < OP_MAX_INPUTS && which >> i != 0; i++) {
        if (which >> i & 1 && in[i] != NULL) {
            in[i] = cast_to(in[i], t);
            r = in[i] == NULL ? err_status() : 0;
        }
    }
    return r;
}

static void cast(struct grad_call *c)
{
    struct op_attr attr = { .mode = (int32_t)c->node->attr.index[0] };
    c->dx[0] = grad_op1(OP_cast, c->dy, &attr);
}
const struct gradient g_cast = { cast, { 0 } };
