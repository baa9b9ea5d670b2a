/* client/autograd/public_matrix.c - the operators of mesh/ops_matrix.h, composed of simpler ones.
 *
 * Their layouts and gradients are those of the parts.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_matrix.h>

#include <math.h>

#include "autograd/public_call.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

MESH_API mesh_dtensor *mesh_bmm(mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { a, b };
    if (!public_enter(__func__, in, 2)) {
        return NULL;
    }
    if (a->shape.ndim != 3 || b->shape.ndim != 3 || a->shape.dim[0] != b->shape.dim[0]) {
        char x[SHAPE_TEXT_BYTES], y[SHAPE_TEXT_BYTES];
        return scope_fail(err_set(MESH_ESHAPE, "bmm: %s x %s: [b, m, k] and [b, k, n] with one b are needed",
                                  shape_text(a->shape, x, sizeof x), shape_text(b->shape, y, sizeof y)));
    }
    return public_apply(OP_matmul, in, NULL);
}

MESH_API mesh_dtensor *mesh_addmm(mesh_dtensor *bias, mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_dtensor *in[OP_MAX_INPUTS] = { bias, a, b }, *product = NULL;
    mesh_shape all = { .ndim = 0 };
    if (!public_enter(__func__, in, 3)) {
        return NULL;
    }
    int r = 0;
    if (a->shape.ndim != 2 || b->shape.ndim != 2) {
        char x[SHAPE_TEXT_BYTES], y[SHAPE_TEXT_BYTES];
        r = err_set(MESH_ESHAPE, "addmm: %s x %s: two matrices are needed", shape_text(a->shape, x, sizeof x),
                    shape_text(b->shape, y, sizeof y));
    }
    r = r < 0 ? r : shape_broadcast(bias->shape, MESH_SHAPE(a->shape.dim[0], b->shape.dim[1]), "addmm", &all);
    if (r == 0 && !shape_equal(all, MESH_SHAPE(a->shape.dim[0], b->shape.dim[1]))) {
        char x[SHAPE_TEXT_BYTES];
        r = err_set(MESH_ESHAPE, "addmm: a bias of %s does not broadcast to the product's [%lld,%lld]",
                    shape_text(bias->shape, x, sizeof x), (long long)a->shape.dim[0], (long long)b->shape.dim[1]);
    }
    r = r < 0 ? r : ag_apply(OP_matmul, (mesh_dtensor *[OP_MAX_INPUTS]){ a, b }, NULL, &product);
    return r < 0 ? scope_fail(r) : public_apply(OP_add, (mesh_dtensor *[OP_MAX_INPUTS]){ bias, product }, NULL);
}

/* --- attention ------------------------------------------------------------------------------------------------------ */

static int64_t back(mesh_shape s, int from_end)
{
    return s.dim[s.ndim - from_end];
}

static int check_attention(mesh_shape q, mesh_shape k, mesh_shape v)
{
    char x[SHAPE_TEXT_BYTES], y[SHAPE_TEXT_BYTES], z[SHAPE_TEXT_BYTES];
    bool fits = q.ndim >= 2 && k.ndim == q.ndim && v.ndim == q.ndim;
    for (int d = 0; fits && d < q.ndim - 2; d++) {
        fits = q.dim[d] == k.dim[d] && k.dim[d] == v.dim[d];
    }
    fits = fits && back(q, 1) == back(k, 1) && back(k, 2) == back(v, 2);
    return fits ? 0
                : err_set(
                      MESH_ESHAPE,
                      "scaled_dot_product_attention: q %s, k %s, v %s: [..., l, e], [..., s, e] and [..., s, f] with "
                      "the same leading dims (batch, heads) are needed",
                      shape_text(q, x, sizeof x), shape_text(k, y, sizeof y), shape_text(v, z, sizeof z));
}

/* softmax(scale q k' + mask) v; each step's result replaces y. */
static int attend(mesh_dtensor *const *qkv, const mesh_attention_options *o, mesh_dtensor **ret_y)
{
    mesh_dtensor *y = NULL, *keys = NULL;
    int ndim = qkv[0]->shape.ndim;
    int64_t width = back(qkv[0]->shape, 1);
    bool has_scale = o->scale < 0 || o->scale > 0;
    double scale = has_scale ? o->scale : 1 / sqrt((double)width);
    struct op_attr by = { .value = { scale } }, swap = { .dim = { ndim - 2, ndim - 1 } },
                   mask = { .value = { -INFINITY } }, last = { .dim = { ndim - 1 } };
    int r = ag_apply(OP_mul_scalar, (mesh_dtensor *[OP_MAX_INPUTS]){ qkv[0] }, &by, &y);
    r = r < 0 ? r : ag_apply(OP_transpose, (mesh_dtensor *[OP_MAX_INPUTS]){ qkv[1] }, &swap, &keys);
    r = r < 0 ? r : ag_apply(OP_matmul, (mesh_dtensor *[OP_MAX_INPUTS]){ y, keys }, NULL, &y);
    if (r == 0 && o->is_causal) {
        r = ag_apply(OP_causal_fill, (mesh_dtensor *[OP_MAX_INPUTS]){ y }, &mask, &y);
    }
    r = r < 0 ? r : ag_apply(OP_softmax, (mesh_dtensor *[OP_MAX_INPUTS]){ y }, &last, &y);
    r = r < 0 ? r : ag_apply(OP_matmul, (mesh_dtensor *[OP_MAX_INPUTS]){ y, qkv[2] }, NULL, &y);
    *ret_y = y;
    return r;
}

MESH_API mesh_dtensor *mesh_scaled_dot_product_attention_opt(mesh_dtensor *q, mesh_dtensor *k, mesh_dtensor *v,
                                                             const mesh_attention_options *o)
{
    static const mesh_attention_options defaults = { .size = sizeof defaults };
    mesh_dtensor *in[OP_MAX_INPUTS] = { q, k, v }, *y = NULL;
    if (!public_enter(__func__, in, 3)) {
        return NULL;
    }
    int r = check_attention(q->shape, k->shape, v->shape);
    r = r < 0 ? r : attend(in, o != NULL ? o : &defaults, &y);
    return r < 0 ? scope_fail(r) : y;
}
