/* client/tensor/walk.h - steps through several arrays at once, row by row, each with strides of its own.
 *
 *     struct walk w;
 *     walk_init(&w);                                   push the dimensions, outermost first:
 *     walk_push(&w, rows, (int64_t[]){ 3, 3, 0 });     extent, then the stride of each operand; 0: broadcast
 *     walk_push(&w, 3, (int64_t[]){ 1, 1, 1 });
 *     struct walk_at at;
 *     for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at))
 *         row(out + at.offset[0], a + at.offset[1], b + at.offset[2], walk_inner(&w));
 *
 * Dimensions of extent 1 vanish and neighbours that are contiguous for every operand become one, so a walk over equal
 * dense shapes is a single row.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_WALK_H
#define TENSOR_WALK_H

#include <mesh/base.h>

#define WALK_OPERANDS 4
#define WALK_MAX_NDIM (MESH_MAX_NDIM + 1)

struct walk {
    int ndim;
    bool is_empty;
    int64_t extent[WALK_MAX_NDIM];
    int64_t stride[WALK_MAX_NDIM][WALK_OPERANDS];
};

struct walk_at {
    int64_t index[WALK_MAX_NDIM];
    int64_t offset[WALK_OPERANDS];
};

void walk_init(struct walk *w);
void walk_push(struct walk *w, int64_t extent, const int64_t stride[WALK_OPERANDS]);

bool walk_first(const struct walk *w, struct walk_at *ret_at); /* false: there is no element */
bool walk_next(const struct walk *w, struct walk_at *at);
int64_t walk_inner(const struct walk *w);             /* elements per row */
int64_t walk_step(const struct walk *w, int operand); /* the operand's stride within a row */

/* Row-major strides of s as it broadcasts to shape `to` (NumPy's rule): ret_stride[d] for dim d of `to`. */
void shape_strides(mesh_shape s, mesh_shape to, int64_t ret_stride[MESH_MAX_NDIM]);

#endif
