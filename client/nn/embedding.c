/* client/nn/embedding.c - a table whose rows are looked up by number.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "core/scope.h"
#include "nn/module.h"

static mesh_dtensor *forward(void *self, mesh_dtensor *ids)
{
    mesh_dtensor *w = parameter_value(module_own_parameter(self, "weight"));
    return w == NULL ? scope_fail(err_status()) : mesh_embedding(w, ids);
}

const mesh_module_class embedding_class = { .name = "embedding", .forward = forward };

MESH_API mesh_module *mesh_nn_embedding(mesh_device_mesh *m, int64_t n, int64_t dim)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (m == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the mesh is NULL"));
    }
    if (n < 1 || dim < 1) {
        return scope_fail(err_set(MESH_EINVAL, "an embedding of %lld rows of %lld numbers; both must be 1 or more",
                                  (long long)n, (long long)dim));
    }
    struct recipe recipe = {
        .mesh = m,
        .shape = MESH_SHAPE(n, dim),
        .dtype = MESH_F32,
        .placements = placements_replicated(m),
        .fill = { .kind = FILL_NORMAL, .a = 0, .b = 1, .key = dtensor_next_key(m->session, 0) },
    };
    mesh_module *module = module_new_own(&embedding_class);
    if (module == NULL || module_add_recipe(module, "weight", &recipe) < 0) {
        mesh_module_free(module);
        return scope_fail(err_status());
    }
    return module;
}
