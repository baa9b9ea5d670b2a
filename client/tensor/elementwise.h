/* client/tensor/elementwise.h - kernels that compute every element of the result from one element of each input.
 *
 * The inputs broadcast to the result; each may have a dtype of its own.  A kernel supplies what is done with one row.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_ELEMENTWISE_H
#define TENSOR_ELEMENTWISE_H

#include "tensor/kernels.h"

#define ELEMENTWISE_INPUTS 3

struct element_row {
    void *out;                          /* [n], dense */
    const void *in[ELEMENTWISE_INPUTS]; /* in[k][i * step[k]] */
    int64_t step[ELEMENTWISE_INPUTS];   /* 0: one element for the whole row */
    int64_t n;
    const struct op_attr *attr;
};

/* All three inputs step by 1: a loop that the compiler can make a vector loop. */
static inline bool element_row_is_dense(const struct element_row *r)
{
    return r->step[0] == 1 && r->step[1] == 1 && r->step[2] == 1;
}

typedef void (*element_row_fn)(const struct element_row *r);

/* rows: by dtype of input `by`; NULL there: MESH_EUNSUPPORTED with the kernel's name. */
int elementwise(const struct kernel_call *c, const char *name, const element_row_fn *rows, int by);

#endif
