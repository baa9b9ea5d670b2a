/* mesh/create.h - more ways to make a DTensor: evenly spaced or random whole numbers, like another one, by a callback.
 *
 * Every rank allocates and computes its part only; an element is a function of its global index, so that mesh and
 * placements do not change the tensor.  Options and further rules are those of mesh_zeros_opt() in dtensor.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_CREATE_H
#define MESH_CREATE_H

#include "dtensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `steps` numbers from start to end, both included: mesh_linspace(0, 1, 5, mesh, placements, .dtype = MESH_F64).
 *
 * One step: start.  The first half counts from start, the second from end, in double: the last element is end exactly.
 * Integer dtypes cut what is behind the point.
 *
 * Shapes      [steps].
 * Cost        no traffic.
 * Errors      NULL: MESH_EINVAL for negative steps, ends that are not finite or that the dtype cannot hold; as
 *             mesh_zeros_opt(). */
MESH_API mesh_dtensor *mesh_linspace_opt(double start, double end, int64_t steps, mesh_device_mesh *m,
                                         mesh_placements p, const mesh_factory_options *o);
/* base (.base; 0: 10) to the powers mesh_linspace(start, end, steps).
 *
 * Shapes      [steps].
 * Errors      NULL: as mesh_linspace_opt(). */
MESH_API mesh_dtensor *mesh_logspace_opt(double start, double end, int64_t steps, mesh_device_mesh *m,
                                         mesh_placements p, const mesh_factory_options *o);
/* start, start + step, ... up to but without end.
 *
 * Element i is start + i step, computed in double.
 *
 * Shapes      [ceil((end - start) / step)].
 * Errors      NULL: MESH_EINVAL for a step of 0 or away from the end; as mesh_linspace_opt(). */
MESH_API mesh_dtensor *mesh_arange_opt(double start, double end, double step, mesh_device_mesh *m, mesh_placements p,
                                       const mesh_factory_options *o);
#define MESH_POINTS_(f, a, b, n, m, p, ...) f((a), (b), (n), (m), (p), &(mesh_factory_options){ __VA_ARGS__ })
#define mesh_linspace(start, end, steps, m, ...)                                                                       \
    MESH_POINTS_(mesh_linspace_opt, start, end, steps, m, __VA_ARGS__, .size = sizeof(mesh_factory_options))
#define mesh_logspace(start, end, steps, m, ...)                                                                       \
    MESH_POINTS_(mesh_logspace_opt, start, end, steps, m, __VA_ARGS__, .size = sizeof(mesh_factory_options))
#define mesh_arange(start, end, step, m, ...)                                                                          \
    MESH_POINTS_(mesh_arange_opt, start, end, step, m, __VA_ARGS__, .size = sizeof(mesh_factory_options))

/* Random whole numbers from low to high - 1, each as likely as the others: mesh_randint(shape, 0, 10, mesh,
 * placements).
 *
 * Of i64 unless .dtype says i32, i8 or u8.  As all random factories, by (seed, call, global index): mesh, placements
 * and number of ranks do not change a bit.
 *
 * Shapes      s.
 * Cost        no traffic.
 * Errors      NULL: MESH_EINVAL unless low < high, by at most 2^32, and all fit the dtype and 53 bits;
 *             MESH_EUNSUPPORTED for a dtype that is not of integers; as mesh_zeros_opt().
 * Source      Lemire 2019, "Fast random integer generation in an interval"; Salmon et al. 2011 (Philox). */
MESH_API mesh_dtensor *mesh_randint_opt(mesh_shape s, int64_t low, int64_t high, mesh_device_mesh *m, mesh_placements p,
                                        const mesh_factory_options *o);
#define mesh_randint_of_(s, low, high, m, p, ...)                                                                      \
    mesh_randint_opt((s), (low), (high), (m), (p), &(mesh_factory_options){ __VA_ARGS__ })
#define mesh_randint(s, low, high, m, ...)                                                                             \
    mesh_randint_of_(s, low, high, m, __VA_ARGS__, .size = sizeof(mesh_factory_options))

/* The numbers 0 to n - 1 in a random order: mesh_randperm(n, mesh, placements); of i64 unless .dtype says i32, i8 or
 * u8.
 *
 * A rank computes the places that it holds, and no others, so that a data set of any size can be shuffled.  The order
 * is a function of n and the draw; of a large n not every order there is can come up, but every number in every place.
 *
 * Shapes      [n].
 * Cost        no traffic, no memory but the part.
 * Errors      NULL: MESH_EINVAL for a negative n, or a dtype that cannot hold n - 1; MESH_EUNSUPPORTED for one that is
 *             not of integers; as mesh_zeros_opt().
 * Source      Black & Rogaway 2002, "Ciphers with arbitrary finite domains". */
MESH_API mesh_dtensor *mesh_randperm_opt(int64_t n, mesh_device_mesh *m, mesh_placements p,
                                         const mesh_factory_options *o);
#define mesh_randperm(n, m, ...) MESH_FACTORY(mesh_randperm_opt, n, m, __VA_ARGS__)

/* Zeros of x's shape, dtype, mesh and placements: mesh_zeros_like(x), mesh_zeros_like(x, .dtype = MESH_F64).
 *
 * Placements  those of x, Partial read as Replicate: no value of x is looked at.
 * Cost        no traffic.
 * Errors      NULL: as mesh_zeros_opt(). */
MESH_API mesh_dtensor *mesh_zeros_like_opt(const mesh_dtensor *x, const mesh_factory_options *o);
/* Ones like x; see mesh_zeros_like_opt().
 *
 * Errors      NULL: as mesh_zeros_opt(). */
MESH_API mesh_dtensor *mesh_ones_like_opt(const mesh_dtensor *x, const mesh_factory_options *o);
/* To be written through mesh_to_local(), like x; see mesh_zeros_like_opt().
 *
 * Errors      NULL: as mesh_zeros_opt(). */
MESH_API mesh_dtensor *mesh_empty_like_opt(const mesh_dtensor *x, const mesh_factory_options *o);
/* One value, like x: mesh_full_like(x, 7.0); see mesh_zeros_like_opt().
 *
 * Errors      NULL: as mesh_zeros_opt(). */
MESH_API mesh_dtensor *mesh_full_like_opt(const mesh_dtensor *x, double value, const mesh_factory_options *o);
/* As mesh_rand_opt(), like x; see mesh_zeros_like_opt().
 *
 * Errors      NULL: as mesh_rand_opt(). */
MESH_API mesh_dtensor *mesh_rand_like_opt(const mesh_dtensor *x, const mesh_factory_options *o);
/* As mesh_randn_opt(), like x; see mesh_zeros_like_opt().
 *
 * Errors      NULL: as mesh_randn_opt(). */
MESH_API mesh_dtensor *mesh_randn_like_opt(const mesh_dtensor *x, const mesh_factory_options *o);
/* As mesh_randint_opt(), like x: mesh_randint_like(x, 0, 10); see mesh_zeros_like_opt().
 *
 * Errors      NULL: as mesh_randint_opt(). */
MESH_API mesh_dtensor *mesh_randint_like_opt(const mesh_dtensor *x, int64_t low, int64_t high,
                                             const mesh_factory_options *o);
#define MESH_LIKE_(f, x, ...)            f((x), &(mesh_factory_options){ __VA_ARGS__ })
#define mesh_zeros_like(...)             MESH_LIKE_(mesh_zeros_like_opt, __VA_ARGS__, .size = sizeof(mesh_factory_options))
#define mesh_ones_like(...)              MESH_LIKE_(mesh_ones_like_opt, __VA_ARGS__, .size = sizeof(mesh_factory_options))
#define mesh_empty_like(...)             MESH_LIKE_(mesh_empty_like_opt, __VA_ARGS__, .size = sizeof(mesh_factory_options))
#define mesh_rand_like(...)              MESH_LIKE_(mesh_rand_like_opt, __VA_ARGS__, .size = sizeof(mesh_factory_options))
#define mesh_randn_like(...)             MESH_LIKE_(mesh_randn_like_opt, __VA_ARGS__, .size = sizeof(mesh_factory_options))
#define mesh_randint_like_(x, l, h, ...) mesh_randint_like_opt((x), (l), (h), &(mesh_factory_options){ __VA_ARGS__ })
#define mesh_randint_like(x, low, ...)   mesh_randint_like_(x, low, __VA_ARGS__, .size = sizeof(mesh_factory_options))
#define mesh_full_like_(x, v, ...)       mesh_full_like_opt((x), (v), &(mesh_factory_options){ __VA_ARGS__ })
#define mesh_full_like(x, ...)           mesh_full_like_(x, __VA_ARGS__, .size = sizeof(mesh_factory_options))

/* Writes the part of a tensor that begins at offset and has this extent, row-major, to data; not 0: a failure. */
typedef int (*mesh_part_fn)(void *data, mesh_shape offset, mesh_shape extent, void *arg);

/* A tensor of which every rank makes its part only: fn is called once with the box that this rank holds (of a strided
 * shard: once for each run of places).
 *
 * Not called for an empty part, nor outside the mesh, nor where Partial has the value on another rank.  Replicas must
 * write the same.
 *
 * Cost        no traffic, no memory but the part.
 * Errors      NULL: MESH_EINVAL when fn is NULL; as mesh_zeros_opt(); what fn returned (MESH_EINVAL when positive),
 *             which the other ranks see as MESH_EABORTED. */
MESH_API mesh_dtensor *mesh_make_from_callback_opt(mesh_shape s, mesh_device_mesh *m, mesh_placements p,
                                                   mesh_part_fn fn, void *arg, const mesh_factory_options *o);
#define mesh_make_from_callback_(s, m, p, fn, arg, ...)                                                                \
    mesh_make_from_callback_opt((s), (m), (p), (fn), (arg), &(mesh_factory_options){ __VA_ARGS__ })
#define mesh_make_from_callback(s, m, p, fn, ...)                                                                      \
    mesh_make_from_callback_(s, m, p, fn, __VA_ARGS__, .size = sizeof(mesh_factory_options))

/* As mesh_distribute_tensor(), but the data of the rank at coordinate `source` of every mesh dimension win.
 *
 * Partial: the value is at that coordinate.
 *
 * Collective  on m.
 * Errors      NULL: MESH_EINVAL when a mesh dimension has no such coordinate; as mesh_distribute_tensor(). */
MESH_API mesh_dtensor *mesh_distribute_tensor_from(const mesh_tensor *t, mesh_device_mesh *m, mesh_placements p,
                                                   int source);

#ifdef __cplusplus
}
#endif

#endif
