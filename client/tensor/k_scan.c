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

#define WIDTH 256 /* lines that run together */

/* A: what runs; O: the result's element.  Neighbouring lines run together, so that all loops go over neighbours. */
#define SCAN(D, T, A, O)                                                                                               \
    VECTOR_CLONES static void add_row_##D(A *restrict sum, O *restrict out, const T *x, int64_t n)                     \
    {                                                                                                                  \
        for (int64_t k = 0; k < n; k++) {                                                                              \
            sum[k] += (A)x[k];                                                                                         \
            out[k] = (O)sum[k];                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void scan_line_##D(O *out, const T *x, const struct lines *l, A sum, bool is_backward)                      \
    {                                                                                                                  \
        for (int64_t j = 0; j < l->length; j++) {                                                                      \
            int64_t at = is_backward ? l->length - 1 - j : j;                                                          \
            sum += (A)x[at];                                                                                           \
            out[at] = (O)sum;                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void scan_##D(void *out, const void *x, const struct lines *l, const void *first, bool is_backward)         \
    {                                                                                                                  \
        A sum[WIDTH];                                                                                                  \
        for (int64_t i = 0, n; i < l->n; i += n) {                                                                     \
            int64_t begin = line_begin(l, i);                                                                          \
            n = MIN(l->step - i % l->step, WIDTH);                                                                     \
            for (int64_t k = 0; k < n; k++) {                                                                          \
                sum[k] = first != NULL ? ((const A *)first)[i + k] : 0;                                                \
            }                                                                                                          \
            if (l->step == 1) {                                                                                        \
                scan_line_##D((O *)out + begin, (const T *)x + begin, l, sum[0], is_backward);                         \
                continue;                                                                                              \
            }                                                                                                          \
            for (int64_t j = 0; j < l->length; j++) {                                                                  \
                int64_t at = begin + (is_backward ? l->length - 1 - j : j) * l->step;                                  \
                add_row_##D(sum, (O *)out + at, (const T *)x + at, n);                                                 \
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
