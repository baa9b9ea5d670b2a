/* client/autograd/grads_arrange.c - gradients of operators that put elements elsewhere: each has another one as its adjoint.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/grads.h"

static int dim_of(mesh_shape s, int dim)
{
    return dim < 0 ? dim + s.ndim : dim;
}

static mesh_dtensor *narrow(mesh_dtensor *x, int dim, int64_t start, int64_t length)
{
    struct op_attr attr = { .dim = { dim }, .index = { start, length } };
    return grad_op1(OP_narrow, x, &attr);
}

/* dy between zeros, to the layout that the input had along dim: no rank makes more than its part. */
static mesh_dtensor *pad_back(const struct grad_call *c, mesh_dtensor *dy, int dim, int64_t before, int64_t after)
{
    const mesh_placements *x = &c->node->in_placements[0];
    struct op_attr attr = { .dim = { dim }, .index = { before, after } };
    mesh_placements p = *x;
    bool is_pending = false;
    for (int m = 0; dy != NULL && m < x->n; m++) {
        bool splits = x->at[m].kind == MESH_IS_SHARD && x->at[m].dim == dim;
        bool completes = splits && dy->placements.at[m].kind == MESH_IS_PARTIAL;
        p.at[m] = completes ? mesh_shard(dim) : dy->placements.at[m];
        is_pending = is_pending || completes;
        attr.mode |= splits ? 1 << m : 0;
    }
    return grad_op1(OP_pad, is_pending ? dtensor_redistribute(dy, &p) : dy, &attr);
}

static void permute_back(struct grad_call *c)
{
    mesh_shape forth = c->node->attr.shape;
    struct op_attr attr = { .shape = forth };
    for (int d = 0; d < forth.ndim; d++) {
        attr.shape.dim[dim_of(forth, (int)forth.dim[d])] = d;
    }
    c->dx[0] = grad_op1(OP_permute, c->dy, &attr);
}
const struct gradient g_permute = { permute_back, { 0 } };

static void flip_back(struct grad_call *c)
{
    c->dx[0] = grad_op1(OP_flip, c->dy, &c->node->attr);
}
const struct gradient g_flip = { flip_back, { 0 } };

static void roll_back(struct grad_call *c)
{
    struct op_attr attr = { .dim = { c->node->attr.dim[0] }, .index = { -c->node->attr.index[0] } };
    c->dx[0] = grad_op1(OP_roll, c->dy, &attr);
}
const struct gradient g_roll = { roll_back, { 0 } };

static void cat_back(struct grad_call *c)
{
    int dim = dim_of(c->dy->shape, c->node->attr.dim[0]);
    int64_t begin = 0;
    for (int i = 0; i < OP_MAX_INPUTS && c->node->in_shape[i].ndim > 0; i++) { /* absent ones have no dims */
        int64_t length = c->node->in_shape[i].dim[dim];
        if (c->wants[i]) {
            c->dx[i] = narrow(c->dy, dim, begin, length);
        }
        begin += length;
    }
}
const struct gradient g_cat = { cat_back, { 0 } };

static void narrow_back(struct grad_call *c)
{
    const struct op_attr *a = &c->node->attr;
    int dim = dim_of(c->dy->shape, a->dim[0]);
    int64_t n = c->node->in_shape[0].dim[dim], start = a->index[0] < 0 ? a->index[0] + n : a->index[0];
    c->dx[0] = pad_back(c, c->dy, dim, start, n - start - a->index[1]);
}
const struct gradient g_narrow = { narrow_back, { 0 } };

static void select_back(struct grad_call *c)
{
    const struct op_attr *a = &c->node->attr;
    mesh_shape x = c->node->in_shape[0], kept = x;
    int dim = dim_of(x, a->dim[0]);
    int64_t n = x.dim[dim], at = a->index[0] < 0 ? a->index[0] + n : a->index[0];
    kept.dim[dim] = 1;
    c->dx[0] = pad_back(c, grad_reshape(c->dy, kept), dim, at, n - at - 1);
}
const struct gradient g_select = { select_back, { 0 } };

static void padding(struct grad_call *c)
{
    const struct op_attr *a = &c->node->attr;
    int dim = dim_of(c->dy->shape, a->dim[0]);
    c->dx[0] = narrow(c->dy, dim, a->index[0], c->node->in_shape[0].dim[dim]);
}
const struct gradient g_pad = { padding, { 0 } };

static void repeat_back(struct grad_call *c)
{
    struct op_attr attr = { .shape = c->node->in_shape[0] };
    c->dx[0] = grad_op1(OP_repeat_backward, c->dy, &attr);
}
const struct gradient g_repeat = { repeat_back, { 0 } };
