/* client/dtensor/remesh.h - from one mesh to another of the same job.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_REMESH_H
#define DTENSOR_REMESH_H

#include "dtensor/dtensor.h"

/* p normalised for m, which may have other ranks: those of both take part.  NULL: error set. */
mesh_dtensor *dtensor_remesh(mesh_dtensor *x, mesh_device_mesh *m, const mesh_placements *p);

#endif
