/* client/nn/parameter.c - a parameter from recipe to value, and from one layout to another.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/hooks.h"
#include "base/error.h"
#include "nn/module.h"

mesh_placements placements_replicated(const mesh_device_mesh *m)
{
    mesh_placements p = { .n = m->ndim };
    for (int d = 0; d < p.n; d++) {
        p.at[d] = mesh_replicate();
    }
    return p;
}

/* Moves the value out of the scope it was made in, to the module. */
static void adopt(struct parameter *p, mesh_dtensor *value)
{
    object_disown(&value->object);
    dtensor_unref(p->value);
    p->value = value;
}

mesh_dtensor *parameter_value(struct parameter *p)
{
    if (p->value == NULL) {
        const struct recipe *r = &p->recipe;
        mesh_dtensor *value = dtensor_filled(r->shape, r->dtype, r->mesh, &r->placements, &r->fill);
        if (value == NULL) {
            err_wrap(err_status(), "parameter \"%s\"", p->name);
            return NULL;
        }
        value->requires_grad = true;
        adopt(p, value);
    }
    return p->value;
}

const mesh_placements *parameter_placements(const struct parameter *p)
{
    return p->value != NULL ? &p->value->placements : &p->recipe.placements;
}

mesh_device_mesh *parameter_mesh(const struct parameter *p)
{
    return p->value != NULL ? p->value->mesh : p->recipe.mesh;
}

/* The tensor in another layout, with all that hangs on it; of the innermost scope.  NULL: error set. */
static mesh_dtensor *laid_out(mesh_dtensor *old, const mesh_placements *placements)
{
    mesh_dtensor *value = dtensor_redistribute(old, placements);
    mesh_dtensor *grad = value == NULL || old->grad == NULL ? NULL : dtensor_redistribute(old->grad, placements);
    if (value == NULL || (grad == NULL && old->grad != NULL) || hooks_copy(old->hooks, &value->hooks) < 0) {
        return NULL;
    }
    value->grad = grad == NULL ? NULL : dtensor_ref(grad);
    value->requires_grad = old->requires_grad;
    return value;
}

int parameter_lay_out(struct parameter *p, const mesh_placements *placements)
{
    mesh_dtensor *old = p->value, *value = NULL;
    if (old == NULL) {
        p->recipe.placements = *placements;
        return 0;
    }
    if (mesh_placements_equal(old->placements, *placements)) {
        return 0;
    }
    value = laid_out(old, placements);
    if (value == NULL) {
        return err_wrap(err_status(), "parameter \"%s\"", p->name);
    }
    if (p->is_tied) {
        return tied_replace(old, value);
    }
    adopt(p, value);
    return 0;
}
