/* client/tensor/k_fold.c - reductions that fold one element after the other into an accumulator: extremes, products, truth
 * values, sums of powers.
 *
 * Accumulators are f64 for floats and 64-bit wrapping for the rest, and are rounded once.  Over nothing the result is what
 * changes nothing: -inf, inf, 1, true, false, 0 (the least and greatest number of integers).
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tensor/numbers.h"
#include "tensor/reduce_walk.h"
#include "tensor/row.h"
#include "base/vector.h"

union acc {
    double f;
    int64_t i;
};

struct fold {
    union acc *acc, *zeros; /* [results]; zeros: of nonzero_prod alone */
    double power;
};

/* NaN wins over everything, as everywhere. */
static inline double max_f(double a, double v)
{
    return isnan(a) || v <= a ? a : v;
}

static inline double min_f(double a, double v)
{
    return isnan(a) || v >= a ? a : v;
}

static inline double power_of(double v, double p)
{
    return p == 0 ? (double)(v != 0) : pow(fabs(v), p);
}

/* clang-format off */
#define STEP_amax_f(a, v, s)       max_f(a, (double)(v))
#define STEP_amax_i(a, v, s)      ((int64_t)(v) > (a) ? (int64_t)(v) : (a))
#define STEP_amin_f(a, v, s)       min_f(a, (double)(v))
#define STEP_amin_i(a, v, s)      ((int64_t)(v) < (a) ? (int64_t)(v) : (a))
#define STEP_prod_f(a, v, s)      ((a) * (double)(v))
#define STEP_prod_i(a, v, s)      ((int64_t)((uint64_t)(a) * (uint64_t)(v)))
#define STEP_all_f(a, v, s)       ((a) != 0 && (v) != 0)
#define STEP_all_i(a, v, s)       ((a) != 0 && (v) != 0)
#define STEP_any_f(a, v, s)       ((a) != 0 || (v) != 0)
#define STEP_any_i(a, v, s)       ((a) != 0 || (v) != 0)
#define STEP_square_sum_f(a, v, s) ((a) + (double)(v) * (double)(v))
#define STEP_size_sum_f(a, v, s)   ((a) + fabs((double)(v)))
#define STEP_power_sum_f(a, v, s)  ((a) + power_of((double)(v), (s)->power))

#define KIND_F32  f
#define KIND_F64  f
#define KIND_I8   i
#define KIND_U8   i
#define KIND_I32  i
#define KIND_I64  i
#define KIND_BOOL i
#define ACC_f double
#define ACC_i int64_t
#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define STEP(op, k)  PASTE(STEP_##op##_, k)

#define FOLD_ROW(D, T, U, op)                                                              \
    static VECTOR_ROW(op##_row_##D, (void *state, const struct reduce_row *r), (state, r))        \
    {                                                                                      \
        const struct fold *s = state;                                                      \
        union acc *restrict acc = s->acc + r->out;                                         \
        const T *x = r->x;                                                                 \
        (void)s;                                                                           \
        if (r->out_step == 0) {                                                            \
            PASTE(ACC_, KIND_##D) a = acc->KIND_##D;                                       \
            REDUCE_ROWS(r, T, x, a, STEP(op, KIND_##D), s);                                \
            acc->KIND_##D = a;                                                             \
        } else {                                                                           \
            REDUCE_ROWS(r, T, x, acc[i].KIND_##D, STEP(op, KIND_##D), s);                  \
        }                                                                                  \
    }
#define FOLD_ENTRY(D, T, U, op) [MESH_##D] = op##_row_##D,
#define BOOL_TYPE(X, ...)       X(BOOL, bool, bool, __VA_ARGS__)
#define TRUTH_TYPES(X, ...)     NUMBER_TYPES(X, __VA_ARGS__) BOOL_TYPE(X, __VA_ARGS__)
#define FOLD_TABLE(op, TYPES)  \
    TYPES(FOLD_ROW, op)        \
    static const reduce_row_fn op##_rows[N_DTYPES] = { TYPES(FOLD_ENTRY, op) };

/* A row of floats that goes into one result: row.h knows the fold of all of it. */
#define WHOLE_amax(D, x, n)       row_max_##D(x, n)
#define WHOLE_amin(D, x, n)       row_min_##D(x, n)
#define WHOLE_square_sum(D, x, n) row_dot_##D(x, x, n)
#define WHOLE_size_sum(D, x, n)   row_size_##D(x, n)
#define FLOAT_ROW(D, T, U, op, join)                                                       \
    static VECTOR_ROW(op##_row_##D, (void *state, const struct reduce_row *r), (state, r))        \
    {                                                                                      \
        union acc *restrict acc = ((const struct fold *)state)->acc + r->out;              \
        const T *x = r->x;                                                                 \
        if (r->out_step == 0) {                                                            \
            acc->f = join(acc->f, (double)WHOLE_##op(D, x, r->n));                         \
        } else {                                                                           \
            REDUCE_ROWS(r, T, x, acc[i].f, STEP_##op##_f, s);                                     \
        }                                                                                  \
    }
#define PLUS(a, b) ((a) + (b))
FLOAT_TYPES(FLOAT_ROW, amax, max_f)
FLOAT_TYPES(FLOAT_ROW, amin, min_f)
FLOAT_TYPES(FLOAT_ROW, square_sum, PLUS)
FLOAT_TYPES(FLOAT_ROW, size_sum, PLUS)
INT_TYPES(FOLD_ROW, amax)
INT_TYPES(FOLD_ROW, amin)
static const reduce_row_fn amax_rows[N_DTYPES] = { NUMBER_TYPES(FOLD_ENTRY, amax) };
static const reduce_row_fn amin_rows[N_DTYPES] = { NUMBER_TYPES(FOLD_ENTRY, amin) };
static const reduce_row_fn square_sum_rows[N_DTYPES] = { FLOAT_TYPES(FOLD_ENTRY, square_sum) };
static const reduce_row_fn size_sum_rows[N_DTYPES] = { FLOAT_TYPES(FOLD_ENTRY, size_sum) };
FOLD_TABLE(prod,      TRUTH_TYPES)
FOLD_TABLE(all,       TRUTH_TYPES)
FOLD_TABLE(any,       TRUTH_TYPES)
FOLD_TABLE(power_sum, FLOAT_TYPES)
/* clang-format on */

#define NONZERO_ROW(D, T, U, unused)                                                                                   \
    static void nonzero_prod_row_##D(void *state, const struct reduce_row *r)                                          \
    {                                                                                                                  \
        const struct fold *s = state;                                                                                  \
        const T *x = r->x;                                                                                             \
        for (int64_t i = 0; i < r->n; i++) {                                                                           \
            int64_t out = r->out + i * r->out_step;                                                                    \
            if (x[i] == 0) {                                                                                           \
                s->zeros[out].f += 1;                                                                                  \
            } else {                                                                                                   \
                s->acc[out].f *= (double)x[i];                                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }
FLOAT_TYPES(NONZERO_ROW, 0)
#define NONZERO_ENTRY(D, T, U, unused) [MESH_##D] = nonzero_prod_row_##D,
static const reduce_row_fn nonzero_prod_rows[N_DTYPES] = { FLOAT_TYPES(NONZERO_ENTRY, 0) };

static bool is_float(mesh_dtype t)
{
    return dtype_kind(t) == DTYPE_FLOAT;
}

/* from_float: which member of the accumulators is in use. */
static void store(struct mesh_tensor *out, const union acc *acc, bool from_float)
{
    for (int64_t i = 0; i < out->n; i++) {
        double f = from_float ? acc[i].f : 0;
        int64_t v = from_float ? 0 : acc[i].i;
        switch (out->dtype) {
        case MESH_F32:
            ((float *)out->data)[i] = (float)f;
            break;
        case MESH_F64:
            ((double *)out->data)[i] = f;
            break;
        case MESH_BOOL:
            ((bool *)out->data)[i] = from_float ? f != 0 : v != 0;
            break;
#define STORE_INT(D, T, U, unused)                                                                                     \
    case MESH_##D:                                                                                                     \
        ((T *)out->data)[i] = (T)v;                                                                                    \
        break;
            INT_TYPES(STORE_INT, 0)
        default:
            break;
        }
    }
}

static union acc *filled(int64_t n, union acc first)
{
    union acc *acc = mem_alloc((size_t)n * sizeof *acc + 1);
    if (acc == NULL) {
        err_no_memory((size_t)n * sizeof *acc, "the accumulators of a reduction");
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        acc[i] = first;
    }
    return acc;
}

static int fold(const char *name, const struct kernel_call *c, const reduce_row_fn *rows, union acc first)
{
    const struct mesh_tensor *x = c->in[0];
    if (rows[x->dtype] == NULL) {
        return unsupported_dtype(name, x->dtype);
    }
    struct fold s = { .acc = filled(c->out[0]->n, first), .power = c->attr->value[0] };
    if (s.acc == NULL) {
        return MESH_ENOMEM;
    }
    reduce_walk_stacked(x, c->attr->dims, rows[x->dtype], &s);
    store(c->out[0], s.acc, is_float(x->dtype));
    mem_free(s.acc);
    return 0;
}

static union acc number(mesh_dtype t, double f, int64_t i)
{
    union acc a = { .i = i };
    if (is_float(t)) {
        a.f = f;
    }
    return a;
}

/* The least or the greatest integer of a dtype. */
static int64_t extreme(mesh_dtype t, bool greatest)
{
    if (t == MESH_U8) {
        return greatest ? UINT8_MAX : 0;
    }
    int64_t most = INT64_MAX >> (64 - 8 * (int)dtype_size(t));
    return greatest ? most : -most - 1;
}

int k_amax(const struct kernel_call *c)
{
    mesh_dtype t = c->in[0]->dtype;
    return fold("amax", c, amax_rows, number(t, -(double)INFINITY, extreme(t, false)));
}

int k_amin(const struct kernel_call *c)
{
    mesh_dtype t = c->in[0]->dtype;
    return fold("amin", c, amin_rows, number(t, (double)INFINITY, extreme(t, true)));
}

int k_prod(const struct kernel_call *c)
{
    return fold("prod", c, prod_rows, number(c->in[0]->dtype, 1, 1));
}

int k_all(const struct kernel_call *c)
{
    return fold("all", c, all_rows, number(c->in[0]->dtype, 1, 1));
}

int k_any(const struct kernel_call *c)
{
    return fold("any", c, any_rows, number(c->in[0]->dtype, 0, 0));
}

int k_power_sum(const struct kernel_call *c)
{
    double p = c->attr->value[0];
    return fold("norm", c, p == 2 ? square_sum_rows : p == 1 ? size_sum_rows : power_sum_rows, number(MESH_F64, 0, 0));
}

int k_nonzero_prod(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    if (nonzero_prod_rows[x->dtype] == NULL) {
        return unsupported_dtype("prod's gradient", x->dtype);
    }
    struct fold s = { .acc = filled(c->out[0]->n, number(MESH_F64, 1, 0)),
                      .zeros = filled(c->out[0]->n, number(MESH_F64, 0, 0)) };
    int r = s.acc != NULL && s.zeros != NULL ? 0 : MESH_ENOMEM;
    if (r == 0) {
        reduce_walk(x, c->attr->dims, NULL, nonzero_prod_rows[x->dtype], &s);
        store(c->out[0], s.acc, true);
        store(c->out[1], s.zeros, true);
    }
    mem_free(s.acc);
    mem_free(s.zeros);
    return r;
}
