/* client/nn/public_nn.c - the functions of mesh/nn.h about modules: building, walking, running.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/nn.h>

#include <string.h>

#include "autograd/border.h"
#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "nn/module.h"

static int failed(int r)
{
    scope_fail(r);
    return r;
}

static void *fail_last(void)
{
    return scope_fail((int)mesh_last_error()->status);
}

MESH_API mesh_module *mesh_module_new(const mesh_module_class *cls, void *self)
{
    bool is_well = scope_enter(__func__);
    if (is_well && (cls == NULL || cls->name == NULL || cls->forward == NULL)) {
        scope_fail(err_set(MESH_EINVAL, "a module class needs a name and a forward function"));
        is_well = false;
    }
    if (!is_well) {
        if (cls != NULL && cls->free != NULL) {
            cls->free(self);
        }
        return NULL;
    }
    mesh_module *m = module_new(cls, self);
    return m != NULL ? m : fail_last();
}

MESH_API int mesh_module_add(mesh_module *m, const char *name, mesh_module *child)
{
    if (!scope_enter(__func__)) {
        return (int)mesh_last_error()->status;
    }
    int r = m == NULL ? err_set(MESH_EINVAL, "the module is NULL") : module_add_child(m, name, child);
    return r < 0 ? failed(r) : 0;
}

static int check_parameter(const mesh_module *m, const mesh_dtensor *p)
{
    if (m == NULL || p == NULL) {
        return err_set(MESH_EINVAL, "the %s is NULL", m == NULL ? "module" : "parameter");
    }
    if (p->node != NULL) {
        return err_set(MESH_ESTATE, "an operator made this tensor; a parameter must be a leaf: use mesh_detach()");
    }
    if (dtype_kind(p->dtype) != DTYPE_FLOAT) {
        return err_set(MESH_EINVAL, "a parameter of %s cannot be trained; it must be of a floating-point dtype",
                       dtype_name(p->dtype));
    }
    for (int d = 0; d < p->placements.n; d++) {
        if (p->placements.at[d].kind == MESH_IS_PARTIAL) {
            return err_set(MESH_EINVAL, "a parameter may not be Partial, as it is on mesh dim %d; redistribute it", d);
        }
    }
    return 0;
}

MESH_API int mesh_module_add_parameter(mesh_module *m, const char *name, mesh_dtensor *p)
{
    if (!scope_enter(__func__)) {
        return (int)mesh_last_error()->status;
    }
    int r = check_parameter(m, p);
    r = r < 0 ? r : module_add_value(m, name, p);
    return r < 0 ? failed(r) : 0;
}

static const char *name_in_parent(const mesh_module *m)
{
    const struct module_child *c = m->parent->children.at;
    while (c->module != m) {
        c++;
    }
    return c->name;
}

/* "blocks.0.up.weight": the names from below root to the owner, then the parameter's; kept by root.  NULL: error
 * set. */
static const char *path_of(mesh_module *root, const mesh_module *owner, const char *name)
{
    size_t n = strlen(name) + 1;
    for (const mesh_module *m = owner; m != root; m = m->parent) {
        n += strlen(name_in_parent(m)) + 1;
    }
    char *path = mem_alloc(n);
    if (path == NULL) {
        err_no_memory(n, "the name of a parameter");
        return NULL;
    }
    char *at = path + n - strlen(name) - 1; /* from the end, as the way leads upwards */
    strcpy(at, name);
    for (const mesh_module *m = owner; m != root; m = m->parent) {
        size_t length = strlen(name_in_parent(m));
        *--at = '.';
        at -= length;
        memcpy(at, name_in_parent(m), length);
    }
    mem_free(root->path);
    root->path = path;
    return path;
}

MESH_API mesh_dtensor *mesh_module_parameter(mesh_module *m, size_t i, const char **ret_name)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (m == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the module is NULL"));
    }
    mesh_module *owner = NULL;
    struct parameter *p = module_tree_parameter(m, i, &owner);
    if (p == NULL) {
        return NULL;
    }
    mesh_dtensor *value = parameter_value(p);
    const char *path = value == NULL || ret_name == NULL ? p->name : path_of(m, owner, p->name);
    if (value == NULL || path == NULL) {
        return fail_last();
    }
    if (ret_name != NULL) {
        *ret_name = path;
    }
    return value;
}

/* x with the placement on some mesh dims as wanted[d] says; kind 0: as it is.  NULL: error set. */
static mesh_dtensor *bring_to(mesh_dtensor *x, const mesh_placement *wanted)
{
    mesh_placements p = x->placements;
    for (int d = 0; d < p.n; d++) {
        p.at[d] = wanted[d].kind != 0 ? wanted[d] : p.at[d];
    }
    int r = placements_check("module", x->shape, x->dtype, x->mesh->ndim, &p);
    if (r < 0 || mesh_placements_equal(p, x->placements)) {
        return r < 0 ? NULL : x;
    }
    return ag_redistribute(x, &p);
}

static mesh_dtensor *bring_input(const mesh_module *m, mesh_dtensor *x)
{
    mesh_placement first[MESH_MAX_MESH_NDIM], then[MESH_MAX_MESH_NDIM];
    for (int d = 0; d < MESH_MAX_MESH_NDIM; d++) {
        first[d] = m->io[d].input;
        then[d] = m->io[d].needed;
    }
    x = bring_to(x, first);
    return x == NULL ? NULL : bring_to(x, then);
}

static mesh_dtensor *bring_output(const mesh_module *m, mesh_dtensor *y)
{
    mesh_placement wanted[MESH_MAX_MESH_NDIM];
    for (int d = 0; d < MESH_MAX_MESH_NDIM; d++) {
        wanted[d] = m->io[d].output;
    }
    return bring_to(y, wanted);
}

MESH_API mesh_dtensor *mesh_forward(mesh_module *m, mesh_dtensor *x)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (m == NULL || x == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the %s is NULL", m == NULL ? "module" : "input"));
    }
    x = bring_input(m, x);
    if (x == NULL) {
        return fail_last();
    }
    mesh_dtensor *y = m->class_->forward(m->self, x);
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (y == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the forward function of \"%s\" returned NULL", m->class_->name));
    }
    y = bring_output(m, y);
    return y != NULL ? y : fail_last();
}
