/* client/dtensor/shapes_reduce.c - shape functions of reductions, scans, sorts, normalisation and their pieces.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/shapes.h"

#include "base/dtype.h"
#include "base/error.h"
#include "tensor/shape.h"

static bool goes(const struct op_shapes *s, int d)
{
    return (s->attr.dims >> d & 1U) != 0;
}

static int floats_only(const struct op_shapes *s)
{
    return dtype_kind(s->in_dtype[0]) == DTYPE_FLOAT
               ? 0
               : err_set(MESH_EUNSUPPORTED, "%s: %s is not a floating dtype", s->name, dtype_name(s->in_dtype[0]));
}

/* The reduced shape into every output, of one dtype. */
static int reduced(struct op_shapes *s, mesh_dtype t)
{
    int r = op_shape_reduce(s);
    for (int o = 0; o < s->n_out; o++) {
        s->out[o] = s->out[0];
        s->out_dtype[o] = t;
    }
    return r;
}

/* Nothing has no largest element. */
static int refuse_nothing(const struct op_shapes *s)
{
    char text[SHAPE_TEXT_BYTES];
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (goes(s, d) && s->in[0].dim[d] == 0) {
            return err_set(MESH_EINVAL, "%s: dim %d of %s has no elements, and nothing has no %s", s->name, d,
                           shape_text(s->in[0], text, sizeof text), s->name);
        }
    }
    return 0;
}

int op_shape_extreme(struct op_shapes *s)
{
    int r = shape_needs_numbers(s);
    r = r < 0 ? r : reduced(s, s->in_dtype[0]);
    return r < 0 ? r : refuse_nothing(s);
}

int op_shape_truth_of(struct op_shapes *s)
{
    return reduced(s, MESH_BOOL);
}

int op_shape_reduce_float(struct op_shapes *s)
{
    int r = floats_only(s);
    return r < 0 ? r : reduced(s, s->in_dtype[0]);
}

/* The kernel finds indices in the whole tensor. */
int op_shape_index(struct op_shapes *s)
{
    int r = shape_needs_numbers(s);
    r = r < 0 ? r : reduced(s, MESH_I64);
    s->attr.shape = s->in[0];
    return r < 0 ? r : refuse_nothing(s);
}

/* x, and m of x's shape with extent 1 where dims go. */
static int check_kept(const struct op_shapes *s)
{
    char x[SHAPE_TEXT_BYTES], m[SHAPE_TEXT_BYTES];
    bool fits = s->in[0].ndim == s->in[1].ndim && s->in_dtype[0] == s->in_dtype[1];
    for (int d = 0; fits && d < s->in[0].ndim; d++) {
        fits = s->in[1].dim[d] == (goes(s, d) ? 1 : s->in[0].dim[d]);
    }
    return fits ? 0
                : err_set(MESH_ESHAPE, "%s: %s of %s does not go with %s of %s", s->name,
                          shape_text(s->in[1], m, sizeof m), dtype_name(s->in_dtype[1]),
                          shape_text(s->in[0], x, sizeof x), dtype_name(s->in_dtype[0]));
}

int op_shape_deviation(struct op_shapes *s)
{
    int r = op_shape_reduce_float(s);
    return r < 0 ? r : check_kept(s);
}

int op_shape_index_of(struct op_shapes *s)
{
    int r = op_shape_index(s);
    return r < 0 ? r : check_kept(s);
}

static int along(struct op_shapes *s)
{
    int dim = 0, r = 0;
    if (s->in[0].ndim == 0) {
        return err_set(MESH_ESHAPE, "%s: a scalar has no dim to work along", s->name);
    }
    r = shape_dim(s->in[0], s->attr.dim[0], s->name, &dim);
    s->attr.dim[0] = dim;
    return r;
}

int op_shape_scan(struct op_shapes *s)
{
    s->out[0] = s->in[0];
    s->out_dtype[0] = dtype_kind(s->in_dtype[0]) == DTYPE_FLOAT ? s->in_dtype[0] : MESH_I64;
    return along(s);
}

int op_shape_sort(struct op_shapes *s)
{
    s->out[0] = s->out[1] = s->in[0];
    s->out_dtype[0] = s->in_dtype[0];
    s->out_dtype[1] = MESH_I64;
    int r = shape_needs_numbers(s);
    return r < 0 ? r : along(s);
}

int op_shape_topk(struct op_shapes *s)
{
    char text[SHAPE_TEXT_BYTES];
    int r = op_shape_sort(s), d = s->attr.dim[0];
    int64_t k = s->attr.index[0];
    if (r == 0 && (k < 0 || k > s->in[0].dim[d])) {
        r = err_set(MESH_EINVAL, "topk: %lld of the %lld elements along dim %d of %s", (long long)k,
                    (long long)s->in[0].dim[d], d, shape_text(s->in[0], text, sizeof text));
    }
    if (r == 0) {
        s->out[0].dim[d] = s->out[1].dim[d] = k;
    }
    return r;
}

int op_shape_put_along(struct op_shapes *s)
{
    int r = floats_only(s);
    r = r < 0 ? r : along(s);
    if (r == 0 && (!shape_equal(s->in[0], s->in[1]) || s->in_dtype[1] != MESH_I64)) {
        r = err_set(MESH_ESHAPE, "put_along: indices do not go with the values");
    }
    s->out[0] = s->in[0];
    s->out_dtype[0] = s->in_dtype[0];
    if (r == 0) {
        s->out[0].dim[s->attr.dim[0]] = s->attr.index[0];
    }
    return r;
}

/* The last index[0] dims of x, which weight and bias have too. */
static int check_normalized(const struct op_shapes *s, int x, int first_parameter)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES], c[SHAPE_TEXT_BYTES];
    int64_t n = s->attr.index[0];
    mesh_shape whole = s->in[x], wanted = { .ndim = (int)n };
    if (n < 1 || n > whole.ndim) {
        return err_set(MESH_EINVAL, "%s: over the last %lld dims of %s: at least 1, at most %d", s->name, (long long)n,
                       shape_text(whole, a, sizeof a), whole.ndim);
    }
    for (int d = 0; d < wanted.ndim; d++) {
        wanted.dim[d] = whole.dim[whole.ndim - wanted.ndim + d];
    }
    for (int i = first_parameter; i < s->n_in; i++) {
        if (s->has[i] && !shape_equal(s->in[i], wanted)) {
            return err_set(MESH_ESHAPE, "%s: %s over its last %lld dims needs a %s of %s, not %s", s->name,
                           shape_text(whole, a, sizeof a), (long long)n, i == first_parameter ? "weight" : "bias",
                           shape_text(wanted, b, sizeof b), shape_text(s->in[i], c, sizeof c));
        }
    }
    return shape_same_dtypes(s, UINT32_C(1) << x | UINT32_MAX << first_parameter);
}

int op_shape_normalize(struct op_shapes *s)
{
    int r = floats_only(s);
    s->out[0] = s->in[0];
    s->out_dtype[0] = s->in_dtype[0];
    return r < 0 ? r : check_normalized(s, 0, 1);
}

int op_shape_normalize_grad_input(struct op_shapes *s)
{
    int r = floats_only(s);
    s->out[0] = s->in[1];
    s->out_dtype[0] = s->in_dtype[1];
    if (r == 0 && !shape_equal(s->in[0], s->in[1])) {
        r = err_set(MESH_ESHAPE, "%s: a gradient and its input differ in shape", s->name);
    }
    return r < 0 ? r : check_normalized(s, 1, 2);
}

int op_shape_normalize_grad_weight(struct op_shapes *s)
{
    int r = op_shape_normalize_grad_input(s), n = (int)s->attr.index[0];
    mesh_shape x = s->in[1], out = { .ndim = n };
    for (int d = 0; r == 0 && d < n; d++) {
        out.dim[d] = x.dim[x.ndim - n + d];
    }
    s->out[0] = out;
    return r;
}

int op_shape_nll_grad(struct op_shapes *s)
{
    struct op_shapes loss = *s; /* the same checks, with the target second */
    loss.n_in = 2;
    loss.n_out = 1;
    loss.in[1] = s->in[2];
    loss.in_dtype[1] = s->in_dtype[2];
    int r = op_shape_cross_entropy(&loss);
    bool fits = s->in_dtype[1] == s->in_dtype[0] && (s->in[1].ndim == 0 || shape_equal(s->in[1], s->in[2]));
    s->attr.value[1] = loss.attr.value[1];
    s->out[0] = s->in[0];
    s->out_dtype[0] = s->in_dtype[0];
    return r < 0 || fits ? r : err_set(MESH_ESHAPE, "nll_grad: a scale of another shape or dtype");
}
