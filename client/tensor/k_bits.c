/* client/tensor/k_bits.c - bitwise kernels on integers and truth values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/elementwise.h"
#include "tensor/numbers.h"
#include "base/vector.h"

#define WHOLE_TYPES(X, ...) INT_TYPES(X, __VA_ARGS__) X(BOOL, uint8_t, uint8_t, __VA_ARGS__)

#define ROW_OF_TWO(D, T, U, name, op)                                                                                  \
    static VECTOR_ROW(name##_row_##D, (const struct element_row *r), (r))                                              \
    {                                                                                                                  \
        T *restrict out = r->out;                                                                                      \
        const int64_t n = r->n;                                                                                        \
        const T *a = r->in[0], *b = r->in[1];                                                                          \
        const int64_t step_a = r->step[0], step_b = r->step[1];                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = (T)(a[i * step_a] op b[i * step_b]);                                                              \
        }                                                                                                              \
    }
#define ENTRY(D, T, U, name, ...) [MESH_##D] = name##_row_##D,
#define KERNEL(name, op)                                                                                               \
    WHOLE_TYPES(ROW_OF_TWO, name, op)                                                                                  \
    static const element_row_fn name##_rows[N_DTYPES] = { WHOLE_TYPES(ENTRY, name, op) };                              \
    int k_##name(const struct kernel_call *c)                                                                          \
    {                                                                                                                  \
        return elementwise(c, #name, name##_rows, 0);                                                                  \
    }
KERNEL(bitwise_and, &)
KERNEL(bitwise_or, |)
KERNEL(bitwise_xor, ^)

#define ROW_OF_ONE(D, T, U, all)                                                                                       \
    static VECTOR_ROW(bitwise_not_row_##D, (const struct element_row *r), (r))                                         \
    {                                                                                                                  \
        T *restrict out = r->out;                                                                                      \
        const int64_t n = r->n;                                                                                        \
        const T *a = r->in[0];                                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = (T)(a[i * r->step[0]] ^ (all));                                                                   \
        }                                                                                                              \
    }
INT_TYPES(ROW_OF_ONE, -1)
ROW_OF_ONE(BOOL, uint8_t, 0, 1)
static const element_row_fn bitwise_not_rows[N_DTYPES] = { WHOLE_TYPES(ENTRY, bitwise_not, ~) };

int k_bitwise_not(const struct kernel_call *c)
{
    return elementwise(c, "bitwise_not", bitwise_not_rows, 0);
}
