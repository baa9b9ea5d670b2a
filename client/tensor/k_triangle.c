/* client/tensor/k_triangle.c - the lower or upper triangle of matrices, zeros elsewhere.
 *
 * What is kept is decided by global indices: of a part that begins at row r and column c of the whole, the diagonal is moved
 * by r - c.  So no layout needs any communication.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/dtype.h"
#include "base/util.h"
#include "tensor/kernels.h"

#define FARTHEST (INT64_MAX / 4) /* past the last column of any tensor there is memory for */

static int64_t between(int64_t v, int64_t least, int64_t most)
{
    return MIN(MAX(v, least), most);
}

/* One row of n items: copies [from, to), clears the rest. */
static void keep(char *out, const char *x, int64_t n, int64_t from, int64_t to, size_t item)
{
    memset(out, 0, (size_t)from * item);
    memcpy(out + (size_t)from * item, x + (size_t)from * item, (size_t)(to - from) * item);
    memset(out + (size_t)to * item, 0, (size_t)(n - to) * item);
}

static int triangle(const struct kernel_call *c, bool is_lower)
{
    const struct mesh_tensor *x = c->in[0];
    int row_dim = x->shape.ndim - 2, column_dim = x->shape.ndim - 1;
    int64_t rows = x->shape.dim[row_dim], columns = x->shape.dim[column_dim];
    size_t item = dtype_size(x->dtype), bytes = (size_t)columns * item;
    int64_t shift = between(c->attr->index[0], -FARTHEST, FARTHEST);
    int64_t first = c->offset[row_dim] - c->offset[column_dim] + shift;
    if (x->n == 0) {
        return 0;
    }
    for (int64_t i = 0; i < x->n / columns; i++) {
        int64_t diagonal = first + i % rows; /* the column where this row meets it */
        int64_t end = between(is_lower ? diagonal + 1 : diagonal, 0, columns);
        keep((char *)c->out[0]->data + (size_t)i * bytes, (const char *)x->data + (size_t)i * bytes, columns,
             is_lower ? 0 : end, is_lower ? end : columns, item);
    }
    return 0;
}

int k_tril(const struct kernel_call *c)
{
    return triangle(c, true);
}

int k_triu(const struct kernel_call *c)
{
    return triangle(c, false);
}
