/* client/dtensor/along.h - scans and selections along a dim that is sharded, without gathering it.
 *
 * Both take a tensor without pending reductions that is Shard(dim) on some mesh dim, and results are of the innermost scope; no
 * tape.  0 or a status with the error set.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_ALONG_H
#define DTENSOR_ALONG_H

#include "dtensor/dtensor.h"

/* Over how many parts the dim is spread: the product of the mesh dims that shard it. */
int along_parts(const mesh_dtensor *x, int dim);

/* The running sum along attr->dim[0] (mode 1: from the end), laid out like x.  Each rank scans its part; what it begins with
 * comes from one all_reduce of a number per line and part. */
int along_cumsum(mesh_dtensor *x, const struct op_attr *attr, mesh_dtensor **ret_sum);

/* The attr->index[0] largest along attr->dim[0] and their indices, whole along that dim.  Each rank sends its own largest. */
int along_topk(mesh_dtensor *x, const struct op_attr *attr, mesh_dtensor *ret_out[2]);

#endif
