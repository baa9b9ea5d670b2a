/* client/tensor/k_pieces.c - the elementwise pieces that reductions over shards are put together from.
 *
 * Each is one EXPR_ line over the elements a, b, c of up to three inputs, broadcast, computed in f64 and rounded once:
 *     exp_shifted   exp(a - b)         mode 1: an infinite b counts as 0; mode 2: only -inf does
 *     softmax_piece exp(a - b) / c   mode 1: its logarithm
 *     plus_log      a + value[0] log b mode 1: an infinite a counts as 0
 *     norm_backward dy x |x|^(p - 2) / n^(p - 1), 0 where the norm n is 0
 *     prod_share    of a = dy times the product of the nonzero elements: a / b where there is no zero (c counts them); for
 *                   the only zero a itself; else 0
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/dtype.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/walk.h"
#include "base/vector.h"

struct piece_row {
    void *out;
    const void *in[3];
    int64_t step[3], n;
    double v0, v1;
    int mode;
};
typedef void (*piece_fn)(const struct piece_row *r);

static inline double shift(double b, int mode)
{
    return (mode == 1 && isinf(b)) || (mode == 2 && isinf(b) && b < 0) ? 0 : b;
}

static inline double norm_slope(double dy, double x, double n, double p)
{
    if (n == 0 || x == 0 || p == 0) {
        return 0;
    }
    double sign = x > 0 ? 1 : -1;
    return p == 2 ? dy * x / n : (p == 1 ? dy * sign : dy * sign * pow(fabs(x) / n, p - 1));
}

static inline double share(double a, double x, double n_zeros)
{
    double whole = n_zeros == 0 ? a / x : 0;
    return x == 0 ? (n_zeros == 1 ? a : 0) : whole;
}

/* clang-format off */
#define EXPR_equal_mask(a, b, c, r)         (double)((a) == (b))
#define EXPR_squared_difference(a, b, c, r) ((a) - (b)) * ((a) - (b))
#define EXPR_exp_shifted(a, b, c, r)        exp((a) - shift(b, (r)->mode))
#define EXPR_softmax_piece(a, b, c, r)      ((r)->mode == 1 ? (a) - (b) - log(c) : exp((a) - (b)) / (c))
#define EXPR_plus_log(a, b, c, r)           shift(a, (r)->mode) + (r)->v0 * log(b)
#define EXPR_variance(a, b, c, r)           ((a) - (b) * (b) * (r)->v0) * (r)->v1
#define EXPR_root(a, b, c, r)               ((r)->v0 == 2 ? sqrt(a) : pow(a, 1 / (r)->v0))
#define EXPR_inverse_root(a, b, c, r)       1 / sqrt((a) + (r)->v0)
#define EXPR_norm_backward(a, b, c, r)      norm_slope(a, b, c, (r)->v0)
#define EXPR_prod_share(a, b, c, r)         share(a, b, c)
#define PIECES(X)               \
    X(equal_mask,         2)    \
    X(squared_difference, 2)    \
    X(exp_shifted,        2)    \
    X(softmax_piece,      3)    \
    X(plus_log,           2)    \
    X(variance,           2)    \
    X(root,               1)    \
    X(inverse_root,       1)    \
    X(norm_backward,      3)    \
    X(prod_share,         3)

#define PIECE_ROW(D, T, U, name)                                                                  \
    static VECTOR_ROW(name##_row_##D, (const struct piece_row *r), (r))                                         \
    {                                                                                             \
        T *out = r->out;                                                                          \
        const T *x = r->in[0], *y = r->in[1], *z = r->in[2];                                      \
        for (int64_t i = 0; i < r->n; i++) {                                                      \
            double a = (double)x[i * r->step[0]];                                                 \
            double b = y != NULL ? (double)y[i * r->step[1]] : 0;                                 \
            double c = z != NULL ? (double)z[i * r->step[2]] : 0;                                 \
            (void)b, (void)c;                                                                     \
            out[i] = (T)(EXPR_##name(a, b, c, r));                                                \
        }                                                                                         \
    }
#define PIECE_ENTRY(D, T, U, name) [MESH_##D] = name##_row_##D,
#define PIECE_TABLE(name, n)                                                                      \
    FLOAT_TYPES(PIECE_ROW, name)                                                                  \
    static const piece_fn name##_rows[N_DTYPES] = { FLOAT_TYPES(PIECE_ENTRY, name) };
PIECES(PIECE_TABLE)
/* clang-format on */

static void push_dims(struct walk *w, const struct kernel_call *c, int n_in)
{
    mesh_shape out = c->out[0]->shape;
    int64_t stride[WALK_OPERANDS][MESH_MAX_NDIM] = { { 0 } };
    shape_strides(out, out, stride[0]);
    for (int i = 0; i < n_in; i++) {
        shape_strides(c->in[i]->shape, out, stride[1 + i]);
    }
    for (int d = 0; d < out.ndim; d++) {
        int64_t of_dim[WALK_OPERANDS] = { 0 };
        for (int k = 0; k <= n_in; k++) {
            of_dim[k] = stride[k][d];
        }
        walk_push(w, out.dim[d], of_dim);
    }
}

static int piece(const char *name, const struct kernel_call *c, int n_in, const piece_fn *rows)
{
    piece_fn fn = rows[c->out[0]->dtype];
    if (fn == NULL) {
        return unsupported_dtype(name, c->out[0]->dtype);
    }
    struct walk w;
    struct walk_at at;
    size_t item = dtype_size(c->out[0]->dtype);
    walk_init(&w);
    push_dims(&w, c, n_in);
    struct piece_row r = {
        .n = walk_inner(&w), .v0 = c->attr->value[0], .v1 = c->attr->value[1], .mode = (int)c->attr->mode
    };
    for (int i = 0; i < n_in; i++) {
        r.step[i] = walk_step(&w, 1 + i);
    }
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        r.out = (char *)c->out[0]->data + (size_t)at.offset[0] * item;
        for (int i = 0; i < n_in; i++) {
            r.in[i] = (const char *)c->in[i]->data + (size_t)at.offset[1 + i] * item;
        }
        fn(&r);
    }
    return 0;
}

#define PIECE_KERNEL(name, n)                                                                                          \
    int k_##name(const struct kernel_call *c)                                                                          \
    {                                                                                                                  \
        return piece(#name, c, n, name##_rows);                                                                        \
    }
PIECES(PIECE_KERNEL)
