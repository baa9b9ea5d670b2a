/* client/nn/module.h - the inside of a module: a tree of named parameters, each a recipe until it is first used.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef NN_MODULE_H
#define NN_MODULE_H

#include <mesh/nn.h>

#include "base/vec.h"
#include "dtensor/dtensor.h"

struct recipe { /* what the whole parameter is; a rank makes its own part of it only */
    mesh_device_mesh *mesh;
    mesh_shape shape;
    mesh_dtype dtype;
    mesh_placements placements;
    struct fill fill;
};

struct parameter {
    char *name;           /* owned */
    struct recipe recipe; /* of no meaning once value is there */
    mesh_dtensor *value;  /* owned reference; NULL: not used yet */
};

struct module_child {
    char *name; /* owned */
    mesh_module *module;
};

/* What is done to the input and the result on one mesh dim; kind 0: nothing.  Set by client/parallel. */
struct module_io {
    mesh_placement input, needed, output;
};

struct mesh_module {
    const mesh_module_class *class_;
    void *self;
    mesh_module *parent;
    VEC(struct parameter) parameters;
    VEC(struct module_child) children;
    struct module_io io[MESH_MAX_MESH_NDIM]; /* by mesh dim */
    char *path;                              /* the last name that mesh_module_parameter() gave out */
    struct nn_session *session;
    mesh_module *next, *prev; /* all modules of the session */
    uint64_t id;              /* unique in the process: an optimizer finds out whether its module is gone */
};

/* self is taken also on failure; NULL: error set. */
mesh_module *module_new(const mesh_module_class *cls, void *self);

/* The functions of the public ones' names, less the scope. */
int module_add_child(mesh_module *m, const char *name, mesh_module *child);
int module_add_value(mesh_module *m, const char *name, mesh_dtensor *value);

/* Adds a parameter made from a recipe at first use. */
int module_add_recipe(mesh_module *m, const char *name, const struct recipe *recipe);

/* The parameter's value, made if need be; of the module.  NULL: error set. */
mesh_dtensor *parameter_value(struct parameter *p);

/* Lays the parameter out anew: in its recipe, or by redistribution of what is there. */
int parameter_lay_out(struct parameter *p, const mesh_placements *placements);
const mesh_placements *parameter_placements(const struct parameter *p);
mesh_device_mesh *parameter_mesh(const struct parameter *p);

struct parameter *module_own_parameter(mesh_module *m, const char *name); /* NULL: none of that name */

/* The module after m in the order "itself, then child by child" within root; NULL: m was the last. */
mesh_module *module_following(mesh_module *root, mesh_module *m);

/* Parameter i of the tree, own ones first, and the module that has it; NULL: past the end. */
struct parameter *module_tree_parameter(mesh_module *m, size_t i, mesh_module **ret_owner);

extern const mesh_module_class linear_class;

#endif
