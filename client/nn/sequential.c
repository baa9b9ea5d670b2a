/* client/nn/sequential.c - modules without parameters of their own: a chain of children, an activation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/error.h"
#include "core/scope.h"
#include "nn/module.h"

struct chain {
    mesh_module *module;
};

static mesh_dtensor *forward_chain(void *self, mesh_dtensor *x)
{
    const struct chain *c = self;
    for (size_t i = 0; x != NULL && i < c->module->children.n; i++) {
        x = mesh_forward(c->module->children.at[i].module, x);
    }
    return x;
}

static void free_chain(void *self)
{
    mem_free(self);
}

static mesh_dtensor *forward_gelu(void *self, mesh_dtensor *x)
{
    (void)self;
    return mesh_gelu(x, false);
}

static const mesh_module_class sequential_class = { .name = "sequential",
                                                    .forward = forward_chain,
                                                    .free = free_chain };
static const mesh_module_class gelu_class = { .name = "gelu", .forward = forward_gelu };

MESH_API mesh_module *mesh_nn_gelu(void)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    mesh_module *m = module_new(&gelu_class, NULL);
    return m != NULL ? m : scope_fail(err_status());
}

static mesh_module *new_chain(void)
{
    struct chain *c = mem_new(struct chain);
    if (c == NULL) {
        err_no_memory(sizeof *c, "a sequential module");
        return NULL;
    }
    mesh_module *m = module_new(&sequential_class, c);
    if (m != NULL) {
        c->module = m;
    }
    return m;
}

/* The children stay the session's when this fails, and end with it. */
MESH_API mesh_module *mesh_nn_sequential_of(const mesh_child *children)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    mesh_module *m = new_chain();
    if (m == NULL) {
        return scope_fail(err_status());
    }
    for (const mesh_child *c = children; c != NULL && (c->name != NULL || c->module != NULL); c++) {
        int r = module_add_child(m, c->name, c->module);
        if (r < 0) {
            return scope_fail(r);
        }
    }
    return m;
}
