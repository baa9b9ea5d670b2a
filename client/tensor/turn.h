/* client/tensor/turn.h - a matrix written as its transpose, a tile at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_TURN_H
#define TENSOR_TURN_H

#include <stddef.h>
#include <stdint.h>

/* to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns. */
struct turn {
    void *to;
    const void *from;
    int64_t to_step, from_step, rows, columns;
    size_t item; /* bytes of an element: 1, 2, 4 or 8; steps are in elements */
};

void turn_matrix(const struct turn *t);

#endif
