/* client/autograd/grads_norm.c - gradients of layer_norm and rms_norm.
 *
 * With h the normalised x, r what it was scaled by and g = dy w:
 *     dx = r (g - h mean(g h) - mean g), without the last term for rms_norm        dw = sum of dy h        db = sum of dy
 * Where the normalised dims are sharded it is put together from sums over their shards.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/sharded.h"

static uint32_t normalized_dims(const mesh_dtensor *x, const struct op_attr *attr)
{
    uint32_t dims = 0;
    for (int d = x->shape.ndim - (int)attr->index[0]; d < x->shape.ndim; d++) {
        dims |= UINT32_C(1) << d;
    }
    return dims;
}

/* From parts: x is laid out as it was, dy like it. */
static void from_shards(struct grad_call *c, mesh_dtensor *x, const struct op_attr *attr)
{
    uint32_t dims = normalized_dims(x, attr);
    mesh_dtensor *dy = dtensor_redistribute(c->dy, &x->placements), *mean = NULL;
    mesh_dtensor *scale = normalizer(x, attr, &mean), *w = c->node->in[1];
    mesh_dtensor *h = grad_op2(OP_mul, attr->mode == 1 ? x : grad_op2(OP_sub, x, mean, NULL), scale, NULL);
    if (c->wants[0]) {
        mesh_dtensor *g = w != NULL ? grad_op2(OP_mul, dy, w, NULL) : dy;
        mesh_dtensor *gh = grad_op2(OP_mul, g, h, NULL);
        mesh_dtensor *centered = attr->mode == 1 || g == NULL ? g : grad_op2(OP_sub, g, mean_kept(g, dims), NULL);
        mesh_dtensor *along_h = grad_op2(OP_mul, h, gh == NULL ? NULL : mean_kept(gh, dims), NULL);
        c->dx[0] = grad_op2(OP_mul, scale, grad_op2(OP_sub, centered, along_h, NULL), NULL);
    }
    if (c->wants[1]) {
        c->dx[1] = grad_sum_to(grad_op2(OP_mul, dy, h, NULL), c->node->in_shape[1]);
    }
}

static void normalize(struct grad_call *c, int mode)
{
    struct op_attr attr = { .index = { c->node->attr.index[0] }, .value = { c->node->attr.value[0] }, .mode = mode };
    mesh_dtensor *x = c->node->in[0]; /* not needed by a bias */
    if (c->wants[2]) {
        c->dx[2] = grad_sum_to(c->dy, c->node->in_shape[2]);
    }
    if (!c->wants[0] && !c->wants[1]) {
        return;
    }
    if (is_sharded_along(x, normalized_dims(x, &attr))) {
        x = completed(x);
        if (x != NULL) {
            from_shards(c, x, &attr);
        }
        return;
    }
    if (c->wants[0]) {
        mesh_dtensor *in[OP_MAX_INPUTS] = { c->dy, x, c->node->in[1] };
        c->dx[0] = grad_op(OP_normalize_grad_input, in, &attr);
    }
    if (c->wants[1]) {
        c->dx[1] = grad_op2(OP_normalize_grad_weight, c->dy, x, &attr);
    }
}

static void layer_norm(struct grad_call *c)
{
    normalize(c, 0);
}
const struct gradient g_layer_norm = { layer_norm, { NEEDS_IN0 | NEEDS_IN1, NEEDS_IN0, 0 } };

static void rms_norm(struct grad_call *c)
{
    normalize(c, 1);
}
const struct gradient g_rms_norm = { rms_norm, { NEEDS_IN0 | NEEDS_IN1, NEEDS_IN0 } };
