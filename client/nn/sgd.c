/* client/nn/sgd.c - stochastic gradient descent with momentum.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/error.h"
#include "core/scope.h"
#include "nn/optim.h"

static int update(const mesh_optimizer *o, struct mesh_tensor *p, const struct mesh_tensor *g,
                  struct optimizer_slot *slot)
{
    const mesh_sgd_options *options = &o->as.sgd;
    int r = options->momentum > 0 ? optimizer_need_moment(slot, 0, p) : 0;
    struct sgd_step step = { .lr = o->lr,
                             .momentum = options->momentum,
                             .weight_decay = options->weight_decay,
                             .nesterov = options->nesterov,
                             .is_first = slot->n_steps == 0 };
    return r < 0 ? r : k_sgd_step(p, g, slot->moment[0], &step);
}

static bool is_usable(double x)
{
    return x >= 0 && isfinite(x);
}

MESH_API mesh_optimizer *mesh_sgd_opt(mesh_module *m, const mesh_sgd_options *o)
{
    static const mesh_sgd_options defaults = { .size = sizeof defaults };
    if (!scope_enter(__func__)) {
        return NULL;
    }
    o = o != NULL ? o : &defaults;
    if (m == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the module is NULL"));
    }
    if (!is_usable(o->lr) || !is_usable(o->momentum) || !is_usable(o->weight_decay)) {
        return scope_fail(err_set(MESH_EINVAL,
                                  "lr %g, momentum %g, weight_decay %g: all must be finite and not negative", o->lr,
                                  o->momentum, o->weight_decay));
    }
    if (o->nesterov && !(o->momentum > 0)) {
        return scope_fail(err_set(MESH_EINVAL, "nesterov needs a momentum above 0"));
    }
    mesh_optimizer *optimizer = optimizer_new(m, update, o->lr > 0 ? o->lr : 0.01);
    if (optimizer == NULL) {
        return scope_fail(err_status());
    }
    optimizer->as.sgd = *o;
    return optimizer;
}
