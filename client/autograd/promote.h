/* client/autograd/promote.h - one dtype for inputs of several: cast, with a record, before the operator sees them.
 *
 *     bool < integers < floats; of one kind the wider; u8 with i8: i32, f16 with bf16: f32, the narrowest that hold both
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_PROMOTE_H
#define AUTOGRAD_PROMOTE_H

#include "autograd/tape.h"

mesh_dtype dtype_promoted(mesh_dtype a, mesh_dtype b);

/* x itself when it has that dtype; else a new tensor of the innermost scope; NULL: error set. */
mesh_dtensor *cast_to(mesh_dtensor *x, mesh_dtype t);

/* Those inputs of the set `which` that are there become of one dtype.  What else the operator refuses it refuses before: a cast
 * may have to reduce pending integers.  attr NULL: none.  0 or a status with the error set. */
int promote(const struct op_row *op, mesh_dtensor **in, uint32_t which, const struct op_attr *attr);

#endif
