/* client/nn/public_nn.c - the functions of mesh/nn.h about modules: building and walking.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/nn.h>

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
    return scope_fail(err_status());
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

MESH_API mesh_module *mesh_module_new_of_inputs(const mesh_inputs_class *cls, void *self)
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
    mesh_module *m = module_new_of_inputs(cls, self);
    return m != NULL ? m : fail_last();
}

MESH_API int mesh_module_train(mesh_module *m, bool on)
{
    if (!scope_enter(__func__)) {
        return err_status();
    }
    if (m == NULL) {
        return failed(err_set(MESH_EINVAL, "the module is NULL"));
    }
    for (mesh_module *at = m; at != NULL; at = module_following(m, at)) {
        at->is_evaluated = !on;
    }
    return 0;
}

MESH_API int mesh_module_add(mesh_module *m, const char *name, mesh_module *child)
{
    if (!scope_enter(__func__)) {
        return err_status();
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
        return err_status();
    }
    int r = check_parameter(m, p);
    r = r < 0 ? r : module_add_value(m, name, p);
    return r < 0 ? failed(r) : 0;
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
    const char *path = value == NULL || ret_name == NULL ? p->name : module_path(m, owner, p->name);
    if (value == NULL || path == NULL) {
        return fail_last();
    }
    if (ret_name != NULL) {
        *ret_name = path;
    }
    return value;
}

static int check_path(const mesh_module *m, const char *path)
{
    return m != NULL && path != NULL ? 0 : err_set(MESH_EINVAL, "the %s is NULL", m == NULL ? "module" : "path");
}

MESH_API mesh_module *mesh_module_at(mesh_module *m, const char *path)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    mesh_module *found = check_path(m, path) < 0 ? NULL : module_at(m, path);
    return found != NULL ? found : fail_last();
}

MESH_API mesh_dtensor *mesh_module_parameter_at(mesh_module *m, const char *path)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    struct parameter *p = check_path(m, path) < 0 ? NULL : module_parameter_at(m, path);
    mesh_dtensor *value = p == NULL ? NULL : parameter_value(p);
    return value != NULL ? value : fail_last();
}
