/* client/nn/linear.c - the layer y = x w' + bias.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/error.h"
#include "core/scope.h"
#include "nn/module.h"

static mesh_dtensor *forward(void *self, mesh_dtensor *x)
{
    mesh_module *m = self;
    struct parameter *bias = module_own_parameter(m, "bias");
    mesh_dtensor *w = parameter_value(module_own_parameter(m, "weight"));
    mesh_dtensor *b = w == NULL || bias == NULL ? NULL : parameter_value(bias);
    if (w == NULL || (bias != NULL && b == NULL)) {
        return scope_fail(err_status());
    }
    return mesh_linear(x, w, b);
}

const mesh_module_class linear_class = { .name = "linear", .forward = forward };

/* One key for the layer; its two parameters draw from streams far apart under it. */
static int add_parameters(mesh_module *module, mesh_device_mesh *m, const int64_t *in_out,
                          const mesh_nn_linear_options *o)
{
    double bound = 1 / sqrt((double)in_out[0]);
    struct recipe recipe = {
        .mesh = m,
        .shape = MESH_SHAPE(in_out[1], in_out[0]),
        .dtype = MESH_F32,
        .placements = placements_replicated(m),
        .fill = { .kind = FILL_UNIFORM, .a = -bound, .b = bound, .key = dtensor_next_key(m->session, o->seed) },
    };
    int r = module_add_recipe(module, "weight", &recipe);
    if (r < 0 || o->no_bias) {
        return r;
    }
    recipe.shape = MESH_SHAPE(in_out[1]);
    recipe.fill.key.call += UINT64_C(1) << 62;
    return module_add_recipe(module, "bias", &recipe);
}

MESH_API mesh_module *mesh_nn_linear_opt(mesh_device_mesh *m, int64_t in, int64_t out, const mesh_nn_linear_options *o)
{
    static const mesh_nn_linear_options defaults = { .size = sizeof defaults };
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (m == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the mesh is NULL"));
    }
    if (in < 1 || out < 1) {
        return scope_fail(err_set(MESH_EINVAL, "a linear layer of %lld inputs and %lld outputs; both must be 1 or more",
                                  (long long)in, (long long)out));
    }
    mesh_module *module = module_new_own(&linear_class);
    int64_t in_out[2] = { in, out };
    if (module == NULL || add_parameters(module, m, in_out, o != NULL ? o : &defaults) < 0) {
        mesh_module_free(module);
        return scope_fail(err_status());
    }
    return module;
}
