/* client/autograd/border.c - where values change layout, come in from plain tensors, or leave to them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/border.h"

#include "autograd/grads.h"
#include "autograd/promote.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "dtensor/remesh.h"

/* Every addend of a sum has the derivative of the sum: a whole gradient is already right for a pending input, and
 * making it pending again would only cost a later reduction. */
static mesh_dtensor *as_dtype(mesh_dtensor *x, mesh_dtype t)
{
    return x == NULL || x->dtype == t ? x : grad_op1(OP_cast, x, &(struct op_attr){ .mode = (int32_t)t });
}

/* index[0] of the node: the dtype that the gradient travels in; 0: its own. */
static void back_to_source(struct grad_call *c)
{
    mesh_dtype own = c->dy->dtype, travels = (mesh_dtype)c->node->attr.index[0];
    mesh_placements p = c->node->in_placements[0];
    for (int d = 0; d < p.n; d++) {
        if (p.at[d].kind == MESH_IS_PARTIAL) {
            mesh_placement dy = c->dy->placements.at[d];
            p.at[d] = dy.kind == MESH_IS_PARTIAL ? dy : mesh_replicate();
        }
    }
    mesh_dtensor *dy = as_dtype(c->dy, travels == 0 ? own : travels);
    c->dx[0] = as_dtype(dy == NULL ? NULL : dtensor_redistribute(dy, &p), own);
}
const struct gradient g_redistribute = { back_to_source, { 0 } };

static mesh_dtensor *record_redistribute(mesh_dtensor *x, mesh_dtensor *y, mesh_dtype backward)
{
    if (y == NULL || !tape_wants(&x, 1)) {
        return y;
    }
    struct op_attr attr = { .index = { (int64_t)backward } };
    struct tape_entry e = { .name = "redistribute", .gradient = &g_redistribute, .attr = &attr, .n_in = 1, .in = &x };
    return tape_record(&e, y) < 0 ? NULL : y;
}

mesh_dtensor *ag_redistribute(mesh_dtensor *x, const mesh_placements *p)
{
    return record_redistribute(x, dtensor_redistribute(x, p), (mesh_dtype)0);
}

/* Whether the node's gradient only moves elements, so that a pending one passes for nothing. */
static bool is_only_moved(const struct grad_node *node)
{
    return node->gradient == &g_reshape || node->gradient == &g_permute || node->gradient == &g_transpose;
}

void ag_complete_gradient(mesh_dtensor *x, int mesh_dim)
{
    const struct grad_node *from = x->node;
    while (from != NULL && is_only_moved(from)) {
        from = from->edge[0].node;
    }
    bool is_brought = from != NULL && from->gradient == &g_redistribute &&
                      from->in_placements[0].at[mesh_dim].kind != MESH_IS_PARTIAL;
    if (x->node != NULL && !is_brought) {
        x->node->completes |= (uint8_t)(1U << mesh_dim);
    }
}

/* The failure goes to the scope.  For expressions: returns NULL. */
static void *fail(void)
{
    return scope_fail(err_status());
}

static void *fail_null(const char *what)
{
    return scope_fail(err_set(MESH_EINVAL, "the %s is NULL", what));
}

static int check_dtypes(const mesh_redistribute_options *o)
{
    const mesh_dtype both[] = { o->forward_dtype, o->backward_dtype };
    for (int i = 0; i < 2; i++) {
        if (both[i] != 0 && !dtype_is_valid((int)both[i])) {
            return err_set(MESH_EINVAL, "redistribute: dtype %d does not exist", (int)both[i]);
        }
    }
    return o->backward_dtype == 0 || dtype_kind(o->backward_dtype) == DTYPE_FLOAT
               ? 0
               : err_set(MESH_EINVAL, "redistribute: a gradient cannot travel as %s: only as floats",
                         dtype_name(o->backward_dtype));
}

/* Else a program that writes in place afterwards would compute one thing where elements moved, another where none had
 * to. */
static mesh_dtensor *with_own_elements(mesh_dtensor *y, const mesh_dtensor *x)
{
    if (y == NULL) {
        return NULL;
    }
    y->local = tensor_detached(y->local, x->local);
    return y->local != NULL ? y : NULL;
}

static mesh_dtensor *redistribute(mesh_dtensor *x, mesh_placements p, const mesh_redistribute_options *o)
{
    if (x == NULL) {
        return fail_null("tensor");
    }
    int r = placements_check("redistribute", x->shape, x->dtype, x->mesh->ndim, &p);
    r = r < 0 ? r : check_dtypes(o);
    if (r < 0) {
        return scope_fail(r);
    }
    const mesh_dtensor *given = x;
    if (o->forward_dtype != 0 && (x = cast_to(x, o->forward_dtype)) == NULL) {
        return fail();
    }
    mesh_dtensor *y = o->async ? dtensor_redistribute_async(x, &p) : dtensor_redistribute(x, &p);
    y = with_own_elements(y, given);
    y = record_redistribute(x, y, o->backward_dtype);
    return y != NULL ? y : fail();
}

MESH_API mesh_dtensor *mesh_redistribute(mesh_dtensor *x, mesh_placements p)
{
    return scope_enter(__func__) ? redistribute(x, p, &(mesh_redistribute_options){ .async = false }) : NULL;
}

MESH_API mesh_dtensor *mesh_redistribute_async(mesh_dtensor *x, mesh_placements p)
{
    return scope_enter(__func__) ? redistribute(x, p, &(mesh_redistribute_options){ .async = true }) : NULL;
}

MESH_API mesh_dtensor *mesh_redistribute_opt(mesh_dtensor *x, mesh_placements p, const mesh_redistribute_options *o)
{
    static const mesh_redistribute_options defaults = { .size = sizeof defaults };
    return scope_enter(__func__) ? redistribute(x, p, o != NULL ? o : &defaults) : NULL;
}

/* Partial read as Replicate. */
static mesh_placements without_partial(mesh_placements p)
{
    for (int d = 0; d < p.n; d++) {
        if (p.at[d].kind == MESH_IS_PARTIAL) {
            p.at[d] = mesh_replicate();
        }
    }
    return p;
}

/* The mesh of x stands in the node's arguments: it is the session's, so it outlives the graph. */
static void back_to_mesh(struct grad_call *c)
{
    mesh_device_mesh *m = (mesh_device_mesh *)(intptr_t)c->node->attr.index[0];
    mesh_placements p = without_partial(c->node->in_placements[0]);
    c->dx[0] = dtensor_remesh(c->dy, m, &p);
}
static const struct gradient g_remesh = { back_to_mesh, { 0 } };

MESH_API mesh_dtensor *mesh_redistribute_to(mesh_dtensor *x, mesh_device_mesh *m, mesh_placements p)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (x == NULL || m == NULL) {
        return fail_null(x == NULL ? "tensor" : "mesh");
    }
    int r = placements_check("redistribute", x->shape, x->dtype, m->ndim, &p);
    if (r < 0) {
        return scope_fail(r);
    }
    if (m == x->mesh) {
        return redistribute(x, p, &(mesh_redistribute_options){ .async = false });
    }
    mesh_dtensor *y = dtensor_remesh(x, m, &p);
    if (y == NULL) {
        return fail();
    }
    if (!tape_wants(&x, 1)) {
        return y;
    }
    struct op_attr attr = { .index = { (int64_t)(intptr_t)x->mesh } };
    struct tape_entry e = { .name = "redistribute", .gradient = &g_remesh, .attr = &attr, .n_in = 1, .in = &x };
    return tape_record(&e, y) < 0 ? fail() : y;
}

MESH_API mesh_dtensor *mesh_from_local_opt(mesh_tensor *local, mesh_device_mesh *m, mesh_placements p,
                                           const mesh_from_local_options *o)
{
    static const mesh_from_local_options defaults = { .size = sizeof defaults };
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (local == NULL || m == NULL) {
        return fail_null(local == NULL ? "local tensor" : "mesh");
    }
    mesh_dtensor *x = dtensor_from_local(local, m, p, o != NULL ? o : &defaults);
    if (x == NULL) {
        return fail();
    }
    if (x->grad_placements.n == 0) {
        x->grad_placements = without_partial(x->placements);
    }
    return x;
}

MESH_API mesh_tensor *mesh_to_local(mesh_dtensor *x)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (x == NULL) {
        return fail_null("tensor");
    }
    if (tensor_settle(x->local) < 0) {
        return fail();
    }
    struct mesh_tensor *t = tensor_share(x->local, x->local->shape);
    return t != NULL ? tensor_give_to_scope(t) : fail();
}

MESH_API mesh_tensor *mesh_full_tensor(mesh_dtensor *x)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (x == NULL) {
        return fail_null("tensor");
    }
    struct mesh_tensor *full = tensor_detached(dtensor_full(x), x->local);
    struct mesh_tensor *t = full == NULL ? NULL : tensor_share(full, full->shape);
    tensor_unref(full);
    return t != NULL ? tensor_give_to_scope(t) : fail();
}
