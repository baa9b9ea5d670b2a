/* client/autograd/grads_move.c - gradients of views and of sums: each is the other's adjoint.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/grads.h"

#include "tensor/shape.h"

static void transpose(struct grad_call *c)
{
    c->dx[0] = grad_op1(OP_transpose, c->dy, &c->node->attr);
}
const struct gradient g_transpose = { transpose, { 0 } };

static void reshape(struct grad_call *c)
{
    c->dx[0] = grad_reshape(c->dy, c->node->in_shape[0]);
}
const struct gradient g_reshape = { reshape, { 0 } };

static void expand(struct grad_call *c)
{
    c->dx[0] = grad_sum_to(c->dy, c->node->in_shape[0]);
}
const struct gradient g_expand = { expand, { 0 } };

/* Where the input was split along a dim that was summed, dx is split alike: each rank makes its own part and no more.
 * false: some dim that was summed is split in dy itself. */
static bool find_spread(const struct grad_call *c, const mesh_dtensor *dy, mesh_placements *ret_placements)
{
    const mesh_placements *x = &c->node->in_placements[0];
    *ret_placements = dy->placements;
    for (int m = 0; m < dy->placements.n; m++) {
        mesh_placement now = dy->placements.at[m], was = x->at[m];
        if (placement_is_shard(now) && (c->node->attr.dims >> now.dim & 1U) != 0) {
            return false;
        }
        if (now.kind == MESH_IS_REPLICATE && placement_is_shard(was) && (c->node->attr.dims >> was.dim & 1U) != 0) {
            ret_placements->at[m] = was;
        }
    }
    return true;
}

static mesh_dtensor *expand_by_parts(mesh_dtensor *dy, mesh_shape shape, const mesh_placements *p)
{
    static const struct op_attr none;
    const mesh_device_mesh *m = dy->mesh;
    mesh_shape part = m->is_member ? layout_local_shape(shape, m->size, m->coordinate, p) : MESH_SHAPE(0);
    struct mesh_tensor *local = tensor_settle(dy->local) < 0 ? NULL : tensor_new(part, dy->dtype);
    struct kernel_call call = { .in = { dy->local }, .out = { local }, .attr = &none };
    if (local != NULL && m->is_member && kernel_run(k_expand, &call) < 0) {
        tensor_unref(local);
        return NULL;
    }
    return local == NULL ? NULL : dtensor_new(dy->mesh, shape, dy->dtype, p, local);
}

/* dy spread over the dims that were summed. */
static mesh_dtensor *spread(const struct grad_call *c, mesh_dtensor *dy)
{
    mesh_shape x = c->node->in_shape[0], kept = x;
    for (int d = 0; d < x.ndim; d++) {
        if ((c->node->attr.dims & (1U << d)) != 0) {
            kept.dim[d] = 1;
        }
    }
    struct op_attr attr = { .shape = x };
    mesh_placements p;
    dy = grad_reshape(dy, kept);
    if (dy == NULL || shape_equal(kept, x)) {
        return dy;
    }
    return find_spread(c, dy, &p) ? expand_by_parts(dy, x, &p) : grad_op1(OP_expand, dy, &attr);
}

static void sum(struct grad_call *c)
{
    c->dx[0] = spread(c, c->dy);
}
const struct gradient g_sum = { sum, { 0 } };

static void mean(struct grad_call *c)
{
    c->dx[0] = spread(c, grad_scale(c->dy, c->node->attr.value[0]));
}
const struct gradient g_mean = { mean, { 0 } };
