/* client/dtensor/remesh.h - from one mesh to another over the same ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_REMESH_H
#define DTENSOR_REMESH_H

#include "dtensor/dtensor.h"

/* p normalised for m.  MESH_EUNSUPPORTED unless both meshes have the same ranks, in whatever order and shape.  NULL: error set. */
mesh_dtensor *dtensor_remesh(mesh_dtensor *x, mesh_device_mesh *m, const mesh_placements *p);

#endif
