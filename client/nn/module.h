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
    bool is_tied;         /* the tensor was a parameter of another name when this one was added, or since */
};

struct module_child {
    char *name; /* owned */
    mesh_module *module;
};

/* What is done to the input and the result on one mesh dim; kind 0: nothing.  Set by client/parallel. */
struct module_io {
    mesh_placement input, needed, output;
};

/* What mesh_distribute_module() hung onto a module: functions that its inputs and its result pass through. */
struct module_border {
    mesh_dtensor *(*input)(mesh_dtensor *x, void *user);
    mesh_dtensor *(*output)(mesh_dtensor *x, void *user);
    void *user;
    bool is_set; /* by a call that gave neither function, too */
};

struct mesh_module {
    const mesh_module_class *class_;       /* one of the two */
    const mesh_inputs_class *inputs_class; /* of a module with several inputs */
    void *self;
    bool is_evaluated; /* mesh_module_train(m, false) */
    struct module_border border;
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
mesh_module *module_new_of_inputs(const mesh_inputs_class *cls, void *self);
mesh_module *module_new_own(const mesh_module_class *cls); /* its self is the module */
const char *module_class_name(const mesh_module *m);

/* The functions of the public ones' names, less the scope. */
int module_add_child(mesh_module *m, const char *name, mesh_module *child);
int module_add_value(mesh_module *m, const char *name, mesh_dtensor *value);

/* Adds a parameter made from a recipe at first use. */
int module_add_recipe(mesh_module *m, const char *name, const struct recipe *recipe);

mesh_placements placements_replicated(const mesh_device_mesh *m);

/* The parameter's value, made if need be; of the module.  NULL: error set. */
mesh_dtensor *parameter_value(struct parameter *p);

/* Lays the parameter out anew: in its recipe, or by redistribution of what is there.  Its gradient comes along, its
 * hooks, and whether it is trained; all parameters tied to it become the new tensor. */
int parameter_lay_out(struct parameter *p, const mesh_placements *placements);
const mesh_placements *parameter_placements(const struct parameter *p);
mesh_device_mesh *parameter_mesh(const struct parameter *p);

struct parameter *module_own_parameter(mesh_module *m, const char *name); /* NULL: none of that name */
mesh_module *module_child(const mesh_module *m, const char *name);        /* NULL: none of that name */

/* "blocks.0.up.weight": the names from below root to the owner, then the parameter's; kept by root.  NULL: error
 * set. */
const char *module_path(mesh_module *root, const mesh_module *owner, const char *name);

/* The module, or the parameter, that a path from root leads to; NULL: MESH_ENOTFOUND set, naming the part that fits
 * nothing and what there is. */
mesh_module *module_at(mesh_module *root, const char *path);
struct parameter *module_parameter_at(mesh_module *root, const char *path);

/* The module after m in the order "itself, then child by child" within root; NULL: m was the last. */
mesh_module *module_following(mesh_module *root, mesh_module *m);

/* Marks the parameters of this tensor when there is more than one in the session. */
int tied_mark(const mesh_dtensor *value);

/* Puts another tensor in the place of one, in all parameters of the session. */
int tied_replace(mesh_dtensor *old, mesh_dtensor *value);

/* Whether the walk from root meets the parameter's tensor under another name before it comes to p. */
bool tied_is_repeated(mesh_module *root, const struct parameter *p);

/* Parameter i of the tree, own ones first, and the module that has it; NULL: past the end. */
struct parameter *module_tree_parameter(mesh_module *m, size_t i, mesh_module **ret_owner);

extern const mesh_module_class linear_class, embedding_class;

#endif
