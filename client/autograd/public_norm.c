/* client/autograd/public_norm.c - layer_norm and rms_norm.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_reduce.h>

#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "autograd/sharded.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

static uint32_t last_dims(mesh_shape s, int n)
{
    return n < 1 || n > s.ndim ? 0 : ((UINT32_C(1) << n) - 1) << (s.ndim - n);
}

/* The shape function's checks, before anything is sent. */
static int check(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr)
{
    struct op_shapes s;
    op_facts(&op_table[id], in, attr, &s);
    return op_table[id].shape(&s);
}

/* y = (x - mean) scale w + b */
static mesh_dtensor *by_shards(mesh_dtensor *const *in, const struct op_attr *attr)
{
    mesh_dtensor *mean = NULL, *scale = normalizer(in[0], attr, &mean);
    mesh_dtensor *centered = attr->mode == 1 ? in[0] : grad_op2(OP_sub, in[0], mean, NULL);
    mesh_dtensor *y = grad_op2(OP_mul, centered, scale, NULL);
    y = in[1] != NULL ? grad_op2(OP_mul, y, in[1], NULL) : y;
    return in[2] != NULL ? grad_op2(OP_add, y, in[2], NULL) : y;
}

static mesh_dtensor *normalize(enum op_id id, mesh_dtensor **in, int n, double eps)
{
    struct op_attr attr = { .index = { n }, .value = { eps }, .mode = id == OP_rms_norm };
    int r = promote(&op_table[id], in, 0x7, &attr);
    if (r == 0 && !is_sharded_along(in[0], last_dims(in[0]->shape, n))) {
        return public_apply(id, in, &attr);
    }
    r = r < 0 ? r : check(id, in, &attr);
    for (int i = 0; r == 0 && i < op_table[id].n_in; i++) {
        mesh_dtensor *x = settled(in[i]);
        r = x == NULL && in[i] != NULL ? err_status() : 0;
        in[i] = x;
    }
    if (r < 0) {
        return scope_fail(r);
    }
    struct tape_entry e = {
        .name = op_table[id].name, .gradient = gradient_of(id), .attr = &attr, .n_in = op_table[id].n_in, .in = in
    };
    mesh_dtensor *y = recorded(&e, by_shards(in, &attr));
    return y != NULL ? y : scope_fail(err_status());
}

MESH_API mesh_dtensor *mesh_layer_norm(mesh_dtensor *x, int normalized_dims, mesh_dtensor *weight, mesh_dtensor *bias,
                                       double eps)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, weight, bias };
    const struct object *mark = scope_mark();
    return public_enter(__func__, in, 1) ? public_result(mark, normalize(OP_layer_norm, in, normalized_dims, eps))
                                         : NULL;
}

MESH_API mesh_dtensor *mesh_rms_norm(mesh_dtensor *x, int normalized_dims, mesh_dtensor *weight, double eps)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, weight };
    const struct object *mark = scope_mark();
    return public_enter(__func__, in, 1) ? public_result(mark, normalize(OP_rms_norm, in, normalized_dims, eps)) : NULL;
}
