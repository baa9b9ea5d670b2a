/* client/parallel/distribute.c - spreads a module as functions of the caller's say.
 *
 * All parameters are asked for and checked first; then all are laid out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/parallel.h>

#include "base/error.h"
#include "base/vec.h"
#include "core/scope.h"
#include "nn/module.h"

struct layout { /* of one parameter */
    struct parameter *parameter;
    mesh_placements placements;
};
typedef VEC(struct layout) layout_list;

static int check(const char *path, const mesh_device_mesh *m, mesh_shape shape, mesh_placements *inout)
{
    int r = placements_check(path, shape, MESH_F32, m->ndim, inout);
    for (int d = 0; r == 0 && d < inout->n; d++) {
        if (inout->at[d].kind == MESH_IS_PARTIAL) {
            r = err_set(MESH_EPLACEMENT, "%s: a parameter may not be Partial, as is asked for on mesh dim %d", path, d);
        }
    }
    return r;
}

/* n 0: the parameter stays as it is. */
static int ask(mesh_module *root, size_t i, mesh_partition_fn partition, void *user, layout_list *list)
{
    mesh_module *owner = NULL;
    struct parameter *p = module_tree_parameter(root, i, &owner);
    const char *path = module_path(root, owner, p->name);
    if (path == NULL) {
        return err_status();
    }
    mesh_shape shape = p->value != NULL ? p->value->shape : p->recipe.shape;
    struct layout at = { .parameter = p, .placements = partition(path, shape, user) };
    if (!scope_enter("mesh_distribute_module")) {
        return err_status();
    }
    if (at.placements.n == 0) {
        return 0;
    }
    int r = check(path, parameter_mesh(p), shape, &at.placements);
    struct layout *last = r < 0 ? NULL : VEC_PUSH(list);
    if (last == NULL) {
        return r < 0 ? r : err_no_memory(sizeof *last, "the layouts of a module");
    }
    *last = at;
    return 0;
}

static int lay_out_all(mesh_module *root, mesh_partition_fn partition, void *user)
{
    layout_list list = { .at = NULL };
    mesh_module *owner = NULL;
    int r = 0;
    for (size_t i = 0; r == 0 && module_tree_parameter(root, i, &owner) != NULL; i++) {
        r = ask(root, i, partition, user, &list);
    }
    for (size_t i = 0; r == 0 && i < list.n; i++) {
        r = parameter_lay_out(list.at[i].parameter, &list.at[i].placements);
    }
    VEC_FINI(&list);
    return r;
}

MESH_API int mesh_distribute_module(mesh_module *root, mesh_partition_fn partition, mesh_io_fn input, mesh_io_fn output,
                                    void *user)
{
    if (!scope_enter(__func__)) {
        return err_status();
    }
    int r = 0;
    if (root == NULL) {
        r = err_set(MESH_EINVAL, "the module is NULL");
    } else if (root->border.is_set) {
        r = err_set(MESH_ESTATE, "this module was distributed before");
    } else if (partition != NULL) {
        r = lay_out_all(root, partition, user);
    }
    if (r < 0) {
        scope_fail(r);
        return r;
    }
    root->border = (struct module_border){ .input = input, .output = output, .user = user, .is_set = true };
    return 0;
}
