/* client/tensor/k_scan.c - running sums along dim[0], forwards or (mode 1) backwards.
 *
 * Floats run in f64 and are rounded element by element; integers wrap in i64.  in[1], when there is one, has what each line
 * begins with: one f64 (or i64) per line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/dtype.h"
#include "tensor/kernels.h"
#include "tensor/lines.h"
#include "tensor/numbers.h"

typedef void (*scan_fn)(void *out, const void *x, const struct lines *l, const void *first, bool is_backward);

/* A: what runs; O: the result's element. */
#define SCAN(D, T, A, O)                                                                                               \
    static void scan_##D(void *out_, const void *x_, const struct lines *l, const void *first, bool is_backward)       \
    {                                                                                                                  \
        const T *x = x_;                                                                                               \
        O *out = out_;                                                                                                 \
        for (int64_t i = 0; i < l->n; i++) {                                                                           \
            int64_t at = line_begin(l, i) + (is_backward ? (l->length - 1) * l->step : 0);                             \
            int64_t step = is_backward ? -l->step : l->step;                                                           \
            A sum = first != NULL ? ((const A *)first)[i] : 0;                                                         \
            for (int64_t j = 0; j < l->length; j++, at += step) {                                                      \
                sum += (A)x[at];                                                                                       \
                out[at] = (O)sum;                                                                                      \
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
