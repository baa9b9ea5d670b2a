/* client/tensor/k_mix.c - kernels that choose between or mix their inputs, which broadcast, and slopes of such.
 *
 *     where(c, a, b)           a where c is true, else b
 *     masked_fill(x, mask)     value[0] where the mask is true, else x
 *     maximum, minimum         NaN if either is; a tie's gradient goes to both by half
 *     pow(a, b)                integers wrap; to a negative power they are 0, but for 1 and -1
 *     lerp(a, b)               a + value[0] (b - a), exact at both ends
 *     NAME_backward(dy, a, b)  the slope by a; pow_backward_exponent(dy, a, b) by b
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"
#include "tensor/elementwise.h"
#include "tensor/fast_math.h"
#include "tensor/numbers.h"
#include "base/vector.h"

/* --- two or three inputs of one dtype ----------------------------------------------------------------------------- */

static int64_t int_power(int64_t base, int64_t exponent)
{
    uint64_t power = 1, square = (uint64_t)base;
    if (exponent < 0) {
        return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    }
    for (; exponent > 0; exponent >>= 1) {
        power *= exponent & 1 ? square : 1;
        square *= square;
    }
    return (int64_t)power;
}

/* clang-format off */
#define EXPR_maximum(a, b)               (!((a) < (b)) && !isnan_(b) ? (a) : (b))
#define EXPR_minimum(a, b)               (!((a) > (b)) && !isnan_(b) ? (a) : (b))
#define isnan_(x)                        ((x) != (x))
#define EXPR_pow(a, b)                   (pow(a, b))
#define EXPR_int_pow(a, b)               ((T)int_power((int64_t)(a), (int64_t)(b)))
#define EXPR_lerp(a, b)                  (v < (T)0.5 ? (a) + v * ((b) - (a)) : (b) - ((T)1 - v) * ((b) - (a)))
#define EXPR_maximum_backward(dy, a, b)  ((a) < (b) ? (T)0 : (a) == (b) ? (dy) / (T)2 : (dy))
#define EXPR_minimum_backward(dy, a, b)  ((a) > (b) ? (T)0 : (a) == (b) ? (dy) / (T)2 : (dy))
#define EXPR_pow_backward(dy, a, b)      ((b) == 0 ? (T)0 : (dy) * ((b) * pow(a, (b) - (T)1)))
#define EXPR_pow_backward_exponent(dy, a, b) \
    ((a) == 0 && (b) >= 0 ? (T)0 : (dy) * (pow(a, b) * log(a)))
/* clang-format on */

#define ROW_OF_TWO(D, TYPE, U, op)                                                                                     \
    static VECTOR_ROW(op##_row_##D, (const struct element_row *r), (r))                                                \
    {                                                                                                                  \
        typedef TYPE T;                                                                                                \
        T *restrict out = r->out;                                                                                      \
        const int64_t n = r->n;                                                                                        \
        const T *a = r->in[0], *b = r->in[1];                                                                          \
        const int64_t step_a = r->step[0], step_b = r->step[1];                                                        \
        const T v = r->attr != NULL ? (T)r->attr->value[0] : (T)0;                                                     \
        (void)v;                                                                                                       \
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
#define ROW_OF_THREE(D, TYPE, U, op)                                                                                   \
    static VECTOR_ROW(op##_row_##D, (const struct element_row *r), (r))                                                \
    {                                                                                                                  \
        typedef TYPE T;                                                                                                \
        T *restrict out = r->out;                                                                                      \
        const int64_t n = r->n;                                                                                        \
        const T *dy = r->in[0], *a = r->in[1], *b = r->in[2];                                                          \
        if (element_row_is_dense(r)) {                                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                out[i] = EXPR_##op(dy[i], a[i], b[i]);                                                                 \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = EXPR_##op(dy[i * r->step[0]], a[i * r->step[1]], b[i * r->step[2]]);                              \
        }                                                                                                              \
    }
#define ENTRY(D, T, U, op) [MESH_##D] = op##_row_##D,
#define KERNEL(op, TYPES, ROW)                                                                                         \
    TYPES(ROW, op)                                                                                                     \
    static const element_row_fn op##_rows[N_DTYPES] = { TYPES(ENTRY, op) };                                            \
    int k_##op(const struct kernel_call *c)                                                                            \
    {                                                                                                                  \
        return elementwise(c, #op, op##_rows, 0);                                                                      \
    }
KERNEL(maximum, ORDERED_TYPES, ROW_OF_TWO)
KERNEL(minimum, ORDERED_TYPES, ROW_OF_TWO)
KERNEL(lerp, FLOAT_TYPES, ROW_OF_TWO)
KERNEL(maximum_backward, FLOAT_TYPES, ROW_OF_THREE)
KERNEL(minimum_backward, FLOAT_TYPES, ROW_OF_THREE)
KERNEL(pow_backward, FLOAT_TYPES, ROW_OF_THREE)
KERNEL(pow_backward_exponent, FLOAT_TYPES, ROW_OF_THREE)

FLOAT_TYPES(ROW_OF_TWO, pow)
INT_TYPES(ROW_OF_TWO, int_pow)
static const element_row_fn pow_rows[N_DTYPES] = { FLOAT_TYPES(ENTRY, pow) INT_TYPES(ENTRY, int_pow) };

int k_pow(const struct kernel_call *c)
{
    return elementwise(c, "pow", pow_rows, 0);
}

/* --- a choice by truth values: only the size of an item matters --------------------------------------------------- */

/* By bits, which is a vector loop whatever the sizes of a mask and an element. */
#define CHOSEN(T, is_true, a, b) ((T)((b) ^ (((a) ^ (b)) & (T)(0 - (T)((is_true) != 0)))))

#define WHERE_ROW(T)                                                                                                   \
    static VECTOR_ROW(where_row_##T, (const struct element_row *r), (r))                                               \
    {                                                                                                                  \
        T *restrict out = r->out;                                                                                      \
        const int64_t n = r->n;                                                                                        \
        const uint8_t *is_true = r->in[0];                                                                             \
        const T *a = r->in[1], *b = r->in[2];                                                                          \
        if (element_row_is_dense(r)) {                                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                out[i] = CHOSEN(T, is_true[i], a[i], b[i]);                                                            \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = CHOSEN(T, is_true[i * r->step[0]], a[i * r->step[1]], b[i * r->step[2]]);                         \
        }                                                                                                              \
    }
WHERE_ROW(uint8_t)
WHERE_ROW(uint16_t)
WHERE_ROW(uint32_t)
WHERE_ROW(uint64_t)
static const element_row_fn where_rows[N_DTYPES] = {
    [MESH_F32] = where_row_uint32_t,  [MESH_F64] = where_row_uint64_t, [MESH_F16] = where_row_uint16_t,
    [MESH_BF16] = where_row_uint16_t, [MESH_I8] = where_row_uint8_t,   [MESH_U8] = where_row_uint8_t,
    [MESH_I32] = where_row_uint32_t,  [MESH_I64] = where_row_uint64_t, [MESH_BOOL] = where_row_uint8_t,
};

int k_where(const struct kernel_call *c)
{
    return elementwise(c, "where", where_rows, 1);
}

#define FILL_ROW(D, T, U, convert)                                                                                     \
    static VECTOR_ROW(fill_row_##D, (const struct element_row *r), (r))                                                \
    {                                                                                                                  \
        T *restrict out = r->out;                                                                                      \
        const int64_t n = r->n;                                                                                        \
        const T *x = r->in[0];                                                                                         \
        const uint8_t *is_masked = r->in[1];                                                                           \
        const T v = convert(T, r->attr->value[0]);                                                                     \
        if (r->step[0] == 1 && r->step[1] == 1) {                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                out[i] = is_masked[i] != 0 ? v : x[i];                                                                 \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = is_masked[i * r->step[1]] != 0 ? v : x[i * r->step[0]];                                           \
        }                                                                                                              \
    }
#define AS_NUMBER(T, v) ((T)(v)) /* the shape function has seen to it that it fits */
#define AS_TRUTH(T, v)  ((T)((v) != 0))
NUMBER_TYPES(FILL_ROW, AS_NUMBER)
FILL_ROW(BOOL, uint8_t, 0, AS_TRUTH)
static const element_row_fn fill_rows[N_DTYPES] = { ORDERED_TYPES(ENTRY, fill) };

int k_masked_fill(const struct kernel_call *c)
{
    return elementwise(c, "masked_fill", fill_rows, 0);
}
