/* client/tensor/reduce_walk.h - the elements of a tensor, row by row, each with the place of the result it goes into.
 *
 *     x [2,3], dims {1}:   row 0 -> out 0, step 0         x [2,3], dims {0}:   row 0 -> out 0, 1, 2 (step 1)
 *                          row 1 -> out 1, step 0                              row 1 -> out 0, 1, 2
 *
 * For one result the elements come in the order of their flat index among the dims that go.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_REDUCE_WALK_H
#define TENSOR_REDUCE_WALK_H

#include "base/vector.h"
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

/* Of the whole; rows above each other come together where they can, so that the results are read and written less
 * often: where is_stack is set, out_step is 1. */
void reduce_walk_stacked(const struct mesh_tensor *x, uint32_t dims, reduce_row_fn row, void *state);

/* Defines name(): to[i] = STEP(to[i], x[i], p) for the elements of a row, or (where step, the way to the next row, is
 * not 0) of the rows of a stack in order.  A: the accumulator; T: the element. */
#define REDUCE_COLUMNS(name, A, T, STEP)                                                                               \
    static VECTOR_ROW(name, (A *restrict to, const T *restrict x, int64_t n, int64_t step, double p),                  \
                      (to, x, n, step, p))                                                                             \
    {                                                                                                                  \
        (void)p;                                                                                                       \
        for (int64_t i = 0; step == 0 && i < n; i++) {                                                                 \
            to[i] = (A)(STEP(to[i], x[i], p));                                                                         \
        }                                                                                                              \
        for (int64_t i = 0; step != 0 && i < n; i++) {                                                                 \
            A a = to[i];                                                                                               \
            for (int64_t k = 0; k < REDUCE_STACK; k++) {                                                               \
                a = (A)(STEP(a, x[k * step + i], p));                                                                  \
            }                                                                                                          \
            to[i] = a;                                                                                                 \
        }                                                                                                              \
    }

/* What REDUCE_COLUMNS() calls step. */
static inline int64_t reduce_step(const struct reduce_row *r)
{
    return r->is_stack ? r->row_step : 0;
}

#endif
