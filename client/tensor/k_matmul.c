/* client/tensor/k_matmul.c - matrix products: OpenBLAS for f32 and f64, plain loops for integers.
 *
 * All of them come down to one product of dense row-major matrices (gemm.h).  BLAS counts in 32 bits: longer rows or
 * columns are refused, many rows are taken in pieces.  OpenBLAS runs one thread per rank: ranks are the parallelism.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cblas.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tensor/gemm.h"
#include "tensor/kernels.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"
#include "tensor/walk.h"

/* --- OpenBLAS ---------------------------------------------------------------------------------------------------- */

static void use_one_thread(void)
{
    openblas_set_num_threads(1);
}

/* OpenBLAS takes 128 MiB to work in for each thread that works at the time, and tries for ever when it gets none. */
#define BLAS_WORKSPACE_BYTES ((size_t)130 << 20)

static int check_workspace(void)
{
    static _Thread_local bool was_there;
    if (was_there) {
        return 0;
    }
    void *room = mmap(NULL, BLAS_WORKSPACE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        return err_no_memory(BLAS_WORKSPACE_BYTES, "matrix products to work in");
    }
    (void)munmap(room, BLAS_WORKSPACE_BYTES);
    was_there = true;
    return 0;
}

#define BLAS_MAX          INT32_MAX
#define BLAS_ROWS_AT_ONCE (INT64_C(1) << 30)

#define BLAS_GEMM(D, T, prefix)                                                                                        \
    static void gemm_##D(const struct gemm *g, const void *a, const void *b, void *c)                                  \
    {                                                                                                                  \
        cblas_##prefix##gemm(CblasRowMajor, g->trans_a ? CblasTrans : CblasNoTrans,                                    \
                             g->trans_b ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k, 1, (const T *)a, \
                             (int)g->row_a, (const T *)b, (int)g->row_b, (T)(g->accumulate ? 1 : 0), (T *)c,           \
                             (int)g->row_c);                                                                           \
    }
BLAS_GEMM(F32, float, s)
BLAS_GEMM(F64, double, d)

/* --- integers ---------------------------------------------------------------------------------------------------- */

#define INT_GEMM(D, T, U, unused)                                                                                      \
    static void gemm_##D(const struct gemm *g, const void *a_, const void *b_, void *c_)                               \
    {                                                                                                                  \
        const T *a = a_, *b = b_;                                                                                      \
        T *restrict c = c_;                                                                                            \
        for (int64_t i = 0; i < g->m; i++) {                                                                           \
            for (int64_t j = 0; j < g->n; j++) {                                                                       \
                U sum = g->accumulate ? (U)c[i * g->row_c + j] : 0;                                                    \
                for (int64_t l = 0; l < g->k; l++) {                                                                   \
                    U x = (U)(g->trans_a ? a[l * g->row_a + i] : a[i * g->row_a + l]);                                 \
                    U y = (U)(g->trans_b ? b[j * g->row_b + l] : b[l * g->row_b + j]);                                 \
                    sum = (U)(sum + x * y);                                                                            \
                }                                                                                                      \
                c[i * g->row_c + j] = (T)sum;                                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }
INT_TYPES(INT_GEMM, 0)

typedef void (*gemm_fn)(const struct gemm *g, const void *a, const void *b, void *c);
#define GEMM_ENTRY(D, T, U, unused) [MESH_##D] = gemm_##D,
static const gemm_fn gemms[N_DTYPES] = { NUMBER_TYPES(GEMM_ENTRY, 0) };

/* --- any size, any dtype ----------------------------------------------------------------------------------------- */

static int check_sizes(const struct gemm *g)
{
    if (gemms[g->dtype] == NULL) {
        return unsupported_dtype(g->name, g->dtype);
    }
    int64_t longest = MAX(MAX(g->n, g->row_a), MAX(g->k, g->trans_a ? g->m : 0));
    longest = MAX(longest, MAX(g->row_b, g->row_c));
    if (dtype_kind(g->dtype) == DTYPE_FLOAT && longest > BLAS_MAX) {
        return err_set(MESH_ETOOLARGE, "%s: an extent of %lld is over the %d that BLAS can count", g->name,
                       (long long)longest, BLAS_MAX);
    }
    return dtype_kind(g->dtype) == DTYPE_FLOAT ? check_workspace() : 0;
}

/* A sum of nothing. */
static void clear_result(const struct gemm *g, void *c)
{
    size_t item = dtype_size(g->dtype);
    for (int64_t i = 0; !g->accumulate && i < g->m; i++) {
        memset((char *)c + (size_t)(i * g->row_c) * item, 0, (size_t)g->n * item);
    }
}

/* The sizes are checked. */
static void multiply(struct gemm g, const void *a, const void *b, void *c)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, use_one_thread);
    size_t item = dtype_size(g.dtype);
    int64_t m = g.m;
    g.row_a = g.row_a != 0 ? g.row_a : g.trans_a ? m : g.k;
    g.row_b = g.row_b != 0 ? g.row_b : g.trans_b ? g.k : g.n;
    g.row_c = g.row_c != 0 ? g.row_c : g.n;
    if (m == 0 || g.n == 0) {
        return;
    }
    if (g.k == 0) {
        clear_result(&g, c);
        return;
    }
    int64_t rows_at_once = g.trans_a ? m : BLAS_ROWS_AT_ONCE; /* a transposed a was checked to fit */
    for (int64_t begin = 0; begin < m; begin += rows_at_once) {
        g.m = MIN(m - begin, rows_at_once);
        gemms[g.dtype](&g, (const char *)a + (size_t)(begin * g.row_a) * item, b,
                       (char *)c + (size_t)(begin * g.row_c) * item);
    }
}

int gemm_run(struct gemm g, const void *a, const void *b, void *c)
{
    int r = check_sizes(&g);
    if (r == 0) {
        multiply(g, a, b, c);
    }
    return r;
}

/* --- matmul ------------------------------------------------------------------------------------------------------ */

/* The batch dimensions of a matrix operand: its shape without the last two (a vector has none). */
static mesh_shape batch_of(mesh_shape s)
{
    mesh_shape batch = s;
    batch.ndim = s.ndim > 2 ? s.ndim - 2 : 0;
    return batch;
}

/* One product per batch entry, in matrices as units. */
static void multiply_batches(const struct kernel_call *c, const struct gemm *g, mesh_shape batch)
{
    const struct mesh_tensor *a = c->in[0], *b = c->in[1];
    int64_t item = (int64_t)dtype_size(g->dtype);
    int64_t stride_a[MESH_MAX_NDIM], stride_b[MESH_MAX_NDIM], stride_out[MESH_MAX_NDIM];
    shape_strides(batch, batch, stride_out);
    shape_strides(batch_of(a->shape), batch, stride_a);
    shape_strides(batch_of(b->shape), batch, stride_b);
    struct walk w;
    struct walk_at at;
    walk_init(&w);
    for (int d = 0; d < batch.ndim; d++) {
        walk_push(&w, batch.dim[d], (int64_t[WALK_OPERANDS]){ stride_out[d], stride_a[d], stride_b[d] });
    }
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        for (int64_t i = 0; i < walk_inner(&w); i++) {
            int64_t at_out = at.offset[0] + i * walk_step(&w, 0);
            int64_t at_a = at.offset[1] + i * walk_step(&w, 1), at_b = at.offset[2] + i * walk_step(&w, 2);
            multiply(*g, (const char *)a->data + at_a * g->m * g->k * item,
                     (const char *)b->data + at_b * g->k * g->n * item,
                     (char *)c->out[0]->data + at_out * g->m * g->n * item);
        }
    }
}

int k_matmul(const struct kernel_call *c)
{
    mesh_shape a = c->in[0]->shape, b = c->in[1]->shape, batch;
    struct gemm g = { .name = "matmul",
                      .dtype = c->out[0]->dtype,
                      .m = a.ndim == 1 ? 1 : a.dim[a.ndim - 2],
                      .n = b.ndim == 1 ? 1 : b.dim[b.ndim - 1],
                      .k = a.dim[a.ndim - 1] };
    if (b.ndim <= 2 && a.ndim > 2) { /* one matrix for all batches: their rows are one tall matrix */
        g.m = shape_outer(a, a.ndim - 1);
        a.ndim = 2;
    }
    int r = check_sizes(&g);
    if (r == 0) {
        r = shape_broadcast(batch_of(a), batch_of(b), "matmul", &batch);
    }
    if (r == 0) {
        multiply_batches(c, &g, batch);
    }
    return r;
}

/* --- linear: y = x w' + bias ------------------------------------------------------------------------------------- */

static void fill_rows(struct mesh_tensor *out, const struct mesh_tensor *bias)
{
    size_t row_bytes = tensor_bytes(bias);
    if (row_bytes == 0) {
        return;
    }
    for (size_t at = 0; at < tensor_bytes(out); at += row_bytes) {
        memcpy((char *)out->data + at, bias->data, row_bytes);
    }
}

int k_linear(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0], *w = c->in[1], *bias = c->in[2];
    struct gemm g = { .name = "linear",
                      .dtype = x->dtype,
                      .trans_b = true,
                      .accumulate = bias != NULL,
                      .m = shape_outer(x->shape, x->shape.ndim - 1),
                      .n = w->shape.dim[0],
                      .k = w->shape.dim[1] };
    int r = check_sizes(&g);
    if (r < 0) {
        return r;
    }
    if (bias != NULL) {
        fill_rows(c->out[0], bias);
    }
    multiply(g, x->data, w->data, c->out[0]->data);
    return 0;
}

int k_linear_grad_input(const struct kernel_call *c)
{
    const struct mesh_tensor *dy = c->in[0], *w = c->in[1];
    struct gemm g = { .name = "linear_grad_input",
                      .dtype = dy->dtype,
                      .m = shape_outer(dy->shape, dy->shape.ndim - 1),
                      .n = w->shape.dim[1],
                      .k = w->shape.dim[0] };
    return gemm_run(g, dy->data, w->data, c->out[0]->data);
}

int k_linear_grad_weight(const struct kernel_call *c)
{
    const struct mesh_tensor *dy = c->in[0], *x = c->in[1];
    struct gemm g = { .name = "linear_grad_weight",
                      .dtype = dy->dtype,
                      .trans_a = true,
                      .m = dy->shape.dim[dy->shape.ndim - 1],
                      .n = x->shape.dim[x->shape.ndim - 1],
                      .k = shape_outer(dy->shape, dy->shape.ndim - 1) };
    return gemm_run(g, dy->data, x->data, c->out[0]->data);
}
