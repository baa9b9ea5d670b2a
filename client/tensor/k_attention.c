/* client/tensor/k_attention.c - attention and its gradients, tile by tile: the scores are never held as a whole.
 *
 * For each matrix of q, rows in blocks of ROWS, places of k in blocks of COLUMNS; of a tile s = scale q k' with what is
 * not to be seen at -inf:
 *     forward    m = max(m, s) per row; what was summed up before is scaled by exp(m before - m);
 *                sum += exp(s - m), y += exp(s - m) v;  at the end y / sum, and lse = m + log(sum)
 *     backward   p = exp(s - lse), d = p (dy v' - D) scale with D = sum of dy y per row
 *                dq = d k        dk += d' q      dv += p' dy
 * stats [..., l, 2] are lse and D.  Several heads of q may see one of k: attr.groups of them, their shares of dk and dv
 * add up.  Of some of the places of k, y and lse are those of a part: exp(lse of it - lse) y is its share of the whole.
 * Scratch: two tiles, ROWS x COLUMNS each, and one row of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "base/vector.h"
#include "tensor/fast_math.h"
#include "tensor/gemm.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/row.h"
#include "tensor/shape.h"

#define ROWS    64
#define COLUMNS 256

struct attention { /* of this rank's part */
    mesh_dtype dtype;
    int64_t n, l, s, e, f;         /* matrices of q, their rows; places of k; widths of q and of v */
    int64_t heads, k_heads, group; /* in a row of them; heads of q for each of k */
    int64_t first_head, first_row; /* of this part in the whole; the row among the places of k */
    bool is_causal;
    double scale;
    struct mesh_tensor *tile[2], *sums; /* scores, what becomes of them; ROWS f64 */
};

struct block { /* of rows, and of columns */
    int64_t row, n_rows, column, n_columns;
};

static int64_t back(const struct mesh_tensor *t, int from_end)
{
    return from_end > t->shape.ndim ? 1 : t->shape.dim[t->shape.ndim - from_end];
}

/* rows: an input laid out like q. */
static int begin(struct attention *a, const struct kernel_call *c, const struct mesh_tensor *const in[3])
{
    const struct mesh_tensor *q = in[0], *k = in[1];
    int ndim = q->shape.ndim;
    *a = (struct attention){ .dtype = q->dtype,
                             .l = back(q, 2),
                             .s = back(k, 2),
                             .e = back(q, 1),
                             .f = back(in[2], 1),
                             .heads = back(q, 3),
                             .k_heads = back(k, 3),
                             .group = c->attr->groups,
                             .first_row = c->attr->index[0] + c->offset[ndim - 2],
                             .is_causal = (c->attr->mode & ATTENTION_IS_CAUSAL) != 0,
                             .scale = c->attr->value[0] };
    a->n = shape_outer(q->shape, ndim - 2);
    /* where k has all its heads, this part's are found by their place in the whole */
    a->first_head = ndim > 2 && a->k_heads == c->attr->index[1] ? c->offset[ndim - 3] : 0;
    if (a->dtype != MESH_F32 && a->dtype != MESH_F64) {
        return unsupported_dtype("scaled_dot_product_attention", a->dtype);
    }
    for (int i = 0; i < 2; i++) {
        a->tile[i] = tensor_new(MESH_SHAPE(MIN(ROWS, a->l), MIN(COLUMNS, a->s)), a->dtype);
    }
    a->sums = tensor_new(MESH_SHAPE(ROWS), MESH_F64);
    return a->tile[0] && a->tile[1] && a->sums ? 0 : err_status();
}

static void end(struct attention *a)
{
    tensor_unref(a->tile[0]);
    tensor_unref(a->tile[1]);
    tensor_unref(a->sums);
}

/* Which matrix of k and v the i-th of q sees. */
static int64_t seen_by(const struct attention *a, int64_t i)
{
    int64_t head = i % a->heads;
    return i / a->heads * a->k_heads + (a->first_head + head) / a->group;
}

/* Row `row` of matrix i of a tensor [..., rows, width]. */
static void *at(const struct mesh_tensor *t, int64_t i, int64_t rows, int64_t row)
{
    int64_t width = t->shape.dim[t->shape.ndim - 1];
    return (char *)t->data + (size_t)((i * rows + row) * width) * dtype_size(t->dtype);
}

/* How many of the places from 0 on some row before `end` sees. */
static int64_t n_seen(const struct attention *a, int64_t end)
{
    return a->is_causal ? MAX(0, MIN(a->s, a->first_row + end)) : a->s;
}

static bool next_column(const struct attention *a, struct block *inout)
{
    inout->column += inout->n_columns;
    inout->n_columns = MIN(COLUMNS, n_seen(a, inout->row + inout->n_rows) - inout->column);
    return inout->n_columns > 0;
}

static struct block rows_at(const struct attention *a, int64_t row)
{
    return (struct block){ .row = row, .n_rows = MIN(ROWS, a->l - row) };
}

/* Of the tile's places, those that its row j sees. */
static int64_t seen_in(const struct attention *a, const struct block *b, int64_t j)
{
    return MAX(0, MIN(b->n_columns, n_seen(a, b->row + j + 1) - b->column));
}

/* tile[which] = x y', rows of a block of x with places of y. */
static int product(const struct attention *a, const struct block *b, int which, const void *x, const void *y,
                   int64_t width)
{
    struct gemm g = { .name = "scaled_dot_product_attention",
                      .dtype = a->dtype,
                      .trans_b = true,
                      .m = b->n_rows,
                      .n = b->n_columns,
                      .k = width };
    return gemm_run(g, x, y, a->tile[which]->data);
}

struct term { /* out += tile y, or tile' y */
    int which;
    bool is_turned;
    int64_t width; /* of y and out */
    const void *y;
    void *out;
};

static int add_product(const struct attention *a, const struct block *b, struct term t)
{
    struct gemm g = { .name = "scaled_dot_product_attention",
                      .dtype = a->dtype,
                      .trans_a = t.is_turned,
                      .accumulate = true,
                      .m = t.is_turned ? b->n_columns : b->n_rows,
                      .n = t.width,
                      .k = t.is_turned ? b->n_rows : b->n_columns };
    return gemm_run(g, a->tile[t.which]->data, t.y, t.out);
}

/* ABSORB: tile 0 from scores to exp(s - m), and what the rows have so far scaled to the new m.  FINISH: rows of y, and
 * lse. */
#define FORWARD(D, T, U, unused)                                                                                       \
    static VECTOR_ROW(scale_row_##D, (T * s, int64_t n, T scale), (s, n, scale))                                       \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            s[i] *= scale;                                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static VECTOR_ROW(exp_row_##D, (T * s, int64_t n, T most), (s, n, most))                                           \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            s[i] = exp(s[i] - most);                                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    static void absorb_##D(const struct attention *a, const struct block *b, T *m, T *y)                               \
    {                                                                                                                  \
        double *sums = a->sums->data;                                                                                  \
        for (int64_t j = 0; j < b->n_rows; j++) {                                                                      \
            T *s = (T *)a->tile[0]->data + j * b->n_columns;                                                           \
            int64_t n = seen_in(a, b, j);                                                                              \
            scale_row_##D(s, n, (T)a->scale);                                                                          \
            T most = row_max_##D(s, n);                                                                                \
            most = m[j] > most || m[j] != m[j] ? m[j] : most;                                                          \
            T shrinks = n > 0 ? (T)exp_of_one((double)(m[j] - most)) : 1;                                              \
            exp_row_##D(s, n, most);                                                                                   \
            double part = row_sum_##D(s, n);                                                                           \
            memset(s + n, 0, (size_t)(b->n_columns - n) * sizeof *s);                                                  \
            for (int64_t i = 0; i < a->f && shrinks < 1; i++) {                                                        \
                y[j * a->f + i] *= shrinks;                                                                            \
            }                                                                                                          \
            sums[j] = sums[j] * (double)shrinks + part;                                                                \
            m[j] = most;                                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    static void finish_##D(const struct attention *a, const struct block *b, T *m, T *y)                               \
    {                                                                                                                  \
        const double *sums = a->sums->data;                                                                            \
        for (int64_t j = 0; j < b->n_rows; j++) {                                                                      \
            double scale = fpclassify(sums[j]) == FP_ZERO ? 0 : 1 / sums[j];                                           \
            for (int64_t i = 0; i < a->f; i++) {                                                                       \
                y[j * a->f + i] = (T)((double)y[j * a->f + i] * scale);                                                \
            }                                                                                                          \
            m[j] = (T)((double)m[j] + log_of_one(sums[j]));                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void start_##D(const struct attention *a, const struct block *b, T *m, T *y)                                \
    {                                                                                                                  \
        memset(a->sums->data, 0, ROWS * sizeof(double));                                                               \
        memset(y, 0, (size_t)(b->n_rows * a->f) * sizeof *y);                                                          \
        for (int64_t j = 0; j < b->n_rows; j++) {                                                                      \
            m[j] = (T)-INFINITY;                                                                                       \
        }                                                                                                              \
    }
FLOAT_TYPES(FORWARD, 0)

/* One of the three, by dtype. */
#define BY_DTYPE(a, what, ...) ((a)->dtype == MESH_F64 ? what##_F64(__VA_ARGS__) : what##_F32(__VA_ARGS__))

static int forward_rows(const struct attention *a, const struct kernel_call *c, int64_t i, int64_t row)
{
    struct block b = rows_at(a, row);
    int64_t k = seen_by(a, i);
    void *y = at(c->out[0], i, a->l, row);
    void *m = (char *)c->out[1]->data + (size_t)(i * a->l + row) * dtype_size(a->dtype);
    int r = 0;
    BY_DTYPE(a, start, a, &b, m, y);
    while (r == 0 && next_column(a, &b)) {
        r = product(a, &b, 0, at(c->in[0], i, a->l, row), at(c->in[1], k, a->s, b.column), a->e);
        if (r == 0) {
            BY_DTYPE(a, absorb, a, &b, m, y);
            r = add_product(a, &b, (struct term){ 0, false, a->f, at(c->in[2], k, a->s, b.column), y });
        }
    }
    BY_DTYPE(a, finish, a, &b, m, y);
    return r;
}

int k_attention(const struct kernel_call *c)
{
    struct attention a;
    int r = begin(&a, c, c->in);
    for (int64_t i = 0; r == 0 && i < a.n; i++) {
        for (int64_t row = 0; r == 0 && row < a.l; row += ROWS) {
            r = forward_rows(&a, c, i, row);
        }
    }
    end(&a);
    return r;
}

/* --- parts of the places ------------------------------------------------------------------------------------------ */

/* A line of the results: lse of the whole, and what its y is to be multiplied with; a part that saw nothing has
 * -inf. */
#define SHARE(D, T)                                                                                                    \
    static T log_sum_##D(const T *lse, int64_t parts, int64_t step)                                                    \
    {                                                                                                                  \
        T most = lse[0];                                                                                               \
        double sum = 0;                                                                                                \
        for (int64_t p = 1; p < parts; p++) {                                                                          \
            most = lse[p * step] > most || lse[p * step] != lse[p * step] ? lse[p * step] : most;                      \
        }                                                                                                              \
        for (int64_t p = 0; p < parts && most > (T)-INFINITY; p++) {                                                   \
            sum += exp_of_one((double)lse[p * step] - (double)most);                                                   \
        }                                                                                                              \
        return most > (T)-INFINITY ? (T)((double)most + log_of_one(sum)) : most;                                       \
    }                                                                                                                  \
    static void share_##D(const struct kernel_call *c, int64_t n_rows, int64_t f)                                      \
    {                                                                                                                  \
        const T *y = c->in[0]->data, *part = c->in[1]->data, *all = c->in[2]->data;                                    \
        T *out = c->out[0]->data, *lse = c->out[1]->data;                                                              \
        for (int64_t j = 0; j < n_rows; j++) {                                                                         \
            T whole = log_sum_##D(all + j, c->in[2]->shape.dim[0], n_rows);                                            \
            double factor = part[j] <= (T)-INFINITY ? 0 : exp_of_one((double)part[j] - (double)whole);                 \
            for (int64_t i = 0; i < f; i++) {                                                                          \
                out[j * f + i] = (T)((double)y[j * f + i] * factor);                                                   \
            }                                                                                                          \
            lse[j] = whole;                                                                                            \
        }                                                                                                              \
    }
SHARE(F32, float)
SHARE(F64, double)

int k_attention_share(const struct kernel_call *c)
{
    struct attention a = { .dtype = c->in[0]->dtype, .f = back(c->in[0], 1) };
    BY_DTYPE(&a, share, c, c->in[1]->n, a.f);
    return 0;
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

#define STATS(D, T)                                                                                                    \
    static void stats_##D(const struct kernel_call *c, int64_t n_rows, int64_t f)                                      \
    {                                                                                                                  \
        const T *dy = c->in[0]->data, *y = c->in[1]->data, *lse = c->in[2]->data;                                      \
        T *stats = c->out[0]->data;                                                                                    \
        for (int64_t j = 0; j < n_rows; j++) {                                                                         \
            double sum = 0;                                                                                            \
            for (int64_t i = 0; i < f; i++) {                                                                          \
                sum += (double)dy[j * f + i] * (double)y[j * f + i];                                                   \
            }                                                                                                          \
            stats[2 * j] = lse[j];                                                                                     \
            stats[2 * j + 1] = (T)sum;                                                                                 \
        }                                                                                                              \
    }
STATS(F32, float)
STATS(F64, double)

int k_attention_stats(const struct kernel_call *c)
{
    struct attention a = { .dtype = c->in[0]->dtype, .f = back(c->in[0], 1) };
    if (a.dtype != MESH_F32 && a.dtype != MESH_F64) {
        return unsupported_dtype("scaled_dot_product_attention", a.dtype);
    }
    BY_DTYPE(&a, stats, c, c->in[2]->n, a.f);
    return 0;
}

/* Tile 0 from scores to p, tile 1 from dy v' to d. */
#define SLOPES(D, T, U, unused)                                                                                        \
    static VECTOR_ROW(slope_row_##D, (T *restrict p, T *restrict d, int64_t n, T lse, T share, T scale),               \
                      (p, d, n, lse, share, scale))                                                                    \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            p[i] = exp(p[i] * scale - lse);                                                                            \
            d[i] = p[i] * (d[i] - share) * scale;                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void slopes_##D(const struct attention *a, const struct block *b, const T *stats)                           \
    {                                                                                                                  \
        for (int64_t j = 0; j < b->n_rows; j++) {                                                                      \
            T *p = (T *)a->tile[0]->data + j * b->n_columns, *d = (T *)a->tile[1]->data + j * b->n_columns;            \
            int64_t n = seen_in(a, b, j);                                                                              \
            slope_row_##D(p, d, n, stats[2 * j], stats[2 * j + 1], (T)a->scale);                                       \
            memset(p + n, 0, (size_t)(b->n_columns - n) * sizeof *p);                                                  \
            memset(d + n, 0, (size_t)(b->n_columns - n) * sizeof *d);                                                  \
        }                                                                                                              \
    }
FLOAT_TYPES(SLOPES, 0)

/* Inputs: dy, q, k, v, stats. */
static int find_slopes(const struct attention *a, const struct kernel_call *c, int64_t i, const struct block *b)
{
    int64_t k = seen_by(a, i);
    int r = product(a, b, 0, at(c->in[1], i, a->l, b->row), at(c->in[2], k, a->s, b->column), a->e);
    r = r < 0 ? r : product(a, b, 1, at(c->in[0], i, a->l, b->row), at(c->in[3], k, a->s, b->column), a->f);
    if (r == 0) {
        BY_DTYPE(a, slopes, a, b, at(c->in[4], i, a->l, b->row));
    }
    return r;
}

static int add_to_q(const struct attention *a, const struct kernel_call *c, int64_t i, const struct block *b)
{
    const void *keys = at(c->in[2], seen_by(a, i), a->s, b->column);
    return add_product(a, b, (struct term){ 1, false, a->e, keys, at(c->out[0], i, a->l, b->row) });
}

static int add_to_kv(const struct attention *a, const struct kernel_call *c, int64_t i, const struct block *b)
{
    int64_t k = seen_by(a, i);
    const void *q = at(c->in[1], i, a->l, b->row), *dy = at(c->in[0], i, a->l, b->row);
    int r = add_product(a, b, (struct term){ 1, true, a->e, q, at(c->out[0], k, a->s, b->column) });
    return r < 0 ? r : add_product(a, b, (struct term){ 0, true, a->f, dy, at(c->out[1], k, a->s, b->column) });
}

typedef int (*add_fn)(const struct attention *a, const struct kernel_call *c, int64_t i, const struct block *b);

static int add_slopes(const struct kernel_call *c, add_fn add)
{
    struct attention a;
    int r = begin(&a, c, c->in + 1);
    for (int o = 0; o < 2 && c->out[o] != NULL; o++) {
        memset(c->out[o]->data, 0, tensor_bytes(c->out[o]));
    }
    for (int64_t i = 0; r == 0 && i < a.n; i++) {
        for (int64_t row = 0; r == 0 && row < a.l; row += ROWS) {
            struct block b = rows_at(&a, row);
            while (r == 0 && next_column(&a, &b)) {
                r = find_slopes(&a, c, i, &b);
                r = r < 0 ? r : add(&a, c, i, &b);
            }
        }
    }
    end(&a);
    return r;
}

int k_attention_grad_q(const struct kernel_call *c)
{
    return add_slopes(c, add_to_q);
}

int k_attention_grad_kv(const struct kernel_call *c)
{
    return add_slopes(c, add_to_kv);
}
