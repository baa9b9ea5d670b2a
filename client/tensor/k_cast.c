/* client/tensor/k_cast.c - a tensor in another dtype.
 *
 * A block of elements goes through int64_t or double, the widest of its kind, so that n dtypes need n loads and 2n
 * stores instead of n^2 loops; between f32 and 16 bits it goes directly.  Floating numbers beyond an integer dtype
 * become its extremes, NaN becomes 0; integers keep their low end; as a truth value a number is true unless it is 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/dtype.h"
#include "base/half.h"
#include "base/util.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "base/vector.h"

#define BLOCK 512

union block {
    double f[BLOCK];
    int64_t i[BLOCK];
};

typedef void (*load_fn)(union block *b, const void *from, int64_t n);
typedef void (*store_fn)(void *to, const union block *b, int64_t n);

/* The integer nearest to v, from least to greatest; both, as numbers, are whole, and greatest + 1 is a power of 2. */
#define NEAREST_INT(D, T, least, greatest)                                                                             \
    static inline T nearest_##D(double v)                                                                              \
    {                                                                                                                  \
        const double low = (double)(least), beyond = 2.0 * (double)((greatest) / 2 + 1);                               \
        T whole = (T)(v > low && v < beyond ? v : 0);                                                                  \
        whole = v <= low ? (least) : whole;                                                                            \
        return v >= beyond ? (greatest) : whole;                                                                       \
    }
NEAREST_INT(I8, int8_t, INT8_MIN, INT8_MAX)
NEAREST_INT(U8, uint8_t, 0, UINT8_MAX)
NEAREST_INT(I32, int32_t, INT32_MIN, INT32_MAX)
NEAREST_INT(I64, int64_t, INT64_MIN, INT64_MAX)

#define EACH(name, PARAMETERS, ARGUMENTS, ITEM, statement)                                                             \
    static VECTOR_ROW(name, PARAMETERS, ARGUMENTS)                                                                     \
    {                                                                                                                  \
        ITEM;                                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            statement;                                                                                                 \
        }                                                                                                              \
    }
#define LOAD(D, T, member, value)                                                                                      \
    EACH(load_##D, (union block *restrict b, const void *from, int64_t n), (b, from, n), const T *x = from,            \
         b->member[i] = value)
#define STORE(D, T, name, value)                                                                                       \
    EACH(name##_##D, (void *restrict to, const union block *b, int64_t n), (to, b, n), T *out = to, out[i] = (T)(value))
#define DIRECT(name, O, T, convert)                                                                                    \
    EACH(name, (O *restrict out, const T *x, int64_t n), (out, x, n), (void)0, out[i] = convert(x[i]))

#define LOAD_NUMBER(D, T, U, member) LOAD(D, T, member, x[i])
FLOAT_TYPES(LOAD_NUMBER, f)
INT_TYPES(LOAD_NUMBER, i)
LOAD(BOOL, uint8_t, i, x[i] != 0)
LOAD(F16, uint16_t, f, (double)half_from_f16(x[i]))
LOAD(BF16, uint16_t, f, (double)half_from_bf16(x[i]))

#define STORE_INT(D, T, U, unused) STORE(D, T, store_int, b->i[i])
NUMBER_TYPES(STORE_INT, 0)
STORE(BOOL, uint8_t, store_int, b->i[i] != 0)
STORE(F16, uint16_t, store_int, half_to_f16((float)b->i[i]))
STORE(BF16, uint16_t, store_int, half_to_bf16((float)b->i[i]))

#define STORE_FLOAT(D, T, U, unused)   STORE(D, T, store_float, b->f[i])
#define STORE_NEAREST(D, T, U, unused) STORE(D, T, store_float, nearest_##D(b->f[i]))
FLOAT_TYPES(STORE_FLOAT, 0)
INT_TYPES(STORE_NEAREST, 0)
STORE(BOOL, uint8_t, store_float, !(b->f[i] < 0) && !(b->f[i] > 0) && !isnan(b->f[i]) ? 0 : 1)
STORE(F16, uint16_t, store_float, half_to_f16((float)b->f[i]))
STORE(BF16, uint16_t, store_float, half_to_bf16((float)b->f[i]))

DIRECT(f32_from_f16, float, uint16_t, half_from_f16)
DIRECT(f32_from_bf16, float, uint16_t, half_from_bf16)
DIRECT(f16_from_f32, uint16_t, float, half_to_f16)
DIRECT(bf16_from_f32, uint16_t, float, half_to_bf16)

/* clang-format off */
#define ALL(X, name) \
    X(F32, name) X(F64, name) X(F16, name) X(BF16, name) X(I8, name) X(U8, name) X(I32, name) X(I64, name) X(BOOL, name)
#define ENTRY(D, name) [MESH_##D] = name##_##D,
static const load_fn loads[N_DTYPES] = { ALL(ENTRY, load) };
static const store_fn int_stores[N_DTYPES] = { ALL(ENTRY, store_int) };
static const store_fn float_stores[N_DTYPES] = { ALL(ENTRY, store_float) };
/* clang-format on */

/* Between f32 and 16 bits; false: it is something else. */
static bool cast_directly(const struct mesh_tensor *x, struct mesh_tensor *out)
{
    mesh_dtype from = x->dtype, to = out->dtype;
    if (from == MESH_F16 && to == MESH_F32) {
        f32_from_f16(out->data, x->data, x->n);
    } else if (from == MESH_BF16 && to == MESH_F32) {
        f32_from_bf16(out->data, x->data, x->n);
    } else if (from == MESH_F32 && to == MESH_F16) {
        f16_from_f32(out->data, x->data, x->n);
    } else if (from == MESH_F32 && to == MESH_BF16) {
        bf16_from_f32(out->data, x->data, x->n);
    } else {
        return false;
    }
    return true;
}

int k_cast(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    struct mesh_tensor *out = c->out[0];
    load_fn load = loads[x->dtype];
    store_fn store = (dtype_kind(x->dtype) == DTYPE_FLOAT ? float_stores : int_stores)[out->dtype];
    int64_t item_in = (int64_t)dtype_size(x->dtype), item_out = (int64_t)dtype_size(out->dtype);
    union block b;
    if (cast_directly(x, out)) {
        return 0;
    }
    for (int64_t at = 0; at < x->n; at += BLOCK) {
        int64_t n = MIN(x->n - at, BLOCK);
        load(&b, (const char *)x->data + at * item_in, n);
        store((char *)out->data + at * item_out, &b, n);
    }
    return 0;
}
