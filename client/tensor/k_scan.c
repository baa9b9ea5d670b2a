/* client/tensor/k_scan.c - running sums along dim[0], forwards or (mode 1) backwards.
 *
 * Floats run in f64 and are rounded element by element; integers wrap in i64.  in[1], when there is one, has what each line
 * begins with: one f64 (or i64) per line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/dtype.h"
#include "base/util.h"
#include "tensor/kernels.h"
#include "tensor/lines.h"
#include "tensor/numbers.h"
#include "base/vector.h"

typedef void (*scan_fn)(void *out, const void *x, const struct lines *l, const void *first, bool is_backward);

#define WIDTH    256 /* lines that run together */
#define TOGETHER 4   /* of lines whose own elements are neighbours: as many chains of additions */

/* `rows` rows of n neighbours; the next row is `step` elements on. */
struct rows {
    int64_t rows, n, step;
};

/* A: what runs; O: the result's element.  Neighbouring lines run together, so that all loops go over neighbours. */
#define SCAN(D, T, A, O)                                                                                               \
    static VECTOR_ROW(add_rows_##D, (A *restrict sum, O *restrict out, const T *x, const struct rows *r),              \
                      (sum, out, x, r))                                                                                \
    {                                                                                                                  \
        const int64_t n = r->n;                                                                                        \
        for (int64_t i = 0; i < r->rows; i++) {                                                                        \
            for (int64_t k = 0; k < n; k++) {                                                                          \
                sum[k] += (A)x[k];                                                                                     \
                out[k] = (O)sum[k];                                                                                    \
            }                                                                                                          \
            x += r->step;                                                                                              \
            out += r->step;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void scan_line_##D(A sum, O *out, const T *x, int64_t n, int64_t step)                                      \
    {                                                                                                                  \
        for (int64_t at = step < 0 ? n - 1 : 0; at >= 0 && at < n; at += step) {                                       \
            sum += (A)x[at];                                                                                           \
            out[at] = (O)sum;                                                                                          \
        }                                                                                                              \
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
    static int64_t scan_own_##D(const A *sum, O *out, const T *x, int64_t n, int64_t n_lines, int64_t step)            \
    {                                                                                                                  \
        if (n_lines < TOGETHER) {                                                                                      \
            scan_line_##D(sum[0], out, x, n, step);                                                                    \
            return 1;                                                                                                  \
        }                                                                                                              \
        scan_lines_##D(sum, out, x, n, step);                                                                          \
        return TOGETHER;                                                                                               \
    }                                                                                                                  \
    static void scan_##D(void *out, const void *x, const struct lines *l, const void *first, bool is_backward)         \
    {                                                                                                                  \
        A sum[WIDTH];                                                                                                  \
        const int64_t step = is_backward ? -l->step : l->step;                                                         \
        for (int64_t i = 0, n; i < l->n; i += n) {                                                                     \
            int64_t begin = line_begin(l, i), at = begin + (is_backward ? l->length - 1 : 0) * l->step;                \
            n = l->step == 1 ? MIN(l->n - i, TOGETHER) : MIN(l->step - i % l->step, WIDTH);                            \
            for (int64_t k = 0; k < n; k++) {                                                                          \
                sum[k] = first != NULL ? ((const A *)first)[i + k] : 0;                                                \
            }                                                                                                          \
            if (l->step == 1) {                                                                                        \
                n = scan_own_##D(sum, (O *)out + begin, (const T *)x + begin, l->length, n, step);                     \
            } else {                                                                                                   \
                add_rows_##D(sum, (O *)out + at, (const T *)x + at, &(struct rows){ l->length, n, step });             \
            }                                                                                                          \
        }                                                                                                              \
    }
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
static const scan_fn scans[N_DTYPES] = { SCANNED_TYPES(SCAN_ENTRY) };

int k_cumsum(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    if (scans[x->dtype] == NULL) {
        return unsupported_dtype("cumsum", x->dtype);
    }
    struct lines l = lines_of(x->shape, c->attr->dim[0]);
    PRE(c->in[1] == NULL || (c->in[1]->n == l.n && dtype_size(c->in[1]->dtype) == sizeof(double)));
    scans[x->dtype](c->out[0]->data, x->data, &l, c->in[1] != NULL ? c->in[1]->data : NULL, c->attr->mode != 0);
    return 0;
}
