/* proto/base/dtype.h - what a dtype is: size, name, kind.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_DTYPE_H
#define BASE_DTYPE_H

#include <mesh/base.h>

/* More than any address space holds: a count of elements that needs it is a mistake. */
#define MEMORY_MAX_BYTES (UINT64_C(1) << 56)

enum dtype_kind { DTYPE_BOOL, DTYPE_INT, DTYPE_FLOAT };

bool dtype_is_valid(int t);
size_t dtype_size(mesh_dtype t);      /* bytes */
const char *dtype_name(mesh_dtype t); /* "f32"; "dtype?17" is never returned: invalid gives "?" */
enum dtype_kind dtype_kind(mesh_dtype t);
bool dtype_from_name(const char *name, mesh_dtype *ret_dtype);

bool reduce_op_is_valid(int op);
const char *reduce_op_name(mesh_reduce_op op); /* "sum" */

/* Round to nearest even; NaN stays NaN. */
float float_from_f16(uint16_t h);
uint16_t float_to_f16(float f);
float float_from_bf16(uint16_t h);
uint16_t float_to_bf16(float f);

#endif
