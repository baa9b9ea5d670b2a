/* client/tensor/elementwise.c - steps through the result of an elementwise kernel and its inputs, row by row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/elementwise.h"

#include "base/check.h"
#include "base/dtype.h"
#include "tensor/numbers.h"
#include "tensor/walk.h"

static int count_inputs(const struct kernel_call *c)
{
    int n = 0;
    while (n < ELEMENTWISE_INPUTS && c->in[n] != NULL) {
        n++;
    }
    return n;
}

static void push_all(const struct kernel_call *c, int n_in, struct walk *w)
{
    mesh_shape out = c->out[0]->shape;
    int64_t stride[WALK_OPERANDS][MESH_MAX_NDIM] = { { 0 } };
    shape_strides(out, out, stride[0]);
    for (int k = 0; k < n_in; k++) {
        shape_strides(c->in[k]->shape, out, stride[k + 1]);
    }
    walk_init(w);
    for (int d = 0; d < out.ndim; d++) {
        int64_t of_dim[WALK_OPERANDS];
        for (int k = 0; k < WALK_OPERANDS; k++) {
            of_dim[k] = stride[k][d];
        }
        walk_push(w, out.dim[d], of_dim);
    }
}

int elementwise(const struct kernel_call *c, const char *name, const element_row_fn *rows, int by)
{
    element_row_fn row = rows[c->in[by]->dtype];
    int n_in = count_inputs(c);
    struct walk w;
    struct walk_at at;
    if (row == NULL) {
        return unsupported_dtype(name, c->in[by]->dtype);
    }
    push_all(c, n_in, &w);
    int64_t item_out = (int64_t)dtype_size(c->out[0]->dtype);
    struct element_row r = { .n = walk_inner(&w), .attr = c->attr };
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        r.out = (char *)c->out[0]->data + at.offset[0] * item_out;
        for (int k = 0; k < n_in; k++) {
            r.in[k] = (const char *)c->in[k]->data + at.offset[k + 1] * (int64_t)dtype_size(c->in[k]->dtype);
            r.step[k] = walk_step(&w, k + 1);
        }
        row(&r);
    }
    return 0;
}
