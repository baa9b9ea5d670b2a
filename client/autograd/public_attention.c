/* client/autograd/public_attention.c - mesh_scaled_dot_product_attention() and its gradient.
 *
 * Beside the inputs and the result one number per row is kept for the gradient: the logarithm of what its softmax
 * divides by.  It is that of all places of k, so each rank finds the gradients by its own places alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_matrix.h>

#include <math.h>

#include "autograd/grads.h"
#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "autograd/sharded.h"
#include "base/error.h"
#include "core/scope.h"
#include "dtensor/attention.h"

/* Saved: q, k, v, lse; the result. */
static void attention(struct grad_call *c)
{
    mesh_dtensor *const *in = c->node->in;
    const struct op_attr *attr = &c->node->attr;
    mesh_dtensor *of_rows[OP_MAX_INPUTS] = { c->dy, c->node->out, in[3] }, *out[OP_MAX_OUTPUTS] = { NULL };
    mesh_dtensor *stats = grad_op(OP_attention_stats, of_rows, NULL);
    mesh_dtensor *all[OP_MAX_INPUTS] = { c->dy, in[0], in[1], in[2], stats };
    if (stats != NULL && c->wants[0]) {
        c->dx[0] = grad_op(OP_attention_grad_q, all, attr);
    }
    if (stats != NULL && (c->wants[1] || c->wants[2]) && apply_plain(OP_attention_grad_kv, all, attr, out) == 0) {
        c->dx[1] = c->wants[1] ? out[0] : NULL;
        c->dx[2] = c->wants[2] ? out[1] : NULL;
    }
}
#define NEEDS_ALL (NEEDS_IN0 | NEEDS_IN1 | NEEDS_IN2 | NEEDS_IN3 | NEEDS_OUT)
static const struct gradient g_attention = { attention, { NEEDS_ALL, NEEDS_ALL, NEEDS_ALL } };

static int attend(mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_y)
{
    mesh_dtensor *out[OP_MAX_OUTPUTS] = { NULL };
    struct op_attr by_keys = *attr;
    by_keys.mode |= ATTENTION_BY_KEYS;
    int r = apply_plain(OP_attention, in, &by_keys, out);
    r = r < 0 ? r : attention_join(in[0], out);
    if (r < 0) {
        return r;
    }
    mesh_dtensor *saved[OP_MAX_INPUTS] = { in[0], in[1], in[2], out[1] };
    struct tape_entry e = {
        .name = "scaled_dot_product_attention", .gradient = &g_attention, .attr = attr, .n_in = 4, .in = saved
    };
    *ret_y = recorded(&e, out[0]);
    return *ret_y != NULL ? 0 : err_status();
}

MESH_API mesh_dtensor *mesh_scaled_dot_product_attention_opt(mesh_dtensor *q, mesh_dtensor *k, mesh_dtensor *v,
                                                             const mesh_attention_options *o)
{
    static const mesh_attention_options defaults = { .size = sizeof defaults };
    mesh_dtensor *in[OP_MAX_INPUTS] = { q, k, v }, *y = NULL;
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, in, 3)) {
        return NULL;
    }
    o = o != NULL ? o : &defaults;
    bool has_scale = o->scale < 0 || o->scale > 0;
    int64_t width = q->shape.ndim > 0 ? q->shape.dim[q->shape.ndim - 1] : 1;
    struct op_attr attr = { .value = { has_scale ? o->scale : 1 / sqrt((double)width) },
                            .index = { o->first },
                            .mode = o->is_causal ? ATTENTION_IS_CAUSAL : 0 };
    int r = promote(&op_table[OP_attention], in, 0x7, &attr);
    r = r < 0 ? r : attend(in, &attr, &y);
    return public_result(mark, r < 0 ? scope_fail(r) : y);
}
