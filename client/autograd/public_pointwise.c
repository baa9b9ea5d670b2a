/* client/autograd/public_pointwise.c - the operators of mesh/ops_pointwise.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_pointwise.h>

#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "base/error.h"
#include "core/scope.h"
#include "dtensor/equal.h"
#include "tensor/shape.h"

#define OF_ONE(name)                                                                                                   \
    MESH_API mesh_dtensor *mesh_##name(mesh_dtensor *x)                                                                \
    {                                                                                                                  \
        return public_op1(__func__, OP_##name, x, NULL);                                                               \
    }
#define OF_TWO(name)                                                                                                   \
    MESH_API mesh_dtensor *mesh_##name(mesh_dtensor *a, mesh_dtensor *b)                                               \
    {                                                                                                                  \
        return public_pair(__func__, OP_##name, a, b, NULL);                                                           \
    }
OF_ONE(abs)
OF_ONE(ceil)
OF_ONE(cos)
OF_ONE(erf)
OF_ONE(exp)
OF_ONE(expm1)
OF_ONE(floor)
OF_ONE(log)
OF_ONE(log1p)
OF_ONE(reciprocal)
OF_ONE(round)
OF_ONE(rsqrt)
OF_ONE(sigmoid)
OF_ONE(sign)
OF_ONE(silu)
OF_ONE(sin)
OF_ONE(softplus)
OF_ONE(sqrt)
OF_ONE(square)
OF_ONE(isnan)
OF_ONE(logical_not)
OF_ONE(bitwise_not)
OF_TWO(maximum)
OF_TWO(minimum)
OF_TWO(pow)
OF_TWO(eq)
OF_TWO(ne)
OF_TWO(lt)
OF_TWO(le)
OF_TWO(gt)
OF_TWO(ge)
OF_TWO(logical_and)
OF_TWO(logical_or)
OF_TWO(bitwise_and)
OF_TWO(bitwise_or)
OF_TWO(bitwise_xor)

MESH_API mesh_dtensor *mesh_clamp(mesh_dtensor *x, double min, double max)
{
    return public_op1(__func__, OP_clamp, x, &(struct op_attr){ .value = { min, max } });
}

MESH_API mesh_dtensor *mesh_leaky_relu(mesh_dtensor *x, double negative_slope)
{
    return public_op1(__func__, OP_leaky_relu, x, &(struct op_attr){ .value = { negative_slope } });
}

MESH_API mesh_dtensor *mesh_pow_scalar(mesh_dtensor *x, double exponent)
{
    return public_op1(__func__, OP_pow_scalar, x, &(struct op_attr){ .value = { exponent } });
}

MESH_API mesh_dtensor *mesh_lerp(mesh_dtensor *a, mesh_dtensor *b, double weight)
{
    return public_pair(__func__, OP_lerp, a, b, &(struct op_attr){ .value = { weight } });
}

MESH_API mesh_dtensor *mesh_where(mesh_dtensor *condition, mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { condition, a, b };
    return public_enter(__func__, in, 3) ? public_promoted(OP_where, in, 0x6, NULL) : NULL;
}

MESH_API mesh_dtensor *mesh_masked_fill(mesh_dtensor *x, mesh_dtensor *mask, double value)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, mask };
    return public_enter(__func__, in, 2) ? public_apply(OP_masked_fill, in, &(struct op_attr){ .value = { value } })
                                         : NULL;
}

MESH_API mesh_dtensor *mesh_tril(mesh_dtensor *x, int64_t diagonal)
{
    return public_op1(__func__, OP_tril, x, &(struct op_attr){ .index = { diagonal } });
}

MESH_API mesh_dtensor *mesh_triu(mesh_dtensor *x, int64_t diagonal)
{
    return public_op1(__func__, OP_triu, x, &(struct op_attr){ .index = { diagonal } });
}

MESH_API mesh_dtensor *mesh_cast(mesh_dtensor *x, mesh_dtype dtype)
{
    struct op_attr attr = { .mode = (int32_t)dtype };
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    attr.index[0] = (int64_t)x->dtype;
    return public_apply(OP_cast, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &attr);
}

MESH_API bool mesh_equal(mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { a, b }, *differs[OP_MAX_OUTPUTS];
    bool is_equal = false;
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, in, 2)) {
        return false;
    }
    if (a->mesh == b->mesh && !shape_equal(a->shape, b->shape)) {
        return false;
    }
    bool was_on = tape_set(false);
    int r = promote(&op_table[OP_ne], in, 0x3, NULL);
    r = r < 0 ? r : apply_plain(OP_ne, in, NULL, differs);
    r = r < 0 ? r : dtensor_has_none(differs[0], &is_equal);
    tape_set(was_on);
    if (r < 0) {
        scope_fail(r);
    }
    scope_sweep(mark, NULL, 0);
    return is_equal;
}
