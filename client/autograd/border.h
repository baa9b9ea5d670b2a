/* client/autograd/border.h - a change of layout that gradients pass through.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_BORDER_H
#define AUTOGRAD_BORDER_H

#include "autograd/tape.h"

/* dtensor_redistribute() with a record: p normalised; the result belongs to the innermost scope; NULL: error set. */
mesh_dtensor *ag_redistribute(mesh_dtensor *x, const mesh_placements *p);

/* From here back to where x was computed, its gradient, however many sum up to it, is whole on this mesh dim: the one
 * reduction that readers of a whole x by parts of a weight owe.  Nothing where x was brought from shards, to which a
 * pending gradient is scattered.  x: whole on that mesh dim. */
void ag_complete_gradient(mesh_dtensor *x, int mesh_dim);

/* The gradient of whatever changes only the layout: dy brought back, Partial read as Replicate where dy is whole. */
extern const struct gradient g_redistribute;

#endif
