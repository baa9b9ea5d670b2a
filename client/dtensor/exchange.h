/* client/dtensor/exchange.h - from any layout to any other, of any mesh, in one all_to_all of just the elements that change ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_EXCHANGE_H
#define DTENSOR_EXCHANGE_H

#include "dtensor/dtensor.h"

struct exchange_end { /* the shapes of both ends have equally many elements, in the same row-major order */
    mesh_device_mesh *mesh;
    mesh_shape shape;
    const mesh_placements *placements; /* pending ones are the same at both ends, and then the meshes are the same */
};

/* This rank's part at the other end; the reference is the caller's.  Collective over the ranks of both meshes.  NULL: error set.
 * Memory: the result, what is sent, and what arrives. */
struct mesh_tensor *exchange_run(const struct exchange_end *from, const struct exchange_end *to,
                                 const struct mesh_tensor *local);

/* The most elements that a rank of the mesh receives from others. */
int64_t exchange_elements(mesh_shape shape, int mesh_ndim, const int *mesh_size, const mesh_placements *from,
                          const mesh_placements *to);

#endif
