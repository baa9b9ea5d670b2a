/* client/tensor/gemm.h - one product of dense row-major matrices, for kernels that are made of products.
 *
 *     c[m,n] = a[m,k] b[k,n]   (a stored as [k,m] when trans_a, b as [n,k] when trans_b), added to c when accumulate
 *
 * Each may be columns of a wider matrix: its rows, as stored, then begin row_a, row_b or row_c elements apart.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_GEMM_H
#define TENSOR_GEMM_H

#include <mesh/tensor.h>

struct gemm {
    const char *name; /* of whom it is for: messages begin with it */
    mesh_dtype dtype;
    bool trans_a, trans_b, accumulate;
    int64_t m, n, k;
    int64_t row_a, row_b, row_c; /* 0: one row ends where the next begins */
};
int gemm_run(struct gemm g, const void *a, const void *b, void *c);

#endif
