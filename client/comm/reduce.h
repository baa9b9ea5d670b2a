/* client/comm/reduce.h - what the executor needs of reductions beyond collective.h: how a result is finished.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_REDUCE_H
#define COMM_REDUCE_H

#include <mesh/base.h>

void reduce_divide(void *x, size_t count, mesh_dtype t, int by); /* floats; nothing for the others */
void reduce_unify_nan(void *x, size_t count, mesh_dtype t);      /* every NaN becomes the same one */

/* Such elements are never summed two by two: plans bring the parts of all ranks together, and reduce_fold() takes them. */
static inline bool reduce_is_folded(mesh_dtype t)
{
    return t == MESH_F16 || t == MESH_BF16;
}

/* to[i] = from[0][i] op from[1][i] op ... op from[n - 1][i], in this order and divided when op is avg; from: n vectors of
 * count elements, one behind the other.  16-bit floats are accumulated in f32 and rounded once.  to is no part of from. */
void reduce_fold(void *to, const void *from, size_t count, int n, mesh_dtype t, mesh_reduce_op op);

#endif
