/* client/autograd/public_autograd.c - the functions of mesh/autograd.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/autograd.h>
#include <mesh/inspect.h>

#include "autograd/backward.h"
#include "autograd/hooks.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

/* The gradient of one factor of a pending product needs the product of the others: there is no cheap way to it. */
static bool has_product(const mesh_dtensor *x)
{
    for (int d = 0; d < x->placements.n; d++) {
        if (x->placements.at[d].kind == MESH_IS_PARTIAL && x->placements.at[d].op == MESH_PROD) {
            return x->grad_placements.n > 0;
        }
    }
    return false;
}

static int check_leaf(const mesh_dtensor *x, bool on)
{
    if (x->node != NULL) {
        return err_set(MESH_ESTATE, "an operator made this tensor, so its gradient follows the graph: ask for that of "
                                    "the operator's inputs, or use mesh_detach()");
    }
    if (on && dtype_kind(x->dtype) != DTYPE_FLOAT) {
        return err_set(MESH_EINVAL, "a tensor of %s has no gradient; only floating-point ones do",
                       dtype_name(x->dtype));
    }
    if (on && has_product(x)) {
        return err_set(MESH_EUNSUPPORTED, "the gradient of a Partial(prod) local part is not supported; redistribute "
                                          "the tensor to Replicate and ask for that one's");
    }
    return 0;
}

MESH_API mesh_dtensor *mesh_requires_grad(mesh_dtensor *x, bool on)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    int r = x == NULL ? err_set(MESH_EINVAL, "the tensor is NULL") : check_leaf(x, on);
    if (r < 0) {
        return scope_fail(r);
    }
    x->requires_grad = on;
    return x;
}

MESH_API mesh_dtensor *mesh_detach(mesh_dtensor *x)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (x == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the tensor is NULL"));
    }
    mesh_dtensor *alias = dtensor_alias(x);
    return alias != NULL ? alias : scope_fail(err_status());
}

MESH_API mesh_dtensor *mesh_grad(const mesh_dtensor *x)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (x == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the tensor is NULL"));
    }
    if (x->grad == NULL) {
        return NULL;
    }
    mesh_dtensor *alias = dtensor_alias(x->grad);
    return alias != NULL ? alias : scope_fail(err_status());
}

MESH_API bool mesh_grad_enable(bool on)
{
    return tape_set(on);
}

static int check_start(const mesh_dtensor *y)
{
    if (y == NULL) {
        return err_set(MESH_EINVAL, "the tensor is NULL");
    }
    if (!y->requires_grad) {
        return err_set(MESH_ESTATE, "nothing to differentiate: it depends on no tensor that requires a gradient");
    }
    return 0;
}

static int check_seed(const mesh_dtensor *y, const mesh_dtensor *grad)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    if (!shape_equal(y->shape, grad->shape)) {
        return err_set(MESH_ESHAPE, "the gradient's shape %s is not that of the tensor, %s",
                       shape_text(grad->shape, a, sizeof a), shape_text(y->shape, b, sizeof b));
    }
    if (y->dtype != grad->dtype) {
        return err_set(MESH_EINVAL, "the gradient is of %s, the tensor of %s", dtype_name(grad->dtype),
                       dtype_name(y->dtype));
    }
    if (y->mesh->id != grad->mesh->id) {
        return err_set(MESH_EINVAL, "the gradient lives on another mesh than the tensor");
    }
    return 0;
}

static mesh_dtensor *ones_like(const mesh_dtensor *y)
{
    mesh_placements p = { .n = y->mesh->ndim };
    for (int d = 0; d < p.n; d++) {
        p.at[d] = mesh_replicate();
    }
    return dtensor_filled(y->shape, y->dtype, y->mesh, &p, &(struct fill){ .kind = FILL_VALUE, .a = 1 });
}

/* In a scope of its own, which frees each step's temporaries; seed NULL: ones. */
static int run(const char *name, mesh_dtensor *y, mesh_dtensor *seed, bool retains)
{
    mesh_scope *scope = mesh_scope_begin();
    if (scope == NULL) {
        return err_status();
    }
    err_enter(name);
    bool was_explicit = mesh_explicit(false); /* nobody wrote these calls, so nobody can be told to change them */
    seed = seed != NULL ? seed : ones_like(y);
    int r = seed == NULL ? err_status() : backward_run(name, scope, y, seed, retains);
    if (r < 0) {
        scope_fail(r);
    }
    int ended = mesh_scope_end(scope);
    (void)mesh_explicit(was_explicit);
    if (r < 0 || ended < 0) {
        scope_fail(r < 0 ? r : ended);
    }
    return r < 0 ? r : ended;
}

static int check_loss(const mesh_dtensor *loss)
{
    char text[SHAPE_TEXT_BYTES];
    int r = check_start(loss);
    if (r == 0 && shape_numel(loss->shape) != 1) {
        r = err_set(MESH_ESHAPE, "the loss has the shape %s: reduce it to one element, or use mesh_backward_from()",
                    shape_text(loss->shape, text, sizeof text));
    }
    return r;
}

static int backward(const char *name, mesh_dtensor *y, mesh_dtensor *grad, bool retains)
{
    int r = grad == NULL ? check_loss(y) : check_start(y);
    if (r == 0 && grad != NULL) {
        r = check_seed(y, grad);
        r = r < 0 ? r : tensor_settle(grad->local);
    }
    if (r < 0) {
        scope_fail(r);
        return r;
    }
    return run(name, y, grad, retains);
}

MESH_API int mesh_backward(mesh_dtensor *loss)
{
    return scope_enter(__func__) ? backward(__func__, loss, NULL, false) : err_status();
}

MESH_API int mesh_backward_opt(mesh_dtensor *y, const mesh_backward_options *o)
{
    static const mesh_backward_options defaults = { .size = sizeof defaults };
    o = o != NULL ? o : &defaults;
    return scope_enter(__func__) ? backward(__func__, y, o->grad, o->retain_graph) : err_status();
}

MESH_API int mesh_backward_from(mesh_dtensor *y, mesh_dtensor *grad)
{
    if (!scope_enter(__func__)) {
        return err_status();
    }
    if (grad == NULL) {
        int r = y == NULL ? check_start(y) : err_set(MESH_EINVAL, "the gradient is NULL");
        scope_fail(r);
        return r;
    }
    return backward(__func__, y, grad, false);
}

MESH_API int mesh_grad_hook(mesh_dtensor *x, mesh_grad_fn fn, void *user)
{
    if (!scope_enter(__func__)) {
        return err_status();
    }
    int r = 0;
    if (x == NULL || fn == NULL) {
        r = err_set(MESH_EINVAL, "the %s is NULL", x == NULL ? "tensor" : "function");
    } else if (!x->requires_grad) {
        r = err_set(MESH_ESTATE, "the tensor has no gradient: call mesh_requires_grad() first");
    } else {
        r = hooks_add(x->node != NULL ? &x->node->hooks : &x->hooks, fn, user);
    }
    if (r < 0) {
        scope_fail(r);
    }
    return r;
}
