/* client/autograd/tape.h - the record of operators: one node for each that was applied to a tensor with a gradient.
 *
 *      x (leaf) <---edge--- node 1: linear <---edge--- node 2: gelu <--- y->node
 *
 * A node points to where the gradients of its inputs go (an older node, or a leaf) and holds what its gradient function
 * needs of the values, as handles without a graph of their own: so references only lead from newer to older, never in
 * circles.  Chains may be as long as memory allows: nothing here recurses.
 *
 * Only output 0 of an operator has a gradient (a second output is a count).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_TAPE_H
#define AUTOGRAD_TAPE_H

#include "dtensor/dispatch.h"

struct grad_node;

/* One run of a gradient function: dx[i] for each i wanted, made in the innermost scope; NULL means it failed, error
 * set. */
struct grad_call {
    const struct grad_node *node;
    mesh_dtensor *dy;
    mesh_dtensor *dx[OP_MAX_INPUTS];
    bool wants[OP_MAX_INPUTS];
};
typedef void (*gradient_fn)(struct grad_call *c);

enum { NEEDS_IN0 = 1, NEEDS_IN1 = 2, NEEDS_IN2 = 4, NEEDS_OUT = 8, NEEDS_IN3 = 16 };

struct gradient {
    gradient_fn run;              /* NULL: the operator has none */
    uint8_t needs[OP_MAX_INPUTS]; /* which values dx[i] is computed from: NEEDS_... */
};

struct grad_edge {          /* where the gradient of an input goes; both NULL: nowhere */
    struct grad_node *node; /* owned reference */
    mesh_dtensor *leaf;     /* owned reference */
};

struct grad_node {
    atomic_int references;
    uint64_t number; /* of creation: inputs have lower ones */
    const char *name;
    const struct gradient *gradient;
    struct op_attr attr;
    struct grad_edge edge[OP_MAX_INPUTS];
    mesh_dtensor *in[OP_MAX_INPUTS]; /* saved values; NULL: absent or not needed */
    mesh_dtensor *out;
    mesh_shape in_shape[OP_MAX_INPUTS];
    mesh_placements in_placements[OP_MAX_INPUTS];
    bool is_used_up;
    uint64_t counted_by;    /* the last backward pass that came by (backward.c) */
    uint8_t completes;      /* bit d: a gradient that is pending on mesh dim d is reduced before it goes on */
    void *hooks;            /* hooks.h; owned */
    mesh_dtensor *grad;     /* of the output, while a backward pass runs; owned reference */
    struct grad_node *next; /* while it is being freed */
};

struct tape_entry {
    const char *name;
    const struct gradient *gradient;
    const struct op_attr *attr; /* NULL: none */
    int n_in;
    mesh_dtensor *const *in; /* NULL: absent */
};

bool tape_is_on(void);  /* of this thread */
bool tape_set(bool on); /* returns the old value */

/* Whether what is computed from these must be recorded. */
bool tape_wants(mesh_dtensor *const *in, int n_in);

/* Hangs a node onto `out`, which then requires a gradient.  0 or MESH_ENOMEM. */
int tape_record(const struct tape_entry *e, mesh_dtensor *out);

/* The saved values and edges go; the node stays as a mark that the graph was used up. */
void tape_use_up(struct grad_node *node);

struct grad_node *tape_ref(struct grad_node *node);
void tape_unref(struct grad_node *node); /* NULL is fine */

#endif
