/* client/comm/fold.c - the parts of all ranks reduced in the order of ranks, 16-bit floats in f32.
 *
 * 16-bit floats: the f32 sums of a block of the result stand on the stack, and each result is rounded once.  Of a
 * single rank the result is its part, bit for bit.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/dtype.h"
#include "base/half.h"
#include "base/util.h"
#include "base/vector.h"
#include "comm/collective.h"
#include "comm/reduce.h"

#define BLOCK ((size_t)1024)

#define CONVERSION(name, to_type, from_type, convert)                                                                  \
    static VECTOR_ROW(name, (to_type *restrict to, const from_type *restrict from, size_t n), (to, from, n))           \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            to[i] = convert(from[i]);                                                                                  \
        }                                                                                                              \
    }

CONVERSION(widen_f16, float, uint16_t, half_from_f16)
CONVERSION(widen_bf16, float, uint16_t, half_from_bf16)
CONVERSION(round_f16, uint16_t, float, half_to_f16)
CONVERSION(round_bf16, uint16_t, float, half_to_bf16)

static void widen(float *to, const uint16_t *from, size_t count, mesh_dtype t)
{
    if (t == MESH_F16) {
        widen_f16(to, from, count);
    } else {
        widen_bf16(to, from, count);
    }
}

static void round_once(uint16_t *to, const float *from, size_t count, mesh_dtype t)
{
    if (t == MESH_F16) {
        round_f16(to, from, count);
    } else {
        round_bf16(to, from, count);
    }
}

/* n vectors, `stride` elements from one to the next. */
struct parts {
    const uint16_t *at;
    size_t stride;
    int n;
};

static void fold_block(uint16_t *to, const struct parts *p, size_t count, mesh_dtype t, mesh_reduce_op op)
{
    float sum[BLOCK], term[BLOCK];
    widen(sum, p->at, count, t);
    for (int k = 1; k < p->n; k++) {
        widen(term, p->at + (size_t)k * p->stride, count, t);
        reduce_into(sum, term, count, MESH_F32, op);
    }
    if (op == MESH_AVG) {
        reduce_divide(sum, count, MESH_F32, p->n);
    }
    round_once(to, sum, count, t);
}

static void fold_halves(uint16_t *to, struct parts p, mesh_dtype t, mesh_reduce_op op)
{
    for (size_t i = 0; i < p.stride; i += BLOCK) {
        struct parts rest = p;
        rest.at += i;
        fold_block(to + i, &rest, MIN(BLOCK, p.stride - i), t, op);
    }
}

void reduce_fold(void *to, const void *from, size_t count, int n, mesh_dtype t, mesh_reduce_op op)
{
    size_t bytes = count * dtype_size(t);
    if (reduce_is_folded(t) && n > 1) {
        fold_halves(to, (struct parts){ .at = from, .stride = count, .n = n }, t, op);
        return;
    }
    if (count == 0) {
        return;
    }
    memcpy(to, from, bytes);
    for (int k = 1; k < n; k++) {
        reduce_into(to, (const uint8_t *)from + (size_t)k * bytes, count, t, op);
    }
    if (op == MESH_AVG && n > 1) {
        reduce_divide(to, count, t, n);
    }
}
