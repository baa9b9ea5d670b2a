/* client/nn/parameter.c - a parameter from recipe to value, and from one layout to another.
 * SPDX-License-Identifier: Apache-2.0 */
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
    value->requires_grad = true;
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

int parameter_lay_out(struct parameter *p, const mesh_placements *placements)
{
    if (p->value == NULL) {
        p->recipe.placements = *placements;
        return 0;
    }
    mesh_dtensor *value = dtensor_redistribute(p->value, placements);
    if (value == NULL) {
        return err_wrap(err_status(), "parameter \"%s\"", p->name);
    }
    adopt(p, value);
    return 0;
}
