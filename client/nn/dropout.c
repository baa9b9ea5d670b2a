/* client/nn/dropout.c - mesh_dropout() as a module, idle while the tree is evaluated.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/random.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/scope.h"
#include "nn/module.h"

struct dropout {
    const mesh_module *module;
    double p;
};

static mesh_dtensor *forward(void *self, mesh_dtensor *x)
{
    const struct dropout *d = self;
    return d->module->is_evaluated || d->p <= 0 ? x : mesh_dropout(x, d->p);
}

static void free_dropout(void *self)
{
    mem_free(self);
}

static const mesh_module_class dropout_class = { .name = "dropout", .forward = forward, .free = free_dropout };

MESH_API mesh_module *mesh_nn_dropout(double p)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (!(p >= 0 && p <= 1)) {
        return scope_fail(err_set(MESH_EINVAL, "a dropout probability of %g; it must be in [0, 1]", p));
    }
    struct dropout *d = mem_new(struct dropout);
    mesh_module *m = d == NULL ? NULL : module_new(&dropout_class, d);
    if (m == NULL) {
        return scope_fail(d == NULL ? err_no_memory(sizeof *d, "a dropout module") : err_status());
    }
    *d = (struct dropout){ .module = m, .p = p };
    return m;
}
