/* mesh/random.h - dropout, and random numbers written into a tensor that is there.
 *
 * As mesh_rand_opt() and mesh_randn_opt() in dtensor.h, these draw by (seed, call, global index of the element): mesh,
 * placements and number of ranks do not change a bit.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_RANDOM_H
#define MESH_RANDOM_H

#include "dtensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MESH_BY_NAME mesh_dropout_options {
    size_t size;
    uint64_t seed; /* 0: the next draw of the session's stream (mesh_manual_seed) */
} mesh_dropout_options;

/* x with each element kept with probability 1 - p and then scaled by 1 / (1 - p), else 0: mesh_dropout(x, 0.1).
 *
 * A program that does not train leaves the call out.  The gradient goes through the same mask.
 *
 * Placements  y like x.  Partial is refused: a part has no share in whether the sum is dropped.
 * Cost        no traffic.  Nothing is kept for the gradient, which draws the mask again.
 * Errors      MESH_EINVAL when p is not in [0, 1]; MESH_EPLACEMENT for Partial; MESH_EUNSUPPORTED unless x is
 *             floating. */
MESH_API mesh_dtensor *mesh_dropout_opt(mesh_dtensor *x, double p, const mesh_dropout_options *o);
#define mesh_dropout_(x, p, ...) mesh_dropout_opt((x), (p), &(mesh_dropout_options){ __VA_ARGS__ })
#define mesh_dropout(x, ...)     mesh_dropout_(x, __VA_ARGS__, .size = sizeof(mesh_dropout_options))

/* Writes numbers uniform in [low, high) over x, and returns x.  seed 0: the next draw of the session's stream.
 *
 * All that shares x's memory changes with it, also what a pending backward pass has saved.  Numbers of 16 bits are
 * those that f32 would get, rounded; one that would be rounded to `high` becomes the number below it.
 *
 * Placements  stay.
 * Cost        no traffic.
 * Errors      NULL: MESH_EINVAL unless low <= high and both are finite; MESH_EPLACEMENT for Partial; MESH_EUNSUPPORTED
 *             unless x is floating; MESH_ESTATE when x requires a gradient and gradients are recorded
 *             (mesh_grad_enable). */
MESH_API mesh_dtensor *mesh_uniform_(mesh_dtensor *x, double low, double high, uint64_t seed);

/* As mesh_uniform_(), with normal numbers.
 *
 * Errors      NULL: as mesh_uniform_(); MESH_EINVAL when the deviation is negative. */
MESH_API mesh_dtensor *mesh_normal_(mesh_dtensor *x, double mean, double deviation, uint64_t seed);

/* As mesh_uniform_(), with whole numbers from low to high - 1, each as likely as the others, for tensors of i8, u8, i32
 * or i64.
 *
 * Errors      NULL: as mesh_uniform_(); MESH_EINVAL unless low < high, by at most 2^32, and all fit the dtype and 53
 *             bits; MESH_EUNSUPPORTED unless x is of integers. */
MESH_API mesh_dtensor *mesh_randint_(mesh_dtensor *x, int64_t low, int64_t high, uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
