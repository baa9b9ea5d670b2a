/* client/tensor/lanes.h - eight f64 lanes as one value, for sums whose order stands in the source.
 *
 * Vectors of the compilers' own kind, split where the processor has narrower ones: the bits are the same everywhere.
 * Values of this type stay inside functions, whose callers may have been compiled for other vectors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_LANES_H
#define TENSOR_LANES_H

#include <string.h>

#include "base/vector.h"
#include "tensor/numbers.h"

#define N_LANES 8
typedef double lanes __attribute__((vector_size(64)));

/* Eight elements anywhere in an array; element by element, which compilers make one instruction of. */
#define LANES_OF(D, T, U, unused)                                                                                      \
    VECTOR_INLINE void lanes_load_##D(lanes *ret_lanes, const T *x)                                                    \
    {                                                                                                                  \
        double lane[N_LANES];                                                                                          \
        for (int l = 0; l < N_LANES; l++) {                                                                            \
            lane[l] = (double)x[l];                                                                                    \
        }                                                                                                              \
        memcpy(ret_lanes, lane, sizeof lane);                                                                          \
    }
FLOAT_TYPES(LANES_OF, 0)

/* As many elements as 64 bytes hold, computed as they are; WIDE(T) of them. */
#define WIDE(T) (64 / (int)sizeof(T))
typedef float wide_F32 __attribute__((vector_size(64)));
typedef double wide_F64 __attribute__((vector_size(64)));

/* Adds them to WIDE(T) / N_LANES lanes. */
#define WIDE_OF(D, T, U, unused)                                                                                       \
    VECTOR_INLINE void lanes_add_##D(lanes *inout, const wide_##D *x)                                                  \
    {                                                                                                                  \
        T element[WIDE(T)];                                                                                            \
        memcpy(element, x, sizeof element);                                                                            \
        for (int k = 0; k < WIDE(T) / N_LANES; k++) {                                                                  \
            lanes v;                                                                                                   \
            lanes_load_##D(&v, element + k * N_LANES);                                                                 \
            inout[k] += v;                                                                                             \
        }                                                                                                              \
    }
FLOAT_TYPES(WIDE_OF, 0)

/* Their sum: one half joins the other until there is one. */
VECTOR_INLINE double lanes_total(const lanes *all)
{
    double lane[N_LANES];
    memcpy(lane, all, sizeof lane);
    for (int half = N_LANES / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; l++) {
            lane[l] += lane[l + half];
        }
    }
    return lane[0];
}

#endif
