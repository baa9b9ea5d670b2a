/* tests/truth/conformance_run.c - one case on one rank: makes the inputs, calls the operator, and copies out what it gave.
 *
 * Gradients are those of loss = sum over outputs of sum(out w), w[i] = ((7i) mod 11 - 5) / 4.  The leaves are the logical
 * tensors (detached from mesh_from_local(), whose own gradient convention speaks of the local parts).
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
    const struct test_case *c;
    mesh_device_mesh *mesh;
    int rank;
    struct outcome *o;
    mesh_dtensor *in[CASE_MAX_INPUTS], *out[CASE_MAX_OUTPUTS];
    int n_out;
};

static bool is_good(void)
{
    return mesh_scope_status(NULL) == 0;
}

static mesh_placements replicated(int n)
{
    mesh_placements p = { .n = n };
    for (int m = 0; m < n; m++) {
        p.at[m] = mesh_replicate();
    }
    return p;
}

/* --- inputs -------------------------------------------------------------------------------------------------------- */

static mesh_dtensor *input_distributed(const struct run *r, const struct value *v)
{
    mesh_tensor *t = mesh_tensor_new(v->shape, v->dtype);
    if (t != NULL && v->n > 0) {
        memcpy(mesh_tensor_data(t), v->data, (size_t)v->n * item_bytes(v->dtype));
    }
    return mesh_distribute_tensor(t, r->mesh, v->placements);
}

static mesh_dtensor *input_from_parts(const struct run *r, const struct value *v)
{
    mesh_shape offset, extent;
    part_box(v->shape, r->c->mesh, v->placements, r->rank, &offset, &extent);
    mesh_tensor *local = mesh_tensor_new(extent, v->dtype);
    if (local != NULL) {
        part_fill(mesh_tensor_data(local), v, r->c->mesh, r->rank);
    }
    return mesh_detach(mesh_from_local(local, r->mesh, v->placements, .shape = v->shape));
}

static void make_inputs(struct run *r)
{
    for (int i = 0; i < r->c->n_in && is_good(); i++) {
        const struct value *v = &r->c->in[i];
        if (r->c->is_absent[i]) {
            continue;
        }
        r->in[i] = r->c->row->is_distribute ? input_distributed(r, v) : input_from_parts(r, v);
        if (r->c->has_gradient[i]) {
            mesh_requires_grad(r->in[i], true);
        }
    }
}

/* --- results ------------------------------------------------------------------------------------------------------- */

static void capture(struct run *r, mesh_tensor *t, const char *what, int number)
{
    if (t == NULL || !is_good() || r->o->n_captured == CASE_MAX_CAPTURED) {
        return;
    }
    struct captured *to = &r->o->captured[r->o->n_captured++];
    to->shape = mesh_tensor_shape(t);
    to->dtype = mesh_tensor_dtype(t);
    size_t bytes = (size_t)numel(to->shape) * item_bytes(to->dtype);
    snprintf(to->what, sizeof to->what, what, number);
    to->data = malloc(bytes + 1);
    if (to->data != NULL && bytes > 0) {
        memcpy(to->data, mesh_tensor_data(t), bytes);
    }
}

static mesh_dtensor *weights_for(const struct run *r, mesh_dtensor *out)
{
    mesh_shape s = mesh_shape_of(out);
    mesh_dtype d = mesh_dtype_of(out);
    mesh_tensor *w = mesh_tensor_new(s, d);
    for (int64_t i = 0; w != NULL && i < numel(s); i++) {
        number_put(d, mesh_tensor_data(w), i, (double)(7 * i % 11 - 5) / 4);
    }
    return mesh_distribute_same(w, r->mesh, replicated(r->c->mesh.ndim));
}

static void backward(struct run *r)
{
    mesh_dtensor *loss = NULL;
    for (int i = 0; i < r->n_out && is_good(); i++) {
        mesh_dtensor *term = mesh_sum(mesh_mul(r->out[i], weights_for(r, r->out[i])));
        loss = loss == NULL ? term : mesh_add(loss, term);
    }
    if (is_good()) {
        (void)mesh_backward(loss);
    }
}

static bool wants_gradients(const struct test_case *c)
{
    for (int i = 0; i < c->n_in; i++) {
        if (c->has_gradient[i]) {
            return true;
        }
    }
    return false;
}

static void capture_gradients(struct run *r)
{
    for (int i = 0; i < r->c->n_in && is_good(); i++) {
        if (r->c->has_gradient[i]) {
            mesh_dtensor *g = mesh_grad(r->in[i]);
            capture(r, g == NULL ? NULL : mesh_full_tensor(g), "gradient of input %d", i);
        }
    }
}

static void run_in_scope(struct run *r)
{
    make_inputs(r);
    if (!is_good()) {
        return;
    }
    r->n_out = r->c->row->call(r->in, &r->c->attr, r->out);
    if (r->c->locals != NULL) {
        capture(r, is_good() ? mesh_to_local(r->out[0]) : NULL, "local part", 0);
        return;
    }
    for (int i = 0; i < r->n_out && is_good(); i++) {
        capture(r, mesh_full_tensor(r->out[i]), "output %d", i);
    }
    if (is_good() && wants_gradients(r->c)) {
        backward(r);
        capture_gradients(r);
    }
}

void case_run(const struct test_case *c, mesh_device_mesh *mesh, int rank, struct outcome *ret_outcome)
{
    struct run r = { .c = c, .mesh = mesh, .rank = rank, .o = ret_outcome };
    mesh_scope *scope = mesh_scope_begin();
    if (scope != NULL) {
        run_in_scope(&r);
        ret_outcome->status = mesh_scope_end(scope);
    } else {
        ret_outcome->status = (int)mesh_last_error()->status;
    }
    if (ret_outcome->status < 0) {
        const mesh_error *e = mesh_last_error();
        snprintf(ret_outcome->message, sizeof ret_outcome->message, "%s in %s: %s", mesh_status_name(e->status),
                 e->where == NULL ? "?" : e->where, e->message);
    }
    ret_outcome->was_run = true;
}

void outcome_fini(struct outcome *o)
{
    for (int i = 0; i < o->n_captured; i++) {
        free(o->captured[i].data);
    }
}
