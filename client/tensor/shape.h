/* client/tensor/shape.h - arithmetic of shapes; nothing here allocates.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_SHAPE_H
#define TENSOR_SHAPE_H

#include <mesh/base.h>

#define SHAPE_TEXT_BYTES 192

int64_t shape_numel(mesh_shape s);               /* of a checked shape */
int shape_check(mesh_shape s, const char *what); /* MESH_ESHAPE: ndim, a negative extent, more than 2^62 elements */
bool shape_equal(mesh_shape a, mesh_shape b);
const char *shape_text(mesh_shape s, char *buf, size_t cap);              /* "[64,784]", "[]"; returns buf */
int shape_dim(mesh_shape s, int64_t dim, const char *what, int *ret_dim); /* -ndim..ndim-1 to 0..ndim-1; MESH_EINVAL */
int64_t shape_outer(mesh_shape s, int dim);                               /* product of the extents before dim */
int64_t shape_inner(mesh_shape s, int dim);                               /* product of the extents after dim */
int shape_broadcast(mesh_shape a, mesh_shape b, const char *what, mesh_shape *ret_shape); /* NumPy's rule */

#endif
