/* client/autograd/reduce_attr.h - what every public reduction makes of its options.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_REDUCE_ATTR_H
#define AUTOGRAD_REDUCE_ATTR_H

#include <mesh/ops.h>

#include "tensor/kernels.h"

/* The dims as a set of bits (all of them when none is named), keepdim, and how many elements each result is made of. */
int reduce_attr(const char *what, mesh_shape shape, const mesh_reduce_options *o, struct op_attr *ret_attr,
                double *ret_count);

#endif
