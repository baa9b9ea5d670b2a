/* client/comm/reduce.h - what the executor needs of reductions beyond collective.h: how a result is finished.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_REDUCE_H
#define COMM_REDUCE_H

#include <mesh/base.h>

void reduce_divide(void *x, size_t count, mesh_dtype t, int by); /* floats; nothing for the others */
void reduce_unify_nan(void *x, size_t count, mesh_dtype t);      /* every NaN becomes the same one */

#endif
