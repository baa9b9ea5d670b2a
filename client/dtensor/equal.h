/* client/dtensor/equal.h - one answer for all ranks about a tensor of truth values.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_EQUAL_H
#define DTENSOR_EQUAL_H

#include "dtensor/dtensor.h"

/* Whether no element of x (bool; R or S on each mesh dim) is true; false on ranks outside the mesh.  0 or a status. */
int dtensor_has_none(const mesh_dtensor *x, bool *ret_has_none);

#endif
