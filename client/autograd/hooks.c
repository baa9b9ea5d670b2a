/* client/autograd/hooks.c - a list of functions in one block of memory, and their turns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/hooks.h"

#include <string.h>

#include "autograd/tape.h"
#include "base/alloc.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

struct hook {
    mesh_grad_fn fn;
    void *user;
};

struct hook_list {
    size_t n;
    struct hook at[];
};

static size_t list_bytes(size_t n)
{
    return sizeof(struct hook_list) + n * sizeof(struct hook);
}

int hooks_add(void **inout_hooks, mesh_grad_fn fn, void *user)
{
    const struct hook_list *old = *inout_hooks;
    size_t n = old != NULL ? old->n : 0;
    struct hook_list *list = mem_realloc(*inout_hooks, old != NULL ? list_bytes(n) : 0, list_bytes(n + 1));
    if (list == NULL) {
        return err_no_memory(list_bytes(n + 1), "a gradient hook");
    }
    list->at[n] = (struct hook){ fn, user };
    list->n = n + 1;
    *inout_hooks = list;
    return 0;
}

int hooks_copy(const void *hooks, void **ret_hooks)
{
    const struct hook_list *list = hooks;
    void *copy = list == NULL ? NULL : mem_alloc(list_bytes(list->n));
    if (list != NULL && copy == NULL) {
        return err_no_memory(list_bytes(list->n), "a gradient hook");
    }
    if (copy != NULL) {
        memcpy(copy, list, list_bytes(list->n));
    }
    *ret_hooks = copy;
    return 0;
}

static int check(const mesh_dtensor *was, const mesh_dtensor *is)
{
    char a[DTENSOR_TEXT_BYTES], b[DTENSOR_TEXT_BYTES];
    if (shape_equal(was->shape, is->shape) && was->dtype == is->dtype && was->mesh == is->mesh) {
        return 0;
    }
    return err_set(MESH_ESHAPE, "a gradient hook made %.100s of %.100s; only values and placements may change",
                   dtensor_text(is, b, sizeof b), dtensor_text(was, a, sizeof a));
}

mesh_dtensor *hooks_run(const void *hooks, const char *name, mesh_dtensor *grad)
{
    const struct hook_list *list = hooks;
    bool was_on = tape_set(false);
    for (size_t i = 0; grad != NULL && list != NULL && i < list->n; i++) {
        mesh_dtensor *was = dtensor_alias(grad), *is = was == NULL ? NULL : list->at[i].fn(was, list->at[i].user);
        bool is_well = was != NULL && scope_enter(name);
        is = is != NULL ? is : was;
        grad = is_well && check(was, is) == 0 && tensor_settle(is->local) == 0 ? is : NULL;
    }
    tape_set(was_on);
    return grad;
}
