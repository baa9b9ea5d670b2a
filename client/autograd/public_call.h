/* client/autograd/public_call.h - what every public operator does around ag_apply(): scope, NULL checks, failure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_PUBLIC_CALL_H
#define AUTOGRAD_PUBLIC_CALL_H

#include "autograd/apply.h"

/* The innermost scope is open and well, and the first n inputs are there; else false, and the scope has failed. */
bool public_enter(const char *public_function, mesh_dtensor *const *in, int n);

/* Functions that are put together from operators: `mark` is scope_mark() at their beginning.  What they made beside
 * their result goes, unless the record keeps it; returns the result. */
mesh_dtensor *public_result(const struct object *mark, mesh_dtensor *y);

/* Output 0 of the operator, or NULL and the scope has failed. */
mesh_dtensor *public_apply(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr);

/* The same, once the inputs of the set `which` are of one dtype (promote.h). */
mesh_dtensor *public_promoted(enum op_id id, mesh_dtensor **in, uint32_t which, const struct op_attr *attr);

/* Whole, for operators of one input without further ado; attr NULL: none. */
mesh_dtensor *public_op1(const char *public_function, enum op_id id, mesh_dtensor *x, const struct op_attr *attr);

/* The same of two inputs, which are first brought to one dtype. */
mesh_dtensor *public_pair(const char *public_function, enum op_id id, mesh_dtensor *a, mesh_dtensor *b,
                          const struct op_attr *attr);

#endif
