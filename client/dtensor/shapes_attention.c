/* client/dtensor/shapes_attention.c - shape functions of attention and its gradients.
 *
 * They fill in how many heads of q see one of k (attr.groups), and how many heads k has (attr.index[1]).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"
#include "base/error.h"
#include "dtensor/shapes.h"
#include "tensor/shape.h"

static int64_t back(mesh_shape s, int from_end)
{
    return from_end > s.ndim ? 1 : s.dim[s.ndim - from_end];
}

static bool heads_fit(int64_t q, int64_t k)
{
    return q == k || (k > 0 && q % k == 0);
}

static bool are_shapes_right(mesh_shape q, mesh_shape k, mesh_shape v)
{
    bool fits = q.ndim >= 2 && k.ndim == q.ndim && v.ndim == q.ndim;
    for (int d = 0; fits && d < q.ndim - 2; d++) {
        bool is_head = d == q.ndim - 3;
        fits = k.dim[d] == v.dim[d] && (is_head ? heads_fit(q.dim[d], k.dim[d]) : q.dim[d] == k.dim[d]);
    }
    return fits && back(q, 1) == back(k, 1) && back(k, 2) == back(v, 2);
}

static int floats_only(mesh_dtype t)
{
    return dtype_kind(t) == DTYPE_FLOAT
               ? 0
               : err_set(MESH_EUNSUPPORTED, "scaled_dot_product_attention works on floating dtypes, not on %s",
                         dtype_name(t));
}

/* q, k and v begin at input `first`. */
static int check(struct op_shapes *s, int first)
{
    char x[SHAPE_TEXT_BYTES], y[SHAPE_TEXT_BYTES], z[SHAPE_TEXT_BYTES];
    mesh_shape q = s->in[first], k = s->in[first + 1], v = s->in[first + 2];
    mesh_dtype t = s->in_dtype[first];
    if (!are_shapes_right(q, k, v)) {
        return err_set(
            MESH_ESHAPE,
            "scaled_dot_product_attention: q %s, k %s, v %s: [..., l, e], [..., s, e] and [..., s, f] with the "
            "same leading dims (batch, heads) are needed; k and v may have fewer heads, which divide q's",
            shape_text(q, x, sizeof x), shape_text(k, y, sizeof y), shape_text(v, z, sizeof z));
    }
    if (s->in_dtype[first + 1] != t || s->in_dtype[first + 2] != t) {
        return err_set(MESH_EINVAL, "scaled_dot_product_attention: q is %s, k %s, v %s: all must have one dtype",
                       dtype_name(t), dtype_name(s->in_dtype[first + 1]), dtype_name(s->in_dtype[first + 2]));
    }
    if (s->attr.index[0] < 0) {
        return err_set(MESH_EINVAL, "scaled_dot_product_attention: the first row stands at place %lld of k",
                       (long long)s->attr.index[0]);
    }
    int r = floats_only(t);
    if (r < 0) {
        return r;
    }
    s->attr.index[1] = back(k, 3);
    s->attr.groups = back(k, 3) > 0 ? (int32_t)(back(q, 3) / back(k, 3)) : 1;
    s->attr.groups = s->attr.groups > 0 ? s->attr.groups : 1;
    return 0;
}

static mesh_dtype stats_dtype(mesh_dtype t)
{
    return t == MESH_F64 ? MESH_F64 : MESH_F32;
}

int op_shape_attention(struct op_shapes *s)
{
    int r = check(s, 0);
    mesh_shape y = s->in[0], lse = y;
    if (r < 0) {
        return r;
    }
    y.dim[y.ndim - 1] = back(s->in[2], 1);
    lse.ndim--;
    lse.dim[lse.ndim] = 0;
    s->out[0] = y;
    s->out[1] = lse;
    s->out_dtype[0] = s->in_dtype[0];
    s->out_dtype[1] = stats_dtype(s->in_dtype[0]);
    return 0;
}

/* dy, y, lse */
int op_shape_attention_stats(struct op_shapes *s)
{
    s->out[0] = s->in[0];
    s->out[0].dim[s->out[0].ndim - 1] = 2;
    s->out_dtype[0] = stats_dtype(s->in_dtype[0]);
    return floats_only(s->in_dtype[0]);
}

/* dy, q, k, v, stats */
int op_shape_attention_grad_q(struct op_shapes *s)
{
    int r = check(s, 1);
    s->out[0] = s->in[1];
    s->out_dtype[0] = s->in_dtype[1];
    return r;
}

int op_shape_attention_grad_kv(struct op_shapes *s)
{
    int r = check(s, 1);
    for (int o = 0; o < 2; o++) {
        s->out[o] = s->in[2 + o];
        s->out_dtype[o] = s->in_dtype[2 + o];
    }
    return r;
}
