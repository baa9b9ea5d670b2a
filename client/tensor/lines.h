/* client/tensor/lines.h - the lines of a tensor along one dimension: n lines of `length` elements, `step` apart.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_LINES_H
#define TENSOR_LINES_H

#include "tensor/shape.h"

struct lines {
    int64_t n, length, step;
};

static inline struct lines lines_of(mesh_shape s, int dim)
{
    int64_t inner = shape_inner(s, dim);
    return (struct lines){ .n = shape_outer(s, dim) * inner, .length = s.dim[dim], .step = inner };
}

/* Where line i begins. */
static inline int64_t line_begin(const struct lines *l, int64_t i)
{
    return l->step == 0 ? 0 : i / l->step * l->length * l->step + i % l->step;
}

#endif
