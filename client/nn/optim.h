/* client/nn/optim.h - what all optimizers share: which parameters, which state, when to clear gradients.
 *
 * A kind of optimizer is a function that updates one parameter's local part in place.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef NN_OPTIM_H
#define NN_OPTIM_H

#include "nn/module.h"

struct optimizer_slot { /* of one parameter; in the order of the module's tree */
    char *name;         /* of its own within its module, to notice that the tree changed; owned */
    uint64_t owner;     /* id of that module */
    mesh_placements placements;
    struct mesh_tensor
        *moment[2]; /* like the local part; owned references; NULL: not needed, or before the first step */
    uint64_t n_steps;
};

/* The parameter's local part, the gradient's, the state. */
typedef int (*update_fn)(const mesh_optimizer *o, struct mesh_tensor *p, const struct mesh_tensor *g,
                         struct optimizer_slot *slot);

struct mesh_optimizer {
    mesh_module *module;
    uint64_t module_id;
    update_fn update;
    double lr;
    union {
        mesh_sgd_options sgd;
        struct adamw_step adamw; /* but lr and the step's number */
    } as;
    VEC(struct optimizer_slot) slots;
    struct nn_session *session;
    mesh_optimizer *next, *prev;
};

/* Makes the moment, of zeros, if it is not there yet. */
int optimizer_need_moment(struct optimizer_slot *slot, int which, const struct mesh_tensor *p);

mesh_optimizer *optimizer_new(mesh_module *m, update_fn update, double lr); /* NULL: error set */

#endif
