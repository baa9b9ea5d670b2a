/* tests/truth/programs_train.h - random training: a network of random blocks, and what is seen of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_PROGRAMS_TRAIN_H
#define TRUTH_PROGRAMS_TRAIN_H

#include "truth/programs.h"

#define MAX_BLOCKS 12

struct block { /* what a module of ours has */
    struct net *net;
    mesh_module *module;
    mesh_device_mesh *to;
};

struct net {
    struct program *p;
    mesh_device_mesh *mesh; /* of the block to be made next */
    int64_t width;          /* of what it takes */
    int64_t first_width;    /* of what the network takes */
    mesh_module *root;
    mesh_module *child[MAX_BLOCKS];
    char name[MAX_BLOCKS][16];
    bool is_library[MAX_BLOCKS]; /* a linear layer or an embedding */
    int n_children;
    mesh_dtensor *square; /* a parameter [width, width] of the mesh, to be tied to; NULL: none */
    int64_t n_classes;    /* of the embedding at the front; 0: none */
    bool is_rough;        /* something has 16 bits */
    mesh_op *dot, *scale;
};

/* --- programs_blocks.c --- */

/* The root, with blocks drawn at random; NULL: an error that all ranks see. */
mesh_module *net_build(struct net *net);

/* --- programs_see.c: what is seen is kept on one rank, and compared elsewhere --- */

void see(struct program *p, const char *what, mesh_dtensor *x, double scale, double tolerance);
void see_number(struct program *p, const char *what, double x, double tolerance);
/* Ends a scope in which a call should have failed: all ranks must say the same, and one rank the same status. */
void see_failure(struct program *p, const char *what, mesh_scope *scope);
/* Whether all was as it should be so far. */
bool is_fine(const struct program *p);

#endif
