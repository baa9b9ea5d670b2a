/* client/nn/adamw.c - Adam with weight decay apart from the gradient.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/error.h"
#include "core/scope.h"
#include "nn/optim.h"

static int update(const mesh_optimizer *o, struct mesh_tensor *p, const struct mesh_tensor *g,
                  struct optimizer_slot *slot)
{
    struct adamw_step step = o->as.adamw;
    step.lr = o->lr;
    step.number = slot->n_steps + 1;
    int r = optimizer_need_moment(slot, 0, p);
    r = r < 0 ? r : optimizer_need_moment(slot, 1, p);
    return r < 0 ? r : k_adamw_step(p, g, slot->moment[0], slot->moment[1], &step);
}

/* 0 in the options: the default. */
static double given_or(double given, double standard)
{
    return given != 0 ? given : standard;
}

static int check(double lr, const struct adamw_step *s)
{
    if (!(lr >= 0 && isfinite(lr) && s->weight_decay >= 0 && isfinite(s->weight_decay) && s->eps > 0)) {
        return err_set(MESH_EINVAL, "lr %g, weight_decay %g, eps %g: all must be finite and not negative", lr,
                       s->weight_decay, s->eps);
    }
    if (!(s->beta1 >= 0 && s->beta1 < 1 && s->beta2 >= 0 && s->beta2 < 1)) {
        return err_set(MESH_EINVAL, "beta1 %g and beta2 %g must be in [0, 1)", s->beta1, s->beta2);
    }
    return 0;
}

MESH_API mesh_optimizer *mesh_adamw_opt(mesh_module *m, const mesh_adamw_options *o)
{
    static const mesh_adamw_options defaults = { .size = sizeof defaults };
    if (!scope_enter(__func__)) {
        return NULL;
    }
    o = o != NULL ? o : &defaults;
    struct adamw_step step = { .beta1 = given_or(o->beta1, 0.9),
                               .beta2 = given_or(o->beta2, 0.999),
                               .eps = given_or(o->eps, 1e-8),
                               .weight_decay = o->weight_decay != NULL ? *o->weight_decay : 0.01 };
    double lr = given_or(o->lr, 1e-3);
    int r = m == NULL ? err_set(MESH_EINVAL, "the module is NULL") : check(lr, &step);
    mesh_optimizer *optimizer = r < 0 ? NULL : optimizer_new(m, update, lr);
    if (optimizer == NULL) {
        return scope_fail(err_status());
    }
    optimizer->as.adamw = step;
    return optimizer;
}
