/* client/tensor/row_exp.c - sums of exponentials of one row of floats, and the row divided by them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/row_exp.h"

#include <string.h>

#include "base/util.h"
#include "base/vector.h"
#include "tensor/fast_math.h"
#include "tensor/lanes.h"
#include "tensor/past_caches.h"
#include "tensor/reduce_walk.h"
#include "tensor/row.h"

#define BLOCK 512 /* elements whose largest is found, whose exponentials are taken and summed, before the next */
/* Exponentials of one row that are kept until their sum is known; of longer rows they are taken again. */
#define MOST_KEPT 4096
#define CHAINS    4
#define GROUP(T)  (CHAINS * WIDE(T))

/* exp(x) for x that is not above 0 */
VECTOR_INLINE float falling_exp_F32(float x)
{
    return exp_joined_f32(exp_parts_f32(x < -104.0F ? -104.0F : x), 0x1p-64F);
}

VECTOR_INLINE double falling_exp_F64(double x)
{
    return exp_joined_f64(exp_parts_f64(x < -746.0 ? -746.0 : x), 0x1p-512);
}

double row_log_sum_exp(struct row_exponentials e)
{
    return isinf(e.center) ? e.center : e.center + log_of_one(e.sum);
}

#define EXPONENTIALS(D, T, U, unused)                                                                                  \
    /* Into power what exp(x - center) is, no x being above the center; returns their sum. */                          \
    static VECTOR_VALUE(double, exp_block_##D, (T *restrict power, const T *restrict x, int64_t n, T center),          \
                        (power, x, n, center))                                                                         \
    {                                                                                                                  \
        lanes sum[2] = { { 0 } };                                                                                      \
        double rest = 0;                                                                                               \
        int64_t i = 0;                                                                                                 \
        for (; i + GROUP(T) <= n; i += GROUP(T)) {                                                                     \
            wide_##D v[CHAINS];                                                                                        \
            for (int l = 0; l < GROUP(T); l++) {                                                                       \
                power[i + l] = falling_exp_##D(x[i + l] - center);                                                     \
            }                                                                                                          \
            memcpy(v, power + i, sizeof v);                                                                            \
            v[0] = (v[0] + v[1]) + (v[2] + v[3]);                                                                      \
            lanes_add_##D(sum, &v[0]);                                                                                 \
        }                                                                                                              \
        for (; i < n; i++) {                                                                                           \
            power[i] = falling_exp_##D(x[i] - center);                                                                 \
            rest += (double)power[i];                                                                                  \
        }                                                                                                              \
        sum[0] += sum[1];                                                                                              \
        return lanes_total(&sum[0]) + rest;                                                                            \
    }                                                                                                                  \
    VECTOR_ROW(row_exp_##D, (T *restrict out, const T *x, int64_t n, T center), (out, x, n, center))                   \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = exp(x[i] - center);                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    double row_exp_sum_##D(const T *x, int64_t n, T center)                                                            \
    {                                                                                                                  \
        T power[BLOCK];                                                                                                \
        double sum = 0;                                                                                                \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            int64_t some = MIN(n - i, BLOCK);                                                                          \
            row_exp_##D(power, x + i, some, center);                                                                   \
            sum += row_sum_##D(power, some);                                                                           \
        }                                                                                                              \
        return sum;                                                                                                    \
    }                                                                                                                  \
    /* Adds a block; leaves its exponentials less the center of then in `power`, 0 where that is infinite. */          \
    static void add_block_##D(struct row_exponentials *e, T *power, const T *x, int64_t n)                             \
    {                                                                                                                  \
        const double most = (double)row_max_##D(x, n);                                                                 \
        if (!(most <= e->center)) { /* larger, or NaN */                                                               \
            e->sum *= isnan(e->center) ? 1 : exp_of_one(e->center - most);                                             \
            e->center = isnan(e->center) ? e->center : most;                                                           \
        }                                                                                                              \
        if (isinf(e->center)) {                                                                                        \
            memset(power, 0, (size_t)n * sizeof(T));                                                                   \
            e->sum = 0;                                                                                                \
        } else {                                                                                                       \
            e->sum += exp_block_##D(power, x, n, (T)e->center);                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    struct row_exponentials row_exponentials_##D(const T *x, int64_t n, struct row_exponentials e) {                   \
        T power[BLOCK];                                                                                                \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            add_block_##D(&e, power, x + i, MIN(n - i, BLOCK));                                                        \
        }                                                                                                              \
        return e;                                                                                                      \
    } /* In the dtype, so that it is a vector loop. */                                                                 \
    static VECTOR_ROW(scale_##D, (T *restrict out, const T *restrict x, int64_t n, T factor, T offset),                \
                      (out, x, n, factor, offset))                                                                     \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = x[i] * factor + offset;                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void put_block_##D(T *out, const T *power, int64_t n, double factor, const struct row_softmax *how)         \
    {                                                                                                                  \
        T block[BLOCK] __attribute__((aligned(CACHE_LINE)));                                                           \
        scale_##D(how->is_large ? block : out, power, n, (T)factor, (T)how->offset);                                   \
        if (how->is_large) {                                                                                           \
            write_past_caches(out, block, (size_t)n * sizeof(T));                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static struct row_exponentials long_softmax_##D(T *out, const T *x, int64_t n, const struct row_softmax *how) {    \
        struct row_exponentials e = row_exponentials_##D(x, n, row_exponentials_of_none());                            \
        T power[BLOCK];                                                                                                \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            const int64_t some = MIN(n - i, BLOCK);                                                                    \
            (void)exp_block_##D(power, x + i, some, (T)e.center);                                                      \
            put_block_##D(out + i, power, some, how->factor / e.sum, how);                                             \
        }                                                                                                              \
        return e;                                                                                                      \
    } /* Of a row whose exponentials are kept until their sum is known. */                                             \
    struct row_exponentials row_softmax_##D(T *out, const T *x, int64_t n, const struct row_softmax *how) {            \
        struct row_exponentials e = row_exponentials_of_none();                                                        \
        T power[MOST_KEPT];                                                                                            \
        double center[MOST_KEPT / BLOCK];                                                                              \
        if (n > MOST_KEPT) {                                                                                           \
            return long_softmax_##D(out, x, n, how);                                                                   \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            add_block_##D(&e, power + i, x + i, MIN(n - i, BLOCK));                                                    \
            center[i / BLOCK] = e.center;                                                                              \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            const double part = center[i / BLOCK] == e.center ? 1 : exp_of_one(center[i / BLOCK] - e.center);          \
            put_block_##D(out + i, power + i, MIN(n - i, BLOCK), how->factor * part / e.sum, how);                     \
        }                                                                                                              \
        return e;                                                                                                      \
    }
FLOAT_TYPES(EXPONENTIALS, 0)

/* --- rows beside each other: BLOCK columns at a time, loop after loop in the nearest cache ------------------------ */

#define LARGER(a, v, p) (isnan(a) || (v) <= (a) ? (a) : (v))

#define BESIDE(D, T, U, unused)                                                                                        \
    REDUCE_COLUMNS(largest_##D, T, T, LARGER)                                                                          \
    /* Scales the sums to new centers; what is to be subtracted: an infinite center is not. */                         \
    static VECTOR_ROW(                                                                                                 \
        rescale_##D,                                                                                                   \
        (T *restrict less, double *restrict sum, const T *restrict before, const T *restrict most, int64_t n),         \
        (less, sum, before, most, n))                                                                                  \
    {                                                                                                                  \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const double shrinks = exp((double)before[j] - (double)most[j]);                                           \
            sum[j] *= before[j] == most[j] ? 1 : shrinks;                                                              \
            less[j] = most[j] - most[j] == 0 || isnan(most[j]) ? most[j] : 0;                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static VECTOR_ROW(add_exp_##D, (double *restrict sum, const T *restrict x, const T *restrict less, int64_t n),     \
                      (sum, x, less, n))                                                                               \
    {                                                                                                                  \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            sum[j] += (double)exp(x[j] - less[j]);                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void add_beside_##D(double *center, double *sum, const T *x, int64_t n, int64_t step)                       \
    {                                                                                                                  \
        T before[BLOCK], most[BLOCK], less[BLOCK];                                                                     \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            before[j] = most[j] = (T)center[j];                                                                        \
        }                                                                                                              \
        largest_##D(most, x, n, step, 0);                                                                              \
        rescale_##D(less, sum, before, most, n);                                                                       \
        for (int64_t k = 0; k < (step == 0 ? 1 : REDUCE_STACK); k++) {                                                 \
            add_exp_##D(sum, x + k * step, less, n);                                                                   \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            center[j] = (double)most[j];                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    void row_exponentials_beside_##D(double *center, double *sum, const T *x, int64_t n, int64_t step)                 \
    {                                                                                                                  \
        for (int64_t j = 0; j < n; j += BLOCK) {                                                                       \
            add_beside_##D(center + j, sum + j, x + j, MIN(n - j, BLOCK), step);                                       \
        }                                                                                                              \
    }
FLOAT_TYPES(BESIDE, 0)
