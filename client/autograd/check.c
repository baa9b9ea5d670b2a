/* client/autograd/check.c - gradients of a function against central finite differences.
 *
 *     L = sum of w * fn(inputs), w random        dL/dx[e] ~ (L(x + h at e) - L(x - h at e)) / 2h
 *
 * Which elements are tried, and what comes out, is the same on all ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/autograd.h>

#include <math.h>
#include <string.h>

#include <mesh/ops.h>

#include "autograd/promote.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

#define MAX_INPUTS 16

struct checked {
    mesh_check_fn fn;
    const mesh_autograd_check_options *o;
    int n;
    mesh_dtensor *in[MAX_INPUTS];
    mesh_dtensor *weight; /* like the result; NULL: not known yet */
};

static bool is_float(const mesh_dtensor *x)
{
    return dtype_kind(x->dtype) == DTYPE_FLOAT;
}

static mesh_dtensor *weights_for(const mesh_dtensor *y)
{
    mesh_placements p = { .n = y->mesh->ndim };
    for (int d = 0; d < p.n; d++) {
        p.at[d] = mesh_replicate();
    }
    struct fill f = { .kind = FILL_UNIFORM, .a = -1, .b = 1, .key = dtensor_next_key(y->mesh->session, 1) };
    return dtensor_filled(y->shape, MESH_F64, y->mesh, &p, &f);
}

/* L as a tensor of one f64; NULL: the scope has failed. */
static mesh_dtensor *weigh(struct checked *c, mesh_dtensor *const *in)
{
    mesh_dtensor *y = c->fn(in, c->n, c->o->user);
    if (!scope_enter("mesh_autograd_check_opt")) {
        return NULL;
    }
    if (y == NULL) {
        return scope_fail(err_set(MESH_EINVAL, "the function returned NULL"));
    }
    c->weight = c->weight != NULL ? c->weight : weights_for(y);
    y = c->weight == NULL ? NULL : cast_to(y, MESH_F64);
    if (y == NULL) {
        return scope_fail(err_status());
    }
    return mesh_sum(mesh_mul(y, c->weight));
}

/* Whether this rank's part has a share in element e, which is at ret_at of it. */
static bool holds(const mesh_dtensor *x, int64_t e, int64_t *ret_at)
{
    int64_t index[MESH_MAX_NDIM];
    if (!x->mesh->is_member) {
        return false;
    }
    for (int d = x->shape.ndim; d-- > 0; e /= x->shape.dim[d]) {
        index[d] = e % x->shape.dim[d];
    }
    int64_t at = layout_find(x->shape, x->mesh->size, x->mesh->coordinate, &x->placements, index);
    if (at < 0) {
        return false;
    }
    for (int d = 0; d < x->placements.n; d++) {
        mesh_placement p = x->placements.at[d];
        if (p.kind == MESH_IS_PARTIAL && p.op == MESH_SUM && x->mesh->coordinate[d] != 0) {
            return false;
        }
    }
    *ret_at = at;
    return true;
}

static void add_to(struct mesh_tensor *t, int64_t i, double delta)
{
    switch (t->dtype) {
    case MESH_F64:
        ((double *)t->data)[i] += delta;
        return;
    case MESH_F16:
        ((uint16_t *)t->data)[i] = float_to_f16(float_from_f16(((uint16_t *)t->data)[i]) + (float)delta);
        return;
    case MESH_BF16:
        ((uint16_t *)t->data)[i] = float_to_bf16(float_from_bf16(((uint16_t *)t->data)[i]) + (float)delta);
        return;
    default:
        ((float *)t->data)[i] += (float)delta;
        return;
    }
}

/* A copy with element e moved; NULL: error set. */
static mesh_dtensor *moved(mesh_dtensor *x, int64_t e, double delta)
{
    int64_t at = 0;
    struct mesh_tensor *local = tensor_copy(x->local);
    if (local == NULL) {
        return NULL;
    }
    if (holds(x, e, &at)) {
        add_to(local, at, delta);
    }
    return dtensor_new(x->mesh, x->shape, x->dtype, &x->placements, local);
}

static int loss_at(struct checked *c, int i, int64_t e, double delta, double *ret_loss)
{
    mesh_dtensor *in[MAX_INPUTS];
    memcpy(in, c->in, sizeof in);
    in[i] = moved(c->in[i], e, delta);
    if (in[i] == NULL) {
        return err_status();
    }
    *ret_loss = mesh_item(weigh(c, in));
    return scope_enter("mesh_autograd_check_opt") ? 0 : err_status();
}

static int compare(struct checked *c, int i, int64_t e, double gradient)
{
    bool is_wide = c->in[i]->dtype == MESH_F64;
    double h = c->o->step > 0 ? c->o->step : (is_wide ? 1e-6 : 1e-2), low = 0, high = 0;
    double tolerance = c->o->tolerance > 0 ? c->o->tolerance : (is_wide ? 1e-6 : 2e-2);
    mesh_scope *scope = mesh_scope_begin(); /* of this element's temporaries */
    if (scope == NULL) {
        return err_status();
    }
    int r = loss_at(c, i, e, h, &high);
    r = r < 0 ? r : loss_at(c, i, e, -h, &low);
    if (r < 0) {
        scope_fail(r);
    }
    r = mesh_scope_end(scope);
    r = r < 0 || scope_enter("mesh_autograd_check_opt") ? r : err_status();
    double difference = (high - low) / (2 * h);
    if (r == 0 && c->in[i]->mesh->is_member && !(fabs(gradient - difference) <= tolerance * (1 + fabs(difference)))) {
        r = err_set(MESH_EINVAL,
                    "inputs[%d], element %lld (row-major): the gradient is %.9g, finite differences say %.9g", i,
                    (long long)e, gradient, difference);
    }
    return r;
}

/* The gradient of the leaf as f64, whole; NULL: error set. */
static struct mesh_tensor *whole_gradient(mesh_dtensor *leaf)
{
    mesh_dtensor *g = leaf->grad == NULL ? NULL : dtensor_alias(leaf->grad);
    if (leaf->grad == NULL) {
        return tensor_new_zeroed(leaf->mesh->is_member ? leaf->shape : MESH_SHAPE(0), MESH_F64);
    }
    g = g == NULL ? NULL : cast_to(g, MESH_F64);
    return g == NULL ? NULL : dtensor_full(g);
}

static int check_input(struct checked *c, int i, mesh_dtensor *leaf)
{
    int64_t n = shape_numel(leaf->shape), most = c->o->max_elements > 0 ? c->o->max_elements : 64;
    int64_t n_tried = n < most ? n : most;
    struct mesh_tensor *g = whole_gradient(leaf);
    int r = g == NULL ? err_status() : 0;
    for (int64_t k = 0; r == 0 && k < n_tried; k++) {
        int64_t e = (int64_t)((double)k / (double)n_tried * (double)n);
        r = compare(c, i, e, leaf->mesh->is_member ? ((const double *)g->data)[e] : 0);
    }
    tensor_unref(g);
    return r;
}

static int check_arguments(mesh_check_fn fn, mesh_dtensor *const *inputs, int n)
{
    if (fn == NULL || inputs == NULL || n < 1 || n > MAX_INPUTS) {
        return err_set(MESH_EINVAL, "a function and 1 to 16 inputs are needed");
    }
    for (int i = 0; i < n; i++) {
        if (inputs[i] == NULL) {
            return err_set(MESH_EINVAL, "input %d is NULL", i + 1);
        }
        for (int d = 0; d < inputs[i]->placements.n; d++) {
            mesh_placement p = inputs[i]->placements.at[d];
            if (p.kind == MESH_IS_PARTIAL && p.op != MESH_SUM && p.op != MESH_AVG) {
                return err_set(MESH_EPLACEMENT, "input %d is pending %s on mesh dim %d; redistribute it", i + 1,
                               reduce_op_name(p.op), d);
            }
        }
    }
    return 0;
}

static int run(struct checked *c, mesh_dtensor *const *inputs)
{
    mesh_dtensor *leaf[MAX_INPUTS] = { NULL };
    for (int i = 0; i < c->n; i++) {
        if (tensor_settle(inputs[i]->local) < 0) {
            return err_status();
        }
        c->in[i] = dtensor_alias(inputs[i]);
        leaf[i] = dtensor_alias(inputs[i]);
        if (c->in[i] == NULL || leaf[i] == NULL) {
            return err_status();
        }
        leaf[i]->requires_grad = is_float(inputs[i]);
    }
    bool was_on = tape_set(true);
    mesh_dtensor *loss = weigh(c, leaf);
    tape_set(was_on);
    int r = loss == NULL ? err_status() : (loss->requires_grad ? mesh_backward(loss) : 0);
    was_on = tape_set(false);
    for (int i = 0; r == 0 && i < c->n; i++) {
        r = is_float(inputs[i]) ? check_input(c, i, leaf[i]) : 0;
    }
    tape_set(was_on);
    return r;
}

MESH_API int mesh_autograd_check_opt(mesh_check_fn fn, mesh_dtensor *const *inputs, int n_inputs,
                                     const mesh_autograd_check_options *o)
{
    static const mesh_autograd_check_options defaults = { .size = sizeof defaults };
    if (!scope_enter(__func__)) {
        return err_status();
    }
    struct checked c = { .fn = fn, .o = o != NULL ? o : &defaults, .n = n_inputs };
    int r = check_arguments(fn, inputs, n_inputs);
    mesh_scope *scope = r < 0 ? NULL : mesh_scope_begin();
    r = r < 0 || scope != NULL ? r : err_status();
    if (scope != NULL) {
        r = run(&c, inputs);
        if (r < 0) {
            scope_fail(r);
        }
        r = mesh_scope_end(scope);
    }
    if (r < 0) {
        scope_fail(r);
    }
    return r;
}
