/* client/nn/layer_norm.c - mesh_layer_norm() over the last dim as a module.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "core/scope.h"
#include "nn/module.h"

static mesh_dtensor *forward(void *self, mesh_dtensor *x)
{
    mesh_dtensor *w = parameter_value(module_own_parameter(self, "weight"));
    mesh_dtensor *b = w == NULL ? NULL : parameter_value(module_own_parameter(self, "bias"));
    return b == NULL ? scope_fail(err_status()) : mesh_layer_norm(x, 1, w, b, 1e-5);
}

static const mesh_module_class layer_norm_class = { .name = "layer_norm", .forward = forward };

MESH_API mesh_module *mesh_nn_layer_norm(mesh_device_mesh *m, int64_t dim)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (m == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the mesh is NULL"));
    }
    if (dim < 1) {
        return scope_fail(err_set(MESH_EINVAL, "a layer norm over %lld numbers; it must be 1 or more", (long long)dim));
    }
    struct recipe recipe = {
        .mesh = m,
        .shape = MESH_SHAPE(dim),
        .dtype = MESH_F32,
        .placements = placements_replicated(m),
        .fill = { .kind = FILL_VALUE, .a = 1 },
    };
    mesh_module *module = module_new_own(&layer_norm_class);
    int r = module == NULL ? -1 : module_add_recipe(module, "weight", &recipe);
    recipe.fill.a = 0;
    if (r < 0 || module_add_recipe(module, "bias", &recipe) < 0) {
        mesh_module_free(module);
        return scope_fail(err_status());
    }
    return module;
}
