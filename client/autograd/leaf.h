/* client/autograd/leaf.h - what a backward pass collects for one leaf.
 *
 * The contributions are summed as they come, in whatever layout (Partial ones stay so), and laid out like the leaf
 * once, with the last of them: one reduction however often a parameter was used.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_LEAF_H
#define AUTOGRAD_LEAF_H

#include "dtensor/dispatch.h"

struct leaf_sum {
    mesh_dtensor *leaf;  /* owned reference */
    mesh_dtensor *sum;   /* owned reference */
    mesh_dtensor *total; /* what leaf->grad becomes; owned reference */
    int64_t n_missing;   /* contributions still to come */
    bool is_shared;      /* sum shares memory with a tensor someone else sees */
};

/* *sum += dx, out of place; *sum may be NULL.  Keeps a reference. */
int gradient_add(mesh_dtensor **sum, mesh_dtensor *dx);

int leaf_finish(struct leaf_sum *s, const char *name); /* computes total and drops sum; touches no leaf */
void leaf_commit(struct leaf_sum *s);
void leaf_fini(struct leaf_sum *s);

#endif
