/* client/autograd/hooks.h - functions of the caller's that a gradient passes through when it is complete.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_HOOKS_H
#define AUTOGRAD_HOOKS_H

#include <mesh/autograd.h>

/* *inout_hooks: NULL or one block of memory, which is the owner's to free.  0 or MESH_ENOMEM. */
int hooks_add(void **inout_hooks, mesh_grad_fn fn, void *user);

/* Another block with the same functions; *ret_hooks NULL where there are none.  0 or MESH_ENOMEM. */
int hooks_copy(const void *hooks, void **ret_hooks);

/* Passes the gradient through them in the order they were added, without a record; what comes out belongs to the
 * innermost scope or to the caller of the hook.  name: what stands in error records.  NULL: error set. */
mesh_dtensor *hooks_run(const void *hooks, const char *name, mesh_dtensor *grad);

#endif
