/* client/autograd/apply.h - op_apply() with a record.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_APPLY_H
#define AUTOGRAD_APPLY_H

#include "autograd/tape.h"

/* As op_apply(), and records it when this thread records and an input requires a gradient.  An operator without a
 * gradient is then MESH_EUNSUPPORTED; a result that is no floating number is never recorded. */
int ag_apply(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_out);

/* As op_apply(), with arguments made clean: their bytes, padding too, are a function of their values, so that what was
 * decided for a signature is found again.  attr NULL: none.  No record. */
int apply_plain(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_out);

#endif
