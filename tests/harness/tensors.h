/* tests/harness/tensors.h - small tensors for tests, read and written element by element, whatever their dtype.
 *
 * Slow and obvious on purpose: a test compares a kernel with a loop over index_of() that anybody can check by eye.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HARNESS_TENSORS_H
#define HARNESS_TENSORS_H

#include "tensor/kernels.h"
#include "tensor/shape.h"

/* Values repeat for a seed; floats are quarters between -2 and 2 (sums are exact), integers -3 to 3 (u8: 0 to 6). */
struct mesh_tensor *test_tensor(mesh_shape shape, mesh_dtype dtype, uint64_t seed);
/* The same with floats of full precision in (-2, 2). */
struct mesh_tensor *test_tensor_rough(mesh_shape shape, mesh_dtype dtype, uint64_t seed);
struct mesh_tensor *test_tensor_of(mesh_shape shape, mesh_dtype dtype, const double *values);
struct mesh_tensor *test_tensor_empty(mesh_shape shape, mesh_dtype dtype); /* every byte 0xa5 */

double get(const struct mesh_tensor *t, int64_t i);
void set(struct mesh_tensor *t, int64_t i, double v);

/* Row-major index i of shape s as one index per dimension, and back; a dimension of extent 1 takes any index. */
void index_of(mesh_shape s, int64_t i, int64_t ret_index[MESH_MAX_NDIM]);
int64_t index_at(mesh_shape s, const int64_t *index);
/* The element of s that broadcasts to index i of `to`. */
int64_t index_broadcast(mesh_shape s, mesh_shape to, int64_t i);

/* Fails the test with the place and both numbers unless |got - want| <= tolerance (1 + |want|); NaN equals NaN. */
void assert_element(const struct mesh_tensor *t, int64_t i, double want, double tolerance);
void assert_values(const struct mesh_tensor *t, double tolerance, const double *want);

/* Calls the kernel and fails the test if it fails. */
void run_kernel(kernel_fn kernel, const struct kernel_call *c);

void tensors_unref(int n, ...);

#endif
