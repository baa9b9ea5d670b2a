/* client/dtensor/factory.h - what all tensors made from nothing go through.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_FACTORY_H
#define DTENSOR_FACTORY_H

#include "dtensor/dtensor.h"

/* Checks from global facts; normalises the placements. */
int factory_check(mesh_shape s, mesh_dtype t, const mesh_device_mesh *m, mesh_placements *inout_p);

/* Whole numbers from low up to high can be drawn for a tensor of dtype t. */
int factory_check_whole(const char *what, mesh_dtype t, int64_t low, int64_t high);

/* A public factory after scope_enter(): o may be NULL.  NULL: the scope has failed. */
mesh_dtensor *factory_make(mesh_shape s, mesh_device_mesh *m, mesh_placements p, const mesh_factory_options *o,
                           struct fill f);

/* The pending reduction that makes this rank hold what changes nothing; NULL: it holds the value. */
const mesh_placement *factory_pending(const mesh_device_mesh *m, const mesh_placements *p);

#endif
