/* client/autograd/backward.h - the walk from a tensor back to the leaves.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_BACKWARD_H
#define AUTOGRAD_BACKWARD_H

#include "autograd/tape.h"

/* Adds to each leaf that y depends on the derivative of sum(y * seed).  Runs in the innermost scope, which should be
 * the caller's for this purpose; name is what stands in error records.  retains: the graph
 * may be walked again.  0 or a status; on failure no leaf has changed. */
int backward_run(const char *name, mesh_scope *scope, mesh_dtensor *y, mesh_dtensor *seed, bool retains);

#endif
