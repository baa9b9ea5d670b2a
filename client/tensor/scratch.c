/* client/tensor/scratch.c - how much memory a kernel takes beside its inputs and outputs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/scratch.h"

#include "base/dtype.h"
#include "base/util.h"

enum scratch_row {
#define SCRATCH(kernel, words, bytes) ROW_##kernel,
#include "tensor/scratch.def"
    N_ROWS
};

static const struct {
    kernel_fn kernel;
    const char *words;
} rows[N_ROWS] = {
#define SCRATCH(kernel, words, bytes) { k_##kernel, words },
#include "tensor/scratch.def"
};

static int row_of(kernel_fn kernel)
{
    int i = 0;
    while (i < N_ROWS && rows[i].kernel != kernel) {
        i++;
    }
    return i;
}

const char *kernel_scratch_words(kernel_fn kernel)
{
    int i = row_of(kernel);
    return i < N_ROWS ? rows[i].words : "none";
}

static int64_t line_of(const struct kernel_call *c)
{
    const struct mesh_tensor *x = c->in[0];
    return x->shape.ndim > 0 ? x->shape.dim[c->attr->dim[0]] : 1;
}

/* Bytes of the windows that are there at once: y is what a convolution with the weight w gives. */
static int64_t conv_tile(const struct mesh_tensor *w, const struct mesh_tensor *y, int64_t item)
{
    int64_t window = w->shape.dim[1] * w->shape.dim[2] * w->shape.dim[3] * item;
    return MIN(y->shape.dim[2] * y->shape.dim[3] * window, MAX((int64_t)4 << 20, 64 * window));
}

static size_t in_rows(kernel_fn kernel, const struct kernel_call *c, int64_t item)
{
    switch (row_of(kernel)) {
#define RESULTS (c->out[0]->n)
#define LINE    line_of(c)
#define SCRATCH(kernel, words, bytes)                                                                                  \
    case ROW_##kernel:                                                                                                 \
        return (size_t)(bytes);
#include "tensor/scratch.def"
    default:
        (void)item;
        return 0;
    }
}

size_t kernel_scratch(kernel_fn kernel, const struct kernel_call *c)
{
    bool has_half = kernel_has_half(c) && kernel != k_cast;
    int64_t item = has_half ? (int64_t)sizeof(float) : (int64_t)dtype_size(c->in[0]->dtype);
    return in_rows(kernel, c, item) + (has_half ? kernel_half_scratch(kernel, c) : 0);
}
