/* client/autograd/sharded.c - reductions along sharded dims.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/sharded.h"

#include "autograd/apply.h"
#include "autograd/border.h"
#include "base/dtype.h"
#include "dtensor/along.h"
#include "tensor/shape.h"

bool is_sharded_along(const mesh_dtensor *x, uint32_t dims)
{
    for (int i = 0; i < x->placements.n; i++) {
        mesh_placement p = x->placements.at[i];
        if (placement_is_shard(p) && (dims >> p.dim & 1U) != 0 && x->mesh->size[i] > 1) {
            return true;
        }
    }
    return false;
}

/* Pending reductions done, and shards in one piece; false: it is so already. */
static bool is_unsettled(const mesh_dtensor *x, mesh_placements *ret_placements)
{
    bool has_any = false;
    *ret_placements = x->placements;
    for (int i = 0; i < x->placements.n; i++) {
        mesh_placement *p = &ret_placements->at[i];
        has_any = has_any || p->kind == MESH_IS_PARTIAL || p->kind == MESH_IS_STRIDED_SHARD;
        *p = p->kind == MESH_IS_PARTIAL ? mesh_replicate() : p->kind == MESH_IS_STRIDED_SHARD ? mesh_shard(p->dim) : *p;
    }
    return has_any;
}

mesh_dtensor *settled(mesh_dtensor *x)
{
    mesh_placements p;
    return x != NULL && is_unsettled(x, &p) ? ag_redistribute(x, &p) : x;
}

mesh_dtensor *completed(mesh_dtensor *x)
{
    mesh_placements p;
    return x != NULL && is_unsettled(x, &p) ? dtensor_redistribute(x, &p) : x;
}

mesh_dtensor *recorded(const struct tape_entry *e, mesh_dtensor *y)
{
    return y == NULL || !tape_wants(e->in, e->n_in) || tape_record(e, y) == 0 ? y : NULL;
}

mesh_shape kept_shape(mesh_shape x, uint32_t dims)
{
    for (int d = 0; d < x.ndim; d++) {
        x.dim[d] = (dims >> d & 1U) != 0 ? 1 : x.dim[d];
    }
    return x;
}

mesh_dtensor *sum_kept(mesh_dtensor *x, uint32_t dims)
{
    return completed(grad_op1(OP_sum, x, &(struct op_attr){ .dims = dims, .keepdim = 1 }));
}

mesh_dtensor *mean_kept(mesh_dtensor *x, uint32_t dims)
{
    return completed(grad_op1(OP_mean, x, &(struct op_attr){ .dims = dims, .keepdim = 1 }));
}

static mesh_dtensor *extreme_kept(enum op_id id, mesh_dtensor *x, uint32_t dims)
{
    return completed(grad_op1(id, x, &(struct op_attr){ .dims = dims, .keepdim = 1 }));
}

/* sum exp(x - m), dims kept. */
static mesh_dtensor *exp_sum(mesh_dtensor *x, mesh_dtensor *m, uint32_t dims, int mode)
{
    return completed(grad_op2(OP_exp_sum, x, m, &(struct op_attr){ .dims = dims, .keepdim = 1, .mode = mode }));
}

mesh_dtensor *sharded_softmax(mesh_dtensor *x, int dim, bool is_log)
{
    uint32_t dims = UINT32_C(1) << dim;
    mesh_dtensor *m = extreme_kept(OP_amax, x, dims), *s = exp_sum(x, m, dims, 0);
    mesh_dtensor *in[OP_MAX_INPUTS] = { x, m, s };
    return s == NULL ? NULL : grad_op(OP_softmax_piece, in, &(struct op_attr){ .mode = is_log });
}

mesh_dtensor *softmax_of(enum op_id id, mesh_dtensor *x, int dim)
{
    struct op_attr attr = { .dim = { dim } };
    mesh_dtensor *in[OP_MAX_INPUTS] = { x }, *out[OP_MAX_OUTPUTS];
    bool is_float = dtype_kind(x->dtype) == DTYPE_FLOAT; /* others are refused by the operator itself */
    if (!is_sharded_along(x, UINT32_C(1) << dim) || x->shape.dim[dim] == 0 || !is_float) {
        return ag_apply(id, in, &attr, out) < 0 ? NULL : out[0];
    }
    x = in[0] = settled(x);
    if (x == NULL) {
        return NULL;
    }
    struct tape_entry e = {
        .name = op_table[id].name, .gradient = gradient_of(id), .attr = &attr, .n_in = 1, .in = in
    };
    return recorded(&e, sharded_softmax(x, dim, id == OP_log_softmax));
}

/* The result of a reduction that kept its dims, with or without them. */
static mesh_dtensor *without_dims(mesh_dtensor *y, const struct op_attr *attr)
{
    if (y == NULL || attr->keepdim) {
        return y;
    }
    mesh_shape to = { .ndim = 0 };
    for (int d = 0; d < y->shape.ndim; d++) {
        if ((attr->dims >> d & 1U) == 0) {
            to.dim[to.ndim++] = y->shape.dim[d];
        }
    }
    return grad_reshape(y, to);
}

/* An infinite m counts as 0, which makes log(0) of a line of -inf, and log(inf) of one with inf. */
mesh_dtensor *sharded_logsumexp(mesh_dtensor *x, const struct op_attr *attr)
{
    mesh_dtensor *m = extreme_kept(OP_amax, x, attr->dims);
    mesh_dtensor *s = exp_sum(x, m, attr->dims, 1);
    return without_dims(grad_op2(OP_plus_log, m, s, &(struct op_attr){ .value = { 1 }, .mode = 1 }), attr);
}

/* value[0] is 1 / n and value[1] 1 / (n - correction); dims kept. */
static mesh_dtensor *variance_around(mesh_dtensor *x, mesh_dtensor *mean, const struct op_attr *attr)
{
    struct op_attr sums = { .dims = attr->dims, .keepdim = 1 };
    mesh_dtensor *out[OP_MAX_OUTPUTS] = { NULL }, *in[OP_MAX_INPUTS] = { x, mean };
    if (mean == NULL || apply_plain(OP_deviation_sums, in, &sums, out) < 0) {
        return NULL;
    }
    mesh_dtensor *square = completed(out[0]);
    return grad_op2(OP_variance, square, square != NULL ? completed(out[1]) : NULL,
                    &(struct op_attr){ .value = { attr->value[0], attr->value[1] } });
}

mesh_dtensor *sharded_var(mesh_dtensor *x, const struct op_attr *attr)
{
    return without_dims(variance_around(x, mean_kept(x, attr->dims), attr), attr);
}

mesh_dtensor *sharded_index(enum op_id id, mesh_dtensor *x, const struct op_attr *attr)
{
    mesh_dtensor *m = extreme_kept(id == OP_argmax ? OP_amax : OP_amin, x, attr->dims);
    return completed(grad_op2(OP_index_of, x, m, attr));
}

mesh_dtensor *norm_of(mesh_dtensor *x, const struct op_attr *attr)
{
    double p = attr->value[0];
    mesh_dtensor *sum = completed(grad_op1(OP_power_sum, x, attr));
    return sum == NULL || p == 0 || p == 1 ? sum : grad_op1(OP_root, sum, &(struct op_attr){ .value = { p } });
}

mesh_dtensor *cumsum_of(mesh_dtensor *x, const struct op_attr *attr)
{
    mesh_dtensor *y = NULL;
    if (x == NULL || !is_sharded_along(x, UINT32_C(1) << attr->dim[0])) {
        return grad_op1(OP_cumsum, x, attr);
    }
    x = completed(x);
    return x == NULL || along_cumsum(x, attr, &y) < 0 ? NULL : y;
}

mesh_dtensor *normalizer(mesh_dtensor *x, const struct op_attr *attr, mesh_dtensor **ret_mean)
{
    uint32_t dims = 0;
    double n = 1;
    for (int d = x->shape.ndim - (int)attr->index[0]; d < x->shape.ndim; d++) {
        dims |= UINT32_C(1) << d;
        n *= (double)x->shape.dim[d];
    }
    struct op_attr eps = { .value = { attr->value[0] } };
    if (attr->mode == 1) {
        struct op_attr square = { .dims = dims, .keepdim = 1, .value = { 2 } };
        *ret_mean = NULL;
        return grad_op1(OP_inverse_root, grad_scale(completed(grad_op1(OP_power_sum, x, &square)), 1 / n), &eps);
    }
    struct op_attr variance = { .dims = dims, .value = { 1 / n, 1 / n } };
    *ret_mean = mean_kept(x, dims);
    return grad_op1(OP_inverse_root, variance_around(x, *ret_mean, &variance), &eps);
}
