/* client/tensor/vector.h - loops that are compiled for wider vectors as well: base/vector.h, by the name kernels use.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_VECTOR_H
#define TENSOR_VECTOR_H

#include "base/vector.h" /* IWYU pragma: export */

#endif
