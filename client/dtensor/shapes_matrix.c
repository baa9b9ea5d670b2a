/* client/dtensor/shapes_matrix.c - shape functions of matrix products and of operators that move elements.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/shapes.h"

#include "base/dtype.h"
#include "base/error.h"
#include "tensor/shape.h"

static void result(struct op_shapes *s, mesh_shape shape)
{
    s->out[0] = shape;
    s->out_dtype[0] = s->in_dtype[0];
}

static int refuse(const struct op_shapes *s, const char *why, int64_t a, int64_t b)
{
    char x[SHAPE_TEXT_BYTES], y[SHAPE_TEXT_BYTES];
    return err_set(MESH_ESHAPE, "%s: %s x %s: %s (%lld and %lld)", s->name, shape_text(s->in[0], x, sizeof x),
                   shape_text(s->in[1], y, sizeof y), why, (long long)a, (long long)b);
}

static int need_dims(const struct op_shapes *s, int i, int least, int most)
{
    char x[SHAPE_TEXT_BYTES];
    int n = s->in[i].ndim;
    return n >= least && n <= most ? 0
                                   : err_set(MESH_ESHAPE, "%s: argument %d is %s: it needs %s%d dim%s", s->name, i + 1,
                                             shape_text(s->in[i], x, sizeof x), least == most ? "" : "at least ", least,
                                             least == 1 ? "" : "s");
}

/* Numbers of one dtype; the first of one dim or more, the second of so many. */
static int check_operands(const struct op_shapes *s, int least, int most)
{
    int r = shape_needs_numbers(s);
    r = r < 0 ? r : shape_same_dtypes(s, ALL_INPUTS);
    r = r < 0 ? r : need_dims(s, 0, 1, MESH_MAX_NDIM);
    return r < 0 ? r : need_dims(s, 1, least, most);
}

static int64_t last(mesh_shape s, int back)
{
    return s.dim[s.ndim - back];
}

/* The leading dims of a matrix operand; a vector has none. */
static mesh_shape batch_of(mesh_shape s)
{
    mesh_shape b = s;
    b.ndim = s.ndim > 2 ? s.ndim - 2 : 0;
    return b;
}

int op_shape_matmul(struct op_shapes *s)
{
    mesh_shape a = s->in[0], b = s->in[1], out = { .ndim = 0 };
    int r = check_operands(s, 1, MESH_MAX_NDIM);
    if (r < 0) {
        return r;
    }
    int64_t k = last(a, 1), rows = last(b, b.ndim == 1 ? 1 : 2);
    if (k != rows) {
        char x[SHAPE_TEXT_BYTES], y[SHAPE_TEXT_BYTES];
        return err_set(MESH_ESHAPE, "matmul: %s x %s: %lld != %lld", shape_text(a, x, sizeof x),
                       shape_text(b, y, sizeof y), (long long)k, (long long)rows);
    }
    r = shape_broadcast(batch_of(a), batch_of(b), "matmul", &out);
    if (r == 0 && a.ndim > 1) {
        out.dim[out.ndim++] = last(a, 2);
    }
    if (r == 0 && b.ndim > 1) {
        out.dim[out.ndim++] = last(b, 1);
    }
    result(s, out);
    return r;
}

int op_shape_linear(struct op_shapes *s)
{
    int r = check_operands(s, 2, 2);
    if (r < 0) {
        return r;
    }
    mesh_shape x = s->in[0], w = s->in[1];
    if (last(x, 1) != w.dim[1]) {
        return refuse(s, "x [..., in] and weight [out, in] differ in `in`", last(x, 1), w.dim[1]);
    }
    if (s->has[2] && (s->in[2].ndim != 1 || s->in[2].dim[0] != w.dim[0])) {
        char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
        return err_set(MESH_ESHAPE, "linear: weight %s needs a bias of [%lld], not %s", shape_text(w, a, sizeof a),
                       (long long)w.dim[0], shape_text(s->in[2], b, sizeof b));
    }
    mesh_shape out = x;
    out.dim[x.ndim - 1] = w.dim[0];
    result(s, out);
    return 0;
}

int op_shape_linear_grad_input(struct op_shapes *s)
{
    int r = check_operands(s, 2, 2);
    if (r < 0) {
        return r;
    }
    mesh_shape dy = s->in[0], w = s->in[1];
    if (last(dy, 1) != w.dim[0]) {
        return refuse(s, "dy [..., out] and weight [out, in] differ in `out`", last(dy, 1), w.dim[0]);
    }
    mesh_shape out = dy;
    out.dim[dy.ndim - 1] = w.dim[1];
    result(s, out);
    return 0;
}

int op_shape_linear_grad_weight(struct op_shapes *s)
{
    int r = check_operands(s, 1, MESH_MAX_NDIM);
    if (r < 0) {
        return r;
    }
    mesh_shape dy = s->in[0], x = s->in[1], rows = dy, x_rows = x;
    rows.ndim--;
    x_rows.ndim--;
    if (!shape_equal(rows, x_rows)) {
        return refuse(s, "dy [..., out] and x [..., in] differ in the dims before the last", shape_numel(rows),
                      shape_numel(x_rows));
    }
    result(s, MESH_SHAPE(last(dy, 1), last(x, 1)));
    return 0;
}

int op_shape_transpose(struct op_shapes *s)
{
    int a = 0, b = 0, r = shape_dim(s->in[0], s->attr.dim[0], "transpose", &a);
    mesh_shape out = s->in[0];
    r = r < 0 ? r : shape_dim(s->in[0], s->attr.dim[1], "transpose", &b);
    if (r < 0) {
        return r;
    }
    s->attr.dim[0] = a;
    s->attr.dim[1] = b;
    out.dim[a] = s->in[0].dim[b];
    out.dim[b] = s->in[0].dim[a];
    result(s, out);
    return 0;
}

int op_shape_reshape(struct op_shapes *s)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    int r = shape_check(s->attr.shape, "reshape");
    if (r == 0 && shape_numel(s->attr.shape) != shape_numel(s->in[0])) {
        r = err_set(MESH_ESHAPE, "reshape: %s has %lld elements, %s has %lld", shape_text(s->in[0], a, sizeof a),
                    (long long)shape_numel(s->in[0]), shape_text(s->attr.shape, b, sizeof b),
                    (long long)shape_numel(s->attr.shape));
    }
    result(s, s->attr.shape);
    return r;
}

/* small broadcasts to large: aligned at the last dim, equal or 1. */
static int check_expands(const struct op_shapes *s, mesh_shape small, mesh_shape large)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    int lead = large.ndim - small.ndim;
    bool fits = lead >= 0;
    for (int d = 0; fits && d < small.ndim; d++) {
        fits = small.dim[d] == large.dim[d + lead] || small.dim[d] == 1;
    }
    return fits ? 0
                : err_set(MESH_ESHAPE, "%s: %s does not broadcast to %s", s->name, shape_text(small, a, sizeof a),
                          shape_text(large, b, sizeof b));
}

int op_shape_expand(struct op_shapes *s)
{
    int r = shape_check(s->attr.shape, "expand");
    r = r < 0 ? r : check_expands(s, s->in[0], s->attr.shape);
    result(s, s->attr.shape);
    return r;
}

int op_shape_expand_inverse(struct op_shapes *s)
{
    int r = shape_needs_numbers(s);
    r = r < 0 ? r : shape_check(s->attr.shape, "sum_to");
    r = r < 0 ? r : check_expands(s, s->attr.shape, s->in[0]);
    result(s, s->attr.shape);
    return r;
}
