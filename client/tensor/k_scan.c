/* client/tensor/k_scan.c - running sums along dim[0], forwards or (mode 1) backwards.
 *
 * One read and one write of memory.  Floats run in f64 and are rounded element by element; integers wrap in i64.
 * in[1], when there is one, has what each line begins with: one f64 (or i64) per line.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/check.h"
#include "base/dtype.h"
#include "base/util.h"
#include "tensor/kernels.h"
#include "tensor/lanes.h"
#include "tensor/lines.h"
#include "tensor/numbers.h"
#include "tensor/past_caches.h"
#include "base/vector.h"

#define WIDTH    2048 /* lines that run together */
#define TOGETHER 4    /* of lines whose own elements are neighbours: as many chains of additions */
#define BLOCK    512  /* elements that are computed before they are written past the caches */

/* What to do: rows of neighbours, or lines one after another, the next element of a line `step` elements on. */
struct scan {
    struct lines lines;
    const void *first; /* what each line begins with; NULL: 0 */
    int64_t step;      /* below 0: backwards */
    bool is_large;     /* the result is written past the caches */
};

/* A: what runs; O: the result's element.  Neighbouring lines run together, so that all loops go over neighbours. */
#define SCAN(D, T, A, O)                                                                                               \
    static VECTOR_ROW(add_row_##D, (A *restrict sum, O *restrict out, const T *restrict x, int64_t n),                 \
                      (sum, out, x, n))                                                                                \
    {                                                                                                                  \
        for (int64_t k = 0; k < n; k++) {                                                                              \
            sum[k] += (A)x[k];                                                                                         \
            out[k] = (O)sum[k];                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    /* n lines beside each other. */                                                                                   \
    static void scan_rows_##D(const struct scan *s, A *sum, O *out, const T *x, int64_t n)                             \
    {                                                                                                                  \
        O block[BLOCK] __attribute__((aligned(CACHE_LINE)));                                                           \
        for (int64_t i = 0; i < s->lines.length; i++) {                                                                \
            for (int64_t k = 0; k < n; k += BLOCK) {                                                                   \
                const int64_t some = MIN(n - k, BLOCK);                                                                \
                add_row_##D(sum + k, s->is_large ? block : out + k, x + k, some);                                      \
                if (s->is_large) {                                                                                     \
                    write_past_caches(out + k, block, (size_t)some * sizeof(O));                                       \
                }                                                                                                      \
            }                                                                                                          \
            x += s->step;                                                                                              \
            out += s->step;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static A scan_line_##D(A sum, O *out, const T *x, int64_t n, int64_t step)                                         \
    {                                                                                                                  \
        for (int64_t at = step < 0 ? n - 1 : 0; at >= 0 && at < n; at += step) {                                       \
            sum += (A)x[at];                                                                                           \
            out[at] = (O)sum;                                                                                          \
        }                                                                                                              \
        return sum;                                                                                                    \
    }                                                                                                                  \
    /* TOGETHER lines, one after another in memory. */                                                                 \
    static void scan_lines_##D(const A *sum, O *restrict out, const T *restrict x, int64_t n, int64_t step)            \
    {                                                                                                                  \
        const T *x1 = x + n, *x2 = x1 + n, *x3 = x2 + n;                                                               \
        O *out1 = out + n, *out2 = out1 + n, *out3 = out2 + n;                                                         \
        A sum0 = sum[0], sum1 = sum[1], sum2 = sum[2], sum3 = sum[3];                                                  \
        for (int64_t at = step < 0 ? n - 1 : 0; at >= 0 && at < n; at += step) {                                       \
            sum0 += (A)x[at];                                                                                          \
            sum1 += (A)x1[at];                                                                                         \
            sum2 += (A)x2[at];                                                                                         \
            sum3 += (A)x3[at];                                                                                         \
            out[at] = (O)sum0;                                                                                         \
            out1[at] = (O)sum1;                                                                                        \
            out2[at] = (O)sum2;                                                                                        \
            out3[at] = (O)sum3;                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static int64_t scan_own_##D(const struct scan *s, const A *sum, O *out, const T *x, int64_t n_lines)               \
    {                                                                                                                  \
        if (s->step == 1 && RUNS_##D(s, sum[0], out, x)) {                                                             \
            return 1;                                                                                                  \
        }                                                                                                              \
        if (n_lines < TOGETHER) {                                                                                      \
            (void)scan_line_##D(sum[0], out, x, s->lines.length, s->step);                                             \
            return 1;                                                                                                  \
        }                                                                                                              \
        scan_lines_##D(sum, out, x, s->lines.length, s->step);                                                         \
        return TOGETHER;                                                                                               \
    }                                                                                                                  \
    static void scan_##D(const struct scan *s, void *out, const void *x)                                               \
    {                                                                                                                  \
        A sum[WIDTH];                                                                                                  \
        const struct lines *l = &s->lines;                                                                             \
        for (int64_t i = 0, n; i < l->n; i += n) {                                                                     \
            int64_t begin = line_begin(l, i), at = begin + (s->step < 0 ? l->length - 1 : 0) * l->step;                \
            n = l->step == 1 ? MIN(l->n - i, TOGETHER) : MIN(l->step - i % l->step, WIDTH);                            \
            for (int64_t k = 0; k < n; k++) {                                                                          \
                sum[k] = s->first != NULL ? ((const A *)s->first)[i + k] : 0;                                          \
            }                                                                                                          \
            if (l->step == 1) {                                                                                        \
                n = scan_own_##D(s, sum, (O *)out + begin, (const T *)x + begin, n);                                   \
            } else {                                                                                                   \
                scan_rows_##D(s, sum, (O *)out + at, (const T *)x + at, n);                                            \
            }                                                                                                          \
        }                                                                                                              \
    }

#ifdef HAS_SHUFFLES
/* Eight elements at a time: what has come before is added to each, which then waits for one addition of eight.
 *
 *     a b c d ...   ->   a  a+b  b+c  c+d ...   ->   a  a+b  a+b+c  a+b+c+d ...   (and once more, four places on) */
#define AFTER(v, ...) __builtin_shufflevector(v, none, __VA_ARGS__)
#define RUN_LINE(D, T, U, unused)                                                                                      \
    static VECTOR_VALUE(double, run_##D, (T *restrict out, const T *restrict x, int64_t n, double before),             \
                        (out, x, n, before))                                                                           \
    {                                                                                                                  \
        const lanes none = { 0 };                                                                                      \
        lanes all = none + before;                                                                                     \
        int64_t i = 0;                                                                                                 \
        for (; i + N_LANES <= n; i += N_LANES) {                                                                       \
            double lane[N_LANES];                                                                                      \
            lanes v;                                                                                                   \
            lanes_load_##D(&v, x + i);                                                                                 \
            v += AFTER(v, 8, 0, 1, 2, 3, 4, 5, 6);                                                                     \
            v += AFTER(v, 8, 8, 0, 1, 2, 3, 4, 5);                                                                     \
            v += AFTER(v, 8, 8, 8, 8, 0, 1, 2, 3);                                                                     \
            const lanes with = v + all;                                                                                \
            all += AFTER(v, 7, 7, 7, 7, 7, 7, 7, 7);                                                                   \
            memcpy(lane, &with, sizeof lane);                                                                          \
            for (int l = 0; l < N_LANES; l++) {                                                                        \
                out[i + l] = (T)lane[l];                                                                               \
            }                                                                                                          \
        }                                                                                                              \
        double sum = all[0];                                                                                           \
        for (; i < n; i++) {                                                                                           \
            sum += (double)x[i];                                                                                       \
            out[i] = (T)sum;                                                                                           \
        }                                                                                                              \
        return sum;                                                                                                    \
    }                                                                                                                  \
    static bool run_line_##D(const struct scan *s, double sum, T *out, const T *x)                                     \
    {                                                                                                                  \
        T block[BLOCK] __attribute__((aligned(CACHE_LINE)));                                                           \
        for (int64_t i = 0; i < s->lines.length; i += BLOCK) {                                                         \
            const int64_t n = MIN(s->lines.length - i, BLOCK);                                                         \
            sum = run_##D(s->is_large ? block : out + i, x + i, n, sum);                                               \
            if (s->is_large) {                                                                                         \
                write_past_caches(out + i, block, (size_t)n * sizeof(T));                                              \
            }                                                                                                          \
        }                                                                                                              \
        return true;                                                                                                   \
    }
FLOAT_TYPES(RUN_LINE, 0)
#define RUNS_F32 run_line_F32
#define RUNS_F64 run_line_F64
#else
#define RUNS_F32(...) false
#define RUNS_F64(...) false
#endif
#define RUNS_I8(...)   false
#define RUNS_U8(...)   false
#define RUNS_I32(...)  false
#define RUNS_I64(...)  false
#define RUNS_BOOL(...) false

/* clang-format off */
#define SCANNED_TYPES(X)                 \
    X(F32,  float,   double,   float)    \
    X(F64,  double,  double,   double)   \
    X(I8,   int8_t,  uint64_t, int64_t)  \
    X(U8,   uint8_t, uint64_t, int64_t)  \
    X(I32,  int32_t, uint64_t, int64_t)  \
    X(I64,  int64_t, uint64_t, int64_t)  \
    X(BOOL, bool,    uint64_t, int64_t)
/* clang-format on */
SCANNED_TYPES(SCAN)
#define SCAN_ENTRY(D, T, A, O) [MESH_##D] = scan_##D,
static void (*const scans[N_DTYPES])(const struct scan *s, void *out, const void *x) = { SCANNED_TYPES(SCAN_ENTRY) };

int k_cumsum(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    if (scans[x->dtype] == NULL) {
        return unsupported_dtype("cumsum", x->dtype);
    }
    struct lines l = lines_of(x->shape, c->attr->dim[0]);
    PRE(c->in[1] == NULL || (c->in[1]->n == l.n && dtype_size(c->in[1]->dtype) == sizeof(double)));
    struct scan s = { .lines = l, .first = c->in[1] != NULL ? c->in[1]->data : NULL };
    s.step = c->attr->mode != 0 ? -l.step : l.step;
    s.is_large = goes_past_caches(c->out[0]->data, tensor_bytes(c->out[0]),
                                  (size_t)(l.step == 1 ? l.length : l.step) * dtype_size(c->out[0]->dtype));
    scans[x->dtype](&s, c->out[0]->data, x->data);
    finish_past_caches();
    return 0;
}
