/* client/tensor/reduce_walk.h - the elements of a tensor, row by row, each with the place of the result it goes into.
 *
 *     x [2,3], dims {1}:   row 0 -> out 0, step 0         x [2,3], dims {0}:   row 0 -> out 0, 1, 2 (step 1)
 *                          row 1 -> out 1, step 0                              row 1 -> out 0, 1, 2
 *
 * For one result the elements come in the order of their flat index among the dims that go.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_REDUCE_WALK_H
#define TENSOR_REDUCE_WALK_H

#include "tensor/kernels.h"

struct reduce_row {
    const void *x; /* [n] */
    int64_t n;
    int64_t out, out_step;     /* element i goes into result out + i out_step; the step is 0 or 1 */
    int64_t index, index_step; /* and has this flat index in the whole tensor, among the dims that go */
    bool is_stack;             /* reduce_walk_stacked(): there are REDUCE_STACK such rows for the same results, */
    int64_t row_step;          /* so many elements apart */
};
#define REDUCE_STACK 8
typedef void (*reduce_row_fn)(void *state, const struct reduce_row *row);

/* Where x lies in the whole tensor; NULL: it is the whole. */
struct reduce_place {
    mesh_shape whole;
    const int64_t *offset;
};

void reduce_walk(const struct mesh_tensor *x, uint32_t dims, const struct reduce_place *place, reduce_row_fn row,
                 void *state);

/* Without flat indices; rows above each other come together where they can, so that the results are read and written less often:
 * where is_stack is set, out_step is 1. */
void reduce_walk_stacked(const struct mesh_tensor *x, uint32_t dims, reduce_row_fn row, void *state);

/* to = step(to, x[i], s) for the elements of a row, or of the rows of a stack in order. */
#define REDUCE_ROWS(r, T, x, to, step, s)                                                                              \
    do {                                                                                                               \
        const int64_t n_ = (r)->n;                                                                                     \
        if ((r)->is_stack) {                                                                                           \
            const T *x1 = (x) + (r)->row_step, *x2 = x1 + (r)->row_step, *x3 = x2 + (r)->row_step;                     \
            const T *x4 = x3 + (r)->row_step, *x5 = x4 + (r)->row_step, *x6 = x5 + (r)->row_step;                      \
            const T *x7 = x6 + (r)->row_step;                                                                          \
            for (int64_t i = 0; i < n_; i++) {                                                                         \
                to = step(step(step(step(to, (x)[i], s), x1[i], s), x2[i], s), x3[i], s);                              \
                to = step(step(step(step(to, x4[i], s), x5[i], s), x6[i], s), x7[i], s);                               \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n_; i++) {                                                                         \
                to = step(to, (x)[i], s);                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#endif
