/* mesh/custom_op.h - operators of one's own: a kernel on local parts, a rule that says which placements it is right
 * for, a gradient.
 *
 *     static int kernel(const mesh_op_call *call);                out[i] = sum over k of a[i, k] b[i, k]
 *     static int gradient(mesh_op_gradient *g);                   g->dx[0] = ..., written with operators
 *
 *     mesh_op *row_dot = mesh_register_op(&(mesh_op_class){
 *         .name = "row_dot", .n_in = 2, .rule = "ik,ik->i", .kernel = kernel, .gradient = gradient });
 *     mesh_dtensor *y = mesh_apply_op(row_dot, (mesh_dtensor *[]){ a, b }, 2, NULL);
 *
 * The rule has one letter per tensor dim, operand by operand:
 *
 *     small letter in the result       the dim may be sharded, wherever the letter stands; so is the result
 *     small letter not in the result   the dim may be sharded; the results of the parts add up to the whole (Partial(sum))
 *     CAPITAL                          the dim must be whole on every rank
 *     *                                leading dims, which broadcast
 *
 * The library redistributes the inputs as the rule allows, at the least cost, and calls the kernel with what this rank
 * then holds.  All functions run on the thread that applies the operator or calls mesh_backward().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_CUSTOM_OP_H
#define MESH_CUSTOM_OP_H

#include "autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MESH_OP_MAX_INPUTS 4

typedef struct mesh_op mesh_op;

typedef struct mesh_op_args { /* numbers that are no tensors, the same on all ranks */
    double value[2];
    int64_t index[2];
} mesh_op_args;

typedef struct mesh_op_facts { /* of the whole tensors */
    int n_in;
    mesh_shape shape[MESH_OP_MAX_INPUTS];
    mesh_dtype dtype[MESH_OP_MAX_INPUTS];
    mesh_op_args args;
    void *user;
} mesh_op_facts;

typedef struct mesh_op_call {            /* one rank's parts; any of them may be empty */
    mesh_tensor *in[MESH_OP_MAX_INPUTS]; /* not to be changed */
    mesh_tensor *out;                    /* to be filled */
    int64_t offset[MESH_MAX_NDIM];       /* where the part of in[0] begins in the whole */
    mesh_op_args args;
    void *user;
} mesh_op_call;

typedef struct mesh_op_gradient {
    mesh_dtensor *dy;                     /* of the result */
    mesh_dtensor *in[MESH_OP_MAX_INPUTS]; /* the inputs and the result, without a graph */
    mesh_dtensor *out;
    bool wants[MESH_OP_MAX_INPUTS];
    mesh_dtensor *dx[MESH_OP_MAX_INPUTS]; /* to be set where wanted; may have the broadcast shape */
    mesh_op_args args;
    void *user;
} mesh_op_gradient;

/* Which pending inputs (Partial sum or avg) the operator takes as they are: f(a) + f(b) = f(a + b). */
typedef enum mesh_op_linear {
    MESH_OP_NOT_LINEAR,      /* none: they are reduced first */
    MESH_OP_LINEAR_TOGETHER, /* all inputs pending together, as in a + b */
    MESH_OP_LINEAR_EACH,     /* any one of them, the others whole, as in a * b */
    MESH_OP_LINEAR_FIRST     /* the first, the others whole, as in a / b */
} mesh_op_linear;

typedef struct mesh_op_class {
    const char *name; /* for errors */
    int n_in;         /* 1 to MESH_OP_MAX_INPUTS */
    const char *rule; /* "ik,ik->i" */
    mesh_op_linear linear;
    /* The result's shape and dtype, which come in as the rule and the first input say; -1 is an extent the rule does
     * not know.  0 or a negative status.  NULL: as they come in. */
    int (*shape)(const mesh_op_facts *facts, mesh_shape *inout_shape, mesh_dtype *inout_dtype);
    int (*kernel)(const mesh_op_call *call);           /* 0 or a negative status */
    int (*gradient)(mesh_op_gradient *inout_gradient); /* 0 or a negative status; NULL: has none */
    void *user;                                        /* for the three */
    /* Bit i: input i, with the others of the set, is brought to one dtype as by all operators (ops.h) before any of the
     * functions sees it.  0: none is, and inputs of several dtypes are refused unless there is a shape function, which
     * may take them. */
    unsigned promotes;
} mesh_op_class;

/* Makes an operator of a class.
 *
 * f16 and bf16 tensors reach the kernel as f32 copies, and its result is rounded once.
 *
 * Ownership   the session's; name and rule are copied, user is borrowed.
 * Errors      MESH_EINVAL for a class without name, rule or kernel, or a rule that does not fit n_in, or that has a
 *             letter in the result only and no shape function, or for `promotes` of inputs that there are not;
 *             MESH_ENOMEM. */
MESH_API mesh_op *mesh_register_op(const mesh_op_class *cls);

/* Applies an operator to its inputs, recording it where a gradient is required.  args NULL: zeros.
 *
 * Shapes      each letter of the rule has one extent.
 * Placements  as the rule says; others are redistributed first.
 * Collective  where inputs must be redistributed.
 * Errors      MESH_ESHAPE when the shapes do not fit the rule, or the shape function's result does not; what the shape
 *             function returned; MESH_EUNSUPPORTED when a gradient is required and there is none; MESH_EINVAL for NULL,
 *             another number of inputs, inputs on several meshes, or of several dtypes for a class that says nothing of
 *             them.  A kernel that fails on some ranks ends the call there with its status, and the others with
 *             MESH_EABORTED. */
MESH_API mesh_dtensor *mesh_apply_op(mesh_op *op, mesh_dtensor *const *inputs, int n_inputs, const mesh_op_args *args);

#ifdef __cplusplus
}
#endif

#endif
