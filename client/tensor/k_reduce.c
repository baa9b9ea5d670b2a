/* client/tensor/k_reduce.c - sums over dimensions.
 *
 * Every output element has an accumulator, f64 for floats and 64-bit wrapping for integers, and is rounded once at the
 * end.  The order of additions depends on the shape alone, so a sum repeats bit for bit, on every machine.
 *
 *     sum, mean   over the dimensions of a mask (mean: scaled by 1 / the global count, which the caller knows)
 *     sum_to      over the dimensions that expand had stretched or added in front
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/reduce_walk.h"
#include "tensor/row.h"
#include "base/vector.h"

#define SUM_BYTES 8 /* a double or a uint64_t */

typedef void (*store_all)(void *out, const void *sum, double scale, int64_t n); /* sum: f64, or 64-bit integers */

#define PLUS_f(a, v, p) ((a) + (double)(v))
#define PLUS_i(a, v, p) ((a) + (uint64_t)(v))
#define SUM_ROW(D, T, S, member)                                                                                       \
    REDUCE_COLUMNS(sum_columns_##D, S, T, PLUS_##member)                                                               \
    static void sum_row_##D(void *state, const struct reduce_row *r)                                                   \
    {                                                                                                                  \
        S *sum = (S *)state + r->out;                                                                                  \
        if (r->out_step == 0) {                                                                                        \
            *sum += TOTAL_##D(r->x, r->n);                                                                             \
        } else {                                                                                                       \
            sum_columns_##D(sum, r->x, r->n, reduce_step(r), 0);                                                       \
        }                                                                                                              \
    }

/* Sums that wrap may be taken in any order, which the compiler chooses. */
#define INT_TOTAL(D, T, S, member)                                                                                     \
    static VECTOR_VALUE(uint64_t, total_##D, (const T *x, int64_t n), (x, n))                                          \
    {                                                                                                                  \
        uint64_t total = 0;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            total += (uint64_t)x[i];                                                                                   \
        }                                                                                                              \
        return total;                                                                                                  \
    }
#define TOTAL_F32  row_sum_F32
#define TOTAL_F64  row_sum_F64
#define TOTAL_I8   total_I8
#define TOTAL_U8   total_U8
#define TOTAL_I32  total_I32
#define TOTAL_I64  total_I64
#define TOTAL_BOOL total_BOOL

#define STORE_ALL(D, T, S, value)                                                                                      \
    static void store_all_##D(void *out_, const void *sums, double scale, int64_t n)                                   \
    {                                                                                                                  \
        T *out = out_;                                                                                                 \
        const S *sum = sums;                                                                                           \
        (void)scale;                                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = (T)(value);                                                                                       \
        }                                                                                                              \
    }

/* clang-format off */
#define SUMMED_INTS(X)             \
    X(I8,   int8_t,  uint64_t, i)  \
    X(U8,   uint8_t, uint64_t, i)  \
    X(I32,  int32_t, uint64_t, i)  \
    X(I64,  int64_t, uint64_t, i)  \
    X(BOOL, bool,    uint64_t, i)
#define SUMMED_TYPES(X)            \
    X(F32,  float,   double,   f)  \
    X(F64,  double,  double,   f)  \
    SUMMED_INTS(X)
/* clang-format on */
SUMMED_INTS(INT_TOTAL)
SUMMED_TYPES(SUM_ROW)
STORE_ALL(F32, float, double, sum[i] * scale)
STORE_ALL(F64, double, double, sum[i] * scale)
STORE_ALL(I8, int8_t, uint64_t, sum[i])
STORE_ALL(U8, uint8_t, uint64_t, sum[i])
STORE_ALL(I32, int32_t, uint64_t, sum[i])
STORE_ALL(I64, int64_t, uint64_t, sum[i])

#define SUM_ENTRY(D, T, S, member)   [MESH_##D] = sum_row_##D,
#define STORE_ENTRY(D, T, U, unused) [MESH_##D] = store_all_##D,
static const reduce_row_fn sum_rows[N_DTYPES] = { SUMMED_TYPES(SUM_ENTRY) };
static const store_all store_alls[N_DTYPES] = { NUMBER_TYPES(STORE_ENTRY, 0) };

/* Integers sum into integers (their own dtype or i64), floats into floats. */
static int check_dtypes(const char *name, mesh_dtype in, mesh_dtype out, double scale)
{
    bool in_is_float = dtype_kind(in) == DTYPE_FLOAT, out_is_float = dtype_kind(out) == DTYPE_FLOAT;
    if (sum_rows[in] == NULL || (!in_is_float && scale != 1)) {
        return unsupported_dtype(name, in);
    }
    if (store_alls[out] == NULL || in_is_float != out_is_float) {
        return err_set(MESH_EUNSUPPORTED, "%s of %s cannot be a tensor of %s", name, dtype_name(in), dtype_name(out));
    }
    return 0;
}

/* Sums `in` over the dimensions in mask; out has the elements of the others, in order. */
static int sum_over(const char *name, const struct mesh_tensor *in, uint32_t mask, struct mesh_tensor *out,
                    double scale)
{
    int r = check_dtypes(name, in->dtype, out->dtype, scale);
    if (r < 0) {
        return r;
    }
    void *sum = mem_zalloc((size_t)out->n * SUM_BYTES);
    if (sum == NULL) {
        return err_no_memory((size_t)out->n * SUM_BYTES, "the accumulators of a sum");
    }
    reduce_walk_stacked(in, mask, sum_rows[in->dtype], sum);
    store_alls[out->dtype](out->data, sum, scale, out->n);
    mem_free(sum);
    return 0;
}

int k_sum(const struct kernel_call *c)
{
    return sum_over("sum", c->in[0], c->attr->dims, c->out[0], 1);
}

int k_sum_scaled(const struct kernel_call *c)
{
    return sum_over("mean", c->in[0], c->attr->dims, c->out[0], c->attr->value[0]);
}

int k_sum_to(const struct kernel_call *c)
{
    mesh_shape from = c->in[0]->shape, to = c->out[0]->shape;
    int leading = from.ndim - to.ndim;
    uint32_t mask = 0;
    for (int d = 0; d < from.ndim; d++) {
        bool was_stretched = d < leading || (to.dim[d - leading] == 1 && from.dim[d] != 1);
        mask |= was_stretched ? UINT32_C(1) << d : 0;
    }
    return sum_over("sum_to", c->in[0], mask, c->out[0], 1);
}
