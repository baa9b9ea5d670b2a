/* client/autograd/custom.h - an operator that a program registered: its row, made from what the program said.
 *
 * The row's user pointer leads back to the operator, in the shape function and in the kernel; the node's gradient,
 * which is part of the operator, in a backward pass.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_CUSTOM_H
#define AUTOGRAD_CUSTOM_H

#include <mesh/custom_op.h>

#include "autograd/tape.h"

struct mesh_op {
    mesh_op_class class_; /* name and rule are copies */
    char *name, *rule;    /* owned */
    struct op_row row;
    struct gradient gradient;
    uint64_t id;
    struct mesh_op *next; /* all of the session */
};

/* MESH_EINVAL unless the text is an index rule for that many inputs. */
int custom_check_rule(const char *name, const char *rule, int n_in);
/* MESH_EINVAL when the result of a well formed rule has a letter that no input has: a shape function must give its
 * extent. */
int custom_check_letters(const char *name, const char *rule, int n_in);

/* The session's operator with this kernel and rule, whose functions get the rule as `user`.  NULL: error set. */
struct mesh_op *custom_find_or_make(const mesh_op_class *cls);

/* As ag_apply(), of such an operator. */
int custom_apply(struct mesh_op *op, mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_out);

int custom_shape(struct op_shapes *inout);      /* shape_fn */
int custom_kernel(const struct kernel_call *c); /* kernel_fn */
void custom_gradient(struct grad_call *c);      /* gradient_fn */
mesh_op_args custom_args(const struct op_attr *attr);

#endif
