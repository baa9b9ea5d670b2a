/* client/dtensor/along_sort.h - a sort along a sharded dim that leaves it sharded, and its adjoint.
 *
 * x has no pending reductions and is Shard(dim) on some mesh dim; results are of the innermost scope; no tape.  0 or a status with
 * the error set.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_ALONG_SORT_H
#define DTENSOR_ALONG_SORT_H

#include "dtensor/dtensor.h"

/* Values and indices of a sort along attr->dim[0] (mode 1: descending), laid out like x: the same bits and order of equal elements
 * as in one process.  Each element and its index cross at most once; where to cut is found by one small all_reduce for each four
 * bits of an element.  Memory: about four times the part and its indices. */
int along_sort(mesh_dtensor *x, const struct op_attr *attr, mesh_dtensor *ret_out[2]);

/* dy, laid out like the indices of such a sort, at those indices of a result laid out the same way. */
mesh_dtensor *along_put(mesh_dtensor *dy, mesh_dtensor *indices, int dim);

#endif
