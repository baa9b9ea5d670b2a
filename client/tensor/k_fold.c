/* client/tensor/k_fold.c - reductions that fold one element after the other into an accumulator: extremes, products,
 * truth values, sums of powers.
 *
 * One pass over memory.  Accumulators are f64 for floats and 64-bit wrapping for the rest, and are rounded once; those
 * of extremes are the results themselves.  Over nothing the result is what changes nothing: -inf, inf, 1, true, false,
 * 0 (the least and greatest number of integers).
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/alloc.h"
#include "base/check.h"
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
    void *acc, *zeros; /* [results]; zeros: of nonzero_prod alone */
    double power;
};

static inline double power_of(double v, double p)
{
    return p == 0 ? (double)(v != 0) : pow(fabs(v), p);
}

/* clang-format off */
/* NaN wins over everything, as everywhere. */
#define STEP_amax_f(a, v, p)       (isnan(a) || (v) <= (a) ? (a) : (v))
#define STEP_amax_i(a, v, p)       ((v) > (a) ? (v) : (a))
#define STEP_amin_f(a, v, p)       (isnan(a) || (v) >= (a) ? (a) : (v))
#define STEP_amin_i(a, v, p)       ((v) < (a) ? (v) : (a))
#define STEP_prod_f(a, v, p)       ((a) * (double)(v))
#define STEP_prod_i(a, v, p)       ((int64_t)((uint64_t)(a) * (uint64_t)(v)))
#define STEP_all_f(a, v, p)        ((a) != 0 && (v) != 0)
#define STEP_all_i(a, v, p)        ((a) != 0 && (v) != 0)
#define STEP_any_f(a, v, p)        ((a) != 0 || (v) != 0)
#define STEP_any_i(a, v, p)        ((a) != 0 || (v) != 0)
#define STEP_square_sum_f(a, v, p) ((a) + (double)(v) * (double)(v))
#define STEP_size_sum_f(a, v, p)   ((a) + fabs((double)(v)))
#define STEP_power_sum_f(a, v, p)  ((a) + power_of((double)(v), p))

#define KIND_F32  f
#define KIND_F64  f
#define KIND_I8   i
#define KIND_U8   i
#define KIND_I32  i
#define KIND_I64  i
#define KIND_BOOL i
#define WIDE_f double
#define WIDE_i int64_t
#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define STEP(op, k)  PASTE(STEP_##op##_, k)

/* A row that goes into one result, element after element; else each goes into its own.  A: the accumulator. */
#define FOLD_ROWS(D, T, A, op, whole)                                                      \
    REDUCE_COLUMNS(op##_columns_##D, A, T, STEP(op, KIND_##D))                             \
    static void op##_row_##D(void *state, const struct reduce_row *r)                      \
    {                                                                                      \
        const struct fold *s = state;                                                      \
        A *acc = (A *)s->acc + r->out;                                                     \
        const T *x = r->x;                                                                 \
        if (r->out_step == 0) {                                                            \
            *acc = whole(D, T, A, op);                                                     \
        } else {                                                                           \
            op##_columns_##D(acc, x, r->n, reduce_step(r), s->power);                      \
        }                                                                                  \
    }
#define ONE_BY_ONE(D, T, A, op) op##_all_##D(*acc, x, r->n, s->power)
#define FOLD_ONE_BY_ONE(D, T, A, op)                                                       \
    static A op##_all_##D(A a, const T *x, int64_t n, double p)                            \
    {                                                                                      \
        (void)p;                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                  \
            a = (A)(STEP(op, KIND_##D)(a, x[i], p));                                       \
        }                                                                                  \
        return a;                                                                          \
    }                                                                                      \
    FOLD_ROWS(D, T, A, op, ONE_BY_ONE)

/* A row of floats that goes into one result: row.h knows the fold of all of it. */
#define EXTREME(D, T, A, op)        op##_joined_##D(*acc, WHOLE_##op(D, x, r->n))
#define TOTAL(D, T, A, op)          *acc + WHOLE_##op(D, x, r->n)
#define WHOLE_amax(D, x, n)         row_max_##D(x, n)
#define WHOLE_amin(D, x, n)         row_min_##D(x, n)
#define WHOLE_square_sum(D, x, n)   row_dot_##D(x, x, n)
#define WHOLE_size_sum(D, x, n)     row_size_##D(x, n)

#define WIDE(D, T, U, op)           FOLD_ONE_BY_ONE(D, T, PASTE(WIDE_, KIND_##D), op)
#define NARROW(D, T, U, op)         FOLD_ONE_BY_ONE(D, T, T, op)
#define OF_FLOATS(D, T, U, op)                                                             \
    static inline T op##_joined_##D(T a, T v)                                              \
    {                                                                                      \
        return STEP_##op##_f(a, v, 0);                                                     \
    }                                                                                      \
    FOLD_ROWS(D, T, T, op, EXTREME)
#define SUM_OF_FLOATS(D, T, U, op)  FOLD_ROWS(D, T, double, op, TOTAL)
#define FOLD_ENTRY(D, T, U, op)     [MESH_##D] = op##_row_##D,
#define BOOL_TYPE(X, ...)           X(BOOL, bool, bool, __VA_ARGS__)
#define TRUTH_TYPES(X, ...)         NUMBER_TYPES(X, __VA_ARGS__) BOOL_TYPE(X, __VA_ARGS__)
#define FOLD_TABLE(op, TYPES)       static const reduce_row_fn op##_rows[N_DTYPES] = { TYPES(FOLD_ENTRY, op) };
FLOAT_TYPES(OF_FLOATS, amax)
FLOAT_TYPES(OF_FLOATS, amin)
INT_TYPES(NARROW, amax)
INT_TYPES(NARROW, amin)
FLOAT_TYPES(SUM_OF_FLOATS, square_sum)
FLOAT_TYPES(SUM_OF_FLOATS, size_sum)
FLOAT_TYPES(WIDE, power_sum)
TRUTH_TYPES(WIDE, prod)
TRUTH_TYPES(WIDE, all)
TRUTH_TYPES(WIDE, any)
FOLD_TABLE(amax,       NUMBER_TYPES)
FOLD_TABLE(amin,       NUMBER_TYPES)
FOLD_TABLE(square_sum, FLOAT_TYPES)
FOLD_TABLE(size_sum,   FLOAT_TYPES)
FOLD_TABLE(power_sum,  FLOAT_TYPES)
FOLD_TABLE(prod,       TRUTH_TYPES)
FOLD_TABLE(all,        TRUTH_TYPES)
FOLD_TABLE(any,        TRUTH_TYPES)
/* clang-format on */

#define NONZERO_ROW(D, T, U, unused)                                                                                   \
    static void nonzero_prod_row_##D(void *state, const struct reduce_row *r)                                          \
    {                                                                                                                  \
        const struct fold *s = state;                                                                                  \
        double *product = s->acc, *zeros = s->zeros;                                                                   \
        const T *x = r->x;                                                                                             \
        for (int64_t i = 0; i < r->n; i++) {                                                                           \
            int64_t out = r->out + i * r->out_step;                                                                    \
            product[out] *= x[i] == 0 ? 1 : (double)x[i];                                                              \
            zeros[out] += x[i] == 0;                                                                                   \
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
    union acc *acc = filled(c->out[0]->n, first);
    if (acc == NULL) {
        return MESH_ENOMEM;
    }
    reduce_walk_stacked(x, c->attr->dims, rows[x->dtype], &(struct fold){ .acc = acc, .power = c->attr->value[0] });
    store(c->out[0], acc, is_float(x->dtype));
    mem_free(acc);
    return 0;
}

#define FILL_FLOATS(D, T, U, unused)                                                                                   \
    static void fill_##D(void *out, int64_t n, double v)                                                               \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            ((T *)out)[i] = (T)v;                                                                                      \
        }                                                                                                              \
    }
#define FILL_INTS(D, T, U, unused)                                                                                     \
    static void fill_##D(void *out, int64_t n, double v)                                                               \
    {                                                                                                                  \
        const T nearest = (T)number_saturated(MESH_##D, v);                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            ((T *)out)[i] = nearest;                                                                                   \
        }                                                                                                              \
    }
FLOAT_TYPES(FILL_FLOATS, 0)
INT_TYPES(FILL_INTS, 0)
#define FILL_ENTRY(D, T, U, unused) [MESH_##D] = fill_##D,
static void (*const fills[N_DTYPES])(void *out, int64_t n, double v) = { NUMBER_TYPES(FILL_ENTRY, 0) };

static int extreme(const char *name, const struct kernel_call *c, const reduce_row_fn *rows, bool is_least)
{
    const struct mesh_tensor *x = c->in[0];
    struct mesh_tensor *out = c->out[0];
    if (rows[x->dtype] == NULL) {
        return unsupported_dtype(name, x->dtype);
    }
    PRE(out->dtype == x->dtype);
    fills[x->dtype](out->data, out->n, is_least ? (double)INFINITY : -(double)INFINITY);
    reduce_walk_stacked(x, c->attr->dims, rows[x->dtype], &(struct fold){ .acc = out->data });
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

int k_amax(const struct kernel_call *c)
{
    return extreme("amax", c, amax_rows, false);
}

int k_amin(const struct kernel_call *c)
{
    return extreme("amin", c, amin_rows, true);
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
