/* client/nn/forward.c - runs a module: its inputs are brought to where they are needed, its result to where it is
 * wanted.
 *
 *     inputs --border.input--> --io: input, needed (the first)--> forward --io: output--> --border.output--> result
 *
 * border is mesh_distribute_module()'s, io that of the styles.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/nn.h>

#include <string.h>

#include "autograd/border.h"
#include "base/error.h"
#include "core/scope.h"
#include "nn/module.h"

#define MAX_INPUTS 16

static void *fail_last(void)
{
    return scope_fail(err_status());
}

/* x with the placement on some mesh dims as wanted[d] says; kind 0: as it is.  NULL: error set. */
static mesh_dtensor *bring_to(mesh_dtensor *x, const mesh_placement *wanted)
{
    mesh_placements p = x->placements;
    for (int d = 0; d < p.n; d++) {
        p.at[d] = wanted[d].kind != 0 ? wanted[d] : p.at[d];
    }
    int r = placements_check("module", x->shape, x->dtype, x->mesh->ndim, &p);
    if (r < 0 || mesh_placements_equal(p, x->placements)) {
        return r < 0 ? NULL : x;
    }
    return ag_redistribute(x, &p);
}

static mesh_dtensor *bring_input(const mesh_module *m, mesh_dtensor *x)
{
    mesh_placement first[MESH_MAX_MESH_NDIM], then[MESH_MAX_MESH_NDIM];
    for (int d = 0; d < MESH_MAX_MESH_NDIM; d++) {
        first[d] = m->io[d].input;
        then[d] = m->io[d].needed;
    }
    x = bring_to(x, first);
    x = x == NULL ? NULL : bring_to(x, then);
    for (int d = 0; x != NULL && d < x->placements.n; d++) {
        if (x->placements.at[d].kind == MESH_IS_REPLICATE && (first[d].kind != 0 || then[d].kind != 0)) {
            ag_complete_gradient(x, d);
        }
    }
    return x;
}

static mesh_dtensor *bring_output(const mesh_module *m, mesh_dtensor *y)
{
    mesh_placement wanted[MESH_MAX_MESH_NDIM];
    for (int d = 0; d < MESH_MAX_MESH_NDIM; d++) {
        wanted[d] = m->io[d].output;
    }
    return bring_to(y, wanted);
}

/* A function of the user's may return NULL for "as it is".  NULL: the scope has failed. */
static mesh_dtensor *through(mesh_dtensor *(*fn)(mesh_dtensor *x, void *user), void *user, mesh_dtensor *x,
                             const char *public_function)
{
    mesh_dtensor *y = fn != NULL ? fn(x, user) : x;
    return scope_enter(public_function) ? (y != NULL ? y : x) : NULL;
}

/* Runs the module's function on inputs that are where it needs them. */
static mesh_dtensor *call(mesh_module *m, mesh_dtensor *const *in, int n, const char *public_function)
{
    mesh_dtensor *y = m->class_ != NULL ? m->class_->forward(m->self, in[0]) : m->inputs_class->forward(m->self, in, n);
    if (!scope_enter(public_function)) {
        return NULL;
    }
    if (y == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the forward function of \"%s\" returned NULL", module_class_name(m)));
    }
    y = bring_output(m, y);
    return y != NULL ? y : fail_last();
}

static int check(const mesh_module *m, mesh_dtensor *const *in, int n)
{
    if (m == NULL) {
        return err_set(MESH_EINVAL, "the module is NULL");
    }
    if (n < 1 || n > MAX_INPUTS || (m->class_ != NULL && n != 1)) {
        return err_set(MESH_EINVAL, "%d inputs for a \"%s\", which takes %s", n, module_class_name(m),
                       m->class_ != NULL ? "1" : "1 to 16");
    }
    for (int i = 0; i < n; i++) {
        if (in == NULL || in[i] == NULL) {
            return err_set(MESH_EINVAL, "input %d is NULL", i + 1);
        }
    }
    return 0;
}

static mesh_dtensor *forward(mesh_module *m, mesh_dtensor *const *inputs, int n, const char *public_function)
{
    mesh_dtensor *in[MAX_INPUTS];
    int r = check(m, inputs, n);
    if (r < 0) {
        return scope_fail(r);
    }
    for (int i = 0; i < n; i++) {
        in[i] = through(m->border.input, m->border.user, inputs[i], public_function);
        if (in[i] == NULL) {
            return NULL;
        }
    }
    in[0] = bring_input(m, in[0]);
    if (in[0] == NULL) {
        return fail_last();
    }
    mesh_dtensor *y = call(m, in, n, public_function);
    return y == NULL ? NULL : through(m->border.output, m->border.user, y, public_function);
}

MESH_API mesh_dtensor *mesh_forward(mesh_module *m, mesh_dtensor *x)
{
    return scope_enter(__func__) ? forward(m, &x, 1, __func__) : NULL;
}

MESH_API mesh_dtensor *mesh_forward_with(mesh_module *m, mesh_dtensor *const *inputs, int n_inputs)
{
    return scope_enter(__func__) ? forward(m, inputs, n_inputs, __func__) : NULL;
}
