/* client/tensor/k_cast.c - a tensor in another dtype.
 *
 * A block of elements goes through int64_t or double, the widest of its kind, so that n dtypes need n loads and 2n stores
 * instead of n^2 loops.  Floating numbers beyond an integer dtype become its extremes, NaN becomes 0; integers keep their
 * low end; as a truth value a number is true unless it is 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/dtype.h"
#include "base/util.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"

#define BLOCK 512

union block {
    double f[BLOCK];
    int64_t i[BLOCK];
};

typedef void (*load_fn)(union block *b, const void *from, int64_t n);
typedef void (*store_fn)(void *to, const union block *b, int64_t n);

#define EACH(D, name, PARAMETERS, ITEM, statement)                                                                     \
    static void name##_##D PARAMETERS                                                                                  \
    {                                                                                                                  \
        ITEM;                                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            statement;                                                                                                 \
        }                                                                                                              \
    }
#define LOAD(D, T, U, member)                                                                                          \
    EACH(D, load, (union block * b, const void *from, int64_t n), const T *x = from, b->member[i] = x[i])
#define LOAD_HALF(D, T, U, convert)                                                                                    \
    EACH(D, load, (union block * b, const void *from, int64_t n), const T *x = from, b->f[i] = (double)convert(x[i]))
#define STORE(D, T, U, name, value)                                                                                    \
    EACH(D, name, (void *to, const union block *b, int64_t n), T *out = to, out[i] = (T)(value))

FLOAT_TYPES(LOAD, f)
INT_TYPES(LOAD, i)
EACH(BOOL, load, (union block * b, const void *from, int64_t n), const uint8_t *x = from, b->i[i] = x[i] != 0)
LOAD_HALF(F16, uint16_t, 0, float_from_f16)
LOAD_HALF(BF16, uint16_t, 0, float_from_bf16)

FLOAT_TYPES(STORE, store_int, b->i[i])
INT_TYPES(STORE, store_int, b->i[i])
STORE(BOOL, uint8_t, 0, store_int, b->i[i] != 0)
STORE(F16, uint16_t, 0, store_int, float_to_f16((float)b->i[i]))
STORE(BF16, uint16_t, 0, store_int, float_to_bf16((float)b->i[i]))

#define STORE_NEAREST(D, T, U, name) STORE(D, T, U, name, number_saturated(MESH_##D, b->f[i]))
FLOAT_TYPES(STORE, store_float, b->f[i])
INT_TYPES(STORE_NEAREST, store_float)
STORE(BOOL, uint8_t, 0, store_float, !(b->f[i] < 0) && !(b->f[i] > 0) && !isnan(b->f[i]) ? 0 : 1)
STORE(F16, uint16_t, 0, store_float, float_to_f16((float)b->f[i]))
STORE(BF16, uint16_t, 0, store_float, float_to_bf16((float)b->f[i]))

/* clang-format off */
#define ALL(X, name) \
    X(F32, name) X(F64, name) X(F16, name) X(BF16, name) X(I8, name) X(U8, name) X(I32, name) X(I64, name) X(BOOL, name)
#define ENTRY(D, name) [MESH_##D] = name##_##D,
static const load_fn loads[N_DTYPES] = { ALL(ENTRY, load) };
static const store_fn int_stores[N_DTYPES] = { ALL(ENTRY, store_int) };
static const store_fn float_stores[N_DTYPES] = { ALL(ENTRY, store_float) };
/* clang-format on */

int k_cast(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    struct mesh_tensor *out = c->out[0];
    load_fn load = loads[x->dtype];
    store_fn store = (dtype_kind(x->dtype) == DTYPE_FLOAT ? float_stores : int_stores)[out->dtype];
    int64_t item_in = (int64_t)dtype_size(x->dtype), item_out = (int64_t)dtype_size(out->dtype);
    union block b;
    for (int64_t at = 0; at < x->n; at += BLOCK) {
        int64_t n = MIN(x->n - at, BLOCK);
        load(&b, (const char *)x->data + at * item_in, n);
        store((char *)out->data + at * item_out, &b, n);
    }
    return 0;
}
