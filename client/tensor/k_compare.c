/* client/tensor/k_compare.c - kernels whose result is true or false: comparisons, logic, isnan.
 *
 * The two inputs of a comparison have one dtype.  NaN is unequal to everything, itself included; a number is true
 * unless it is 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/elementwise.h"
#include "tensor/numbers.h"
#include "base/vector.h"

/* clang-format off */
#define EXPR_eq(a, b)          ((a) == (b))
#define EXPR_ne(a, b)          ((a) != (b))
#define EXPR_lt(a, b)          ((a) < (b))
#define EXPR_le(a, b)          ((a) <= (b))
#define EXPR_gt(a, b)          ((a) > (b))
#define EXPR_ge(a, b)          ((a) >= (b))
#define EXPR_logical_and(a, b) ((a) != 0 && (b) != 0)
#define EXPR_logical_or(a, b)  ((a) != 0 || (b) != 0)
#define EXPR_logical_not(a, b) ((a) == 0)
#define EXPR_isnan(a, b)       ((a) != (a))

#define TWO(X) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(logical_and) X(logical_or)
#define ONE(X) X(logical_not) X(isnan)
/* clang-format on */

#define ROW_OF_TWO(D, T, U, op)                                                                                        \
    static VECTOR_ROW(op##_row_##D, (const struct element_row *r), (r))                                                \
    {                                                                                                                  \
        uint8_t *restrict out = r->out;                                                                                \
        const int64_t n = r->n;                                                                                        \
        const T *a = r->in[0], *b = r->in[1];                                                                          \
        const int64_t step_a = r->step[0], step_b = r->step[1];                                                        \
        if (step_a == 1 && step_b == 1) {                                                                              \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                out[i] = EXPR_##op(a[i], b[i]);                                                                        \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = EXPR_##op(a[i * step_a], b[i * step_b]);                                                          \
        }                                                                                                              \
    }
#define ROW_OF_ONE(D, T, U, op)                                                                                        \
    static VECTOR_ROW(op##_row_##D, (const struct element_row *r), (r))                                                \
    {                                                                                                                  \
        uint8_t *restrict out = r->out;                                                                                \
        const int64_t n = r->n;                                                                                        \
        const T *a = r->in[0];                                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = EXPR_##op(a[i * r->step[0]], 0);                                                                  \
        }                                                                                                              \
    }
#define ENTRY(D, T, U, op) [MESH_##D] = op##_row_##D,

#define KERNEL(op, ROW)                                                                                                \
    ORDERED_TYPES(ROW, op)                                                                                             \
    static const element_row_fn op##_rows[N_DTYPES] = { ORDERED_TYPES(ENTRY, op) };                                    \
    int k_##op(const struct kernel_call *c)                                                                            \
    {                                                                                                                  \
        return elementwise(c, #op, op##_rows, 0);                                                                      \
    }
#define KERNEL_OF_TWO(op) KERNEL(op, ROW_OF_TWO)
#define KERNEL_OF_ONE(op) KERNEL(op, ROW_OF_ONE)
TWO(KERNEL_OF_TWO)
ONE(KERNEL_OF_ONE)
