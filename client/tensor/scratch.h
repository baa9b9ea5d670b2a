/* client/tensor/scratch.h - how much memory a kernel takes beside its inputs and outputs: scratch.def as a function.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_SCRATCH_H
#define TENSOR_SCRATCH_H

#include "tensor/kernels.h"

/* Bytes at most, of kernel_run(); a few blocks' rounding up to 64 bytes comes on top. */
size_t kernel_scratch(kernel_fn kernel, const struct kernel_call *c);

/* Of the f32 copies that tensors of 16 bits go through (kernel_half.c). */
bool kernel_has_half(const struct kernel_call *c);
size_t kernel_half_scratch(kernel_fn kernel, const struct kernel_call *c);

/* In words, of tensors that are not of 16 bits. */
const char *kernel_scratch_words(kernel_fn kernel);

#endif
