/* client/tensor/einsum.h - the product of two tensors that an equation such as "bmk,bkn->bmn" names.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_EINSUM_H
#define TENSOR_EINSUM_H

#include "tensor/tensor.h"

/* equation: well formed, one letter per dim, none twice in an operand, every letter of the result in an input; out has the
 * right shape.  0 or a status with the error set. */
int tensor_einsum(const char *equation, const struct mesh_tensor *a, const struct mesh_tensor *b,
                  struct mesh_tensor *out);

#endif
