/* tests/truth/programs.c - a sharded program computes what one process computes: random programs, forward and backward.
 *
 * Each seed is a program (programs.h).  It runs on one rank, then on 1 to 8 ranks, on meshes and in layouts drawn at
 * random; every value and every leaf's gradient must be the same: bits where all arithmetic was exact, within a
 * tolerance elsewhere.  What is refused on one rank must be refused on all, with the same status.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "truth/programs.h"

struct outcome {
    struct record value[MAX_VALUES], grad[MAX_LEAVES];
    int n_values, n_leaves;
    mesh_status backward;
};

#define MAX_COUNT 4000 /* elements of a value */
#define TOO_ROUGH 0.2

/* --- one step ----------------------------------------------------------------------------------------------------- */

static bool takes(const struct op *op, const struct value *v)
{
    if (!v->usable) {
        return false;
    }
    mesh_dtype t = mesh_dtype_of(v->x);
    return mesh_shape_of(v->x).ndim >= op->min_ndim && mesh_shape_of(v->x).ndim <= 5 &&
           !((op->flags & FLOATS) && !is_floating(t)) && !((op->flags & WHOLE) && is_floating(t)) &&
           !((op->flags & EXACT) && v->tolerance > 0);
}

static int bits_after(const struct program *p, enum effect e)
{
    static const int more[] = { [MOVES] = 0, [ADDS] = 1, [MULTIPLIES] = 0, [SUMS] = 10, [PRODUCTS] = 12, [ROUGH] = 99 };
    int bits = p->bits < 6 ? 6 : p->bits;
    return (e == MULTIPLIES || e == PRODUCTS ? 2 * bits : bits) + more[e];
}

static void judge(struct program *p, struct value *v, enum effect e, bool from_floats)
{
    mesh_dtype t = mesh_dtype_of(v->x);
    v->bits = from_floats && is_floating(t) ? bits_after(p, e) : is_floating(t) ? 99 : 6;
    v->tolerance = p->tolerance;
    if (is_floating(t) && v->bits > mantissa(t)) {
        v->tolerance = larger(v->tolerance * (e == MOVES ? 1 : 8), roughness(t));
    }
    if (!is_floating(t)) {
        v->tolerance = 0;
    }
    v->usable = v->tolerance < TOO_ROUGH && count_of(mesh_shape_of(v->x)) <= MAX_COUNT;
}

static void tame(struct program *p, struct value *v, struct record *r)
{
    if (p->is_reference) {
        keep_record(r, v->x);
        int k = 0;
        for (double most = r->largest; r->is_finite && most > 8; k++) {
            most /= 2;
        }
        r->halvings = k;
    }
    if (r->halvings > 0) {
        v->x = mesh_mul_scalar(v->x, ldexp(1, -r->halvings));
        v->bits += r->halvings;
        if (v->bits > mantissa(mesh_dtype_of(v->x))) {
            v->tolerance = larger(v->tolerance, roughness(mesh_dtype_of(v->x)));
        }
    }
    if (p->is_reference && r->halvings > 0) {
        int k = r->halvings;
        keep_record(r, v->x);
        r->halvings = k;
    }
    v->usable &= r->is_finite && v->tolerance < TOO_ROUGH;
}

static const struct op *choose(struct program *p, const struct value **from)
{
    for (int i = 0; i < 300; i++) {
        int k = (int)below(p, n_computing_ops + n_moving_ops);
        const struct op *op = k < n_computing_ops ? &computing_ops[k] : &moving_ops[k - n_computing_ops];
        *from = &p->value[chance(p, 50) ? p->n_values - 1 : below(p, p->n_values)];
        if (takes(op, *from)) {
            return op;
        }
    }
    return NULL;
}

static void show(const struct program *p, const struct value *v, mesh_dtensor *a)
{
    char text[100] = "refused";
    if (v->x != NULL) {
        mesh_placements_text(mesh_placements_of(v->x), text, sizeof text);
    }
    printf("  %2d %-14s", p->n_values, v->what);
    for (int k = 0; k < 2; k++) {
        mesh_dtensor *x = k == 0 ? a : v->x;
        printf("%s", k == 0 ? " from" : " to");
        for (int i = 0; x != NULL && i < mesh_shape_of(x).ndim; i++) {
            printf("%c%d", i == 0 ? ' ' : 'x', (int)mesh_shape_of(x).dim[i]);
        }
        printf(" %s", x ? mesh_placements_text(mesh_placements_of(x), text, sizeof text) : "nothing");
    }
    printf("  dtype %d, tolerance %g, bits %d, %s\n", v->x ? (int)mesh_dtype_of(v->x) : 0, v->tolerance, v->bits,
           v->x                      ? ""
           : mesh_scope_status(NULL) ? mesh_last_error()->message
                                     : "no such arguments");
    fflush(stdout);
}

static struct value apply(struct program *p, const struct op *op, const struct value *from)
{
    struct value v = { 0 };
    p->tolerance = from->tolerance;
    p->bits = from->bits;
    p->only_exact = op->flags & EXACT;
    bool floats = is_floating(mesh_dtype_of(from->x));
    v.x = op->unary ? op->unary(from->x) : op->binary ? op->binary(from->x, peer(p, from->x)) : op->of(p, from->x);
    snprintf(v.what, sizeof v.what, "%s", op->name);
    if (v.x != NULL) {
        judge(p, &v, op->effect, floats);
    }
    return v;
}

static int end_step(struct program *p, struct value v, mesh_dtensor *a, mesh_scope *scope)
{
    struct record *r = &p->outcome->value[p->n_values];
    mesh_status status = mesh_scope_status(NULL);
    if (is_verbose && mesh_rank() == 0) {
        show(p, &v, a);
    }
    if (!p->is_reference && (status != r->status || (v.x == NULL) != (r->data == NULL))) {
        return complain(p, "step %d, %s: %s where one rank has %s: %s", p->n_values, v.what, mesh_status_name(status),
                        mesh_status_name(r->status), mesh_last_error()->message);
    }
    if (v.x != NULL) {
        tame(p, &v, r);
        mesh_shape s = mesh_shape_of(v.x);
        if (s.ndim != r->shape.ndim || memcmp(s.dim, r->shape.dim, sizeof s.dim[0] * (size_t)s.ndim) != 0 ||
            mesh_dtype_of(v.x) != r->dtype) {
            return complain(p, "step %d, %s: another shape or dtype", p->n_values, v.what);
        }
        mesh_keep(v.x);
    }
    if (p->is_reference) {
        r->status = status;
    }
    mesh_scope_end(scope);
    p->value[p->n_values++] = v;
    return 0;
}

static int begin(struct program *p)
{
    static const mesh_dtype common[] = {
        MESH_F64, MESH_F64, MESH_F64, MESH_F64, MESH_F64, MESH_F64, MESH_F32, MESH_I64
    };
    static const mesh_dtype any[] = { MESH_F64,  MESH_F64, MESH_F32, MESH_F32, MESH_F16,
                                      MESH_BF16, MESH_I32, MESH_I8,  MESH_BOOL };
    mesh_scope *scope = mesh_scope_begin();
    mesh_dtype t = p->wants_mixed ? any[below(p, ARRAY_SIZE(any))] : common[below(p, ARRAY_SIZE(common))];
    struct value v = { .bits = 6, .usable = true, .what = "leaf" };
    mesh_device_mesh *m = p->mesh[below(p, p->n_meshes)];
    v.x = leaf(p, m, any_shape(p, 4), t);
    return end_step(p, v, NULL, scope);
}

static int step(struct program *p)
{
    const struct value *from = NULL;
    const struct op *op = choose(p, &from);
    if (op == NULL) {
        return 0;
    }
    mesh_scope *scope = mesh_scope_begin();
    return end_step(p, apply(p, op, from), from->x, scope);
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

static mesh_dtensor *loss_of(struct program *p)
{
    mesh_dtensor *loss = mesh_zeros(MESH_SCALAR_SHAPE, p->mesh[0],
                                    any_layout(p, p->mesh[0], MESH_SCALAR_SHAPE, MESH_F64, false), .dtype = MESH_F64);
    for (int i = 0; i < p->n_values; i++) {
        const struct value *v = &p->value[i];
        if (v->usable && is_floating(mesh_dtype_of(v->x))) {
            mesh_dtensor *x =
                mesh_redistribute_to(v->x, p->mesh[0], any_layout(p, p->mesh[0], mesh_shape_of(v->x), MESH_F64, true));
            mesh_dtensor *w = leaf(p, p->mesh[0], mesh_shape_of(x), MESH_F64);
            loss = mesh_add(loss, mesh_sum(mesh_mul(mesh_cast(x, MESH_F64), w)));
        }
    }
    return loss;
}

static int go_back(struct program *p)
{
    begin_step(p, 900);
    mesh_scope *scope = mesh_scope_begin();
    mesh_dtensor *loss = loss_of(p);
    if (chance(p, 20)) {
        (void)mesh_backward_with(loss, .retain_graph = true);
    }
    (void)mesh_backward(loss);
    mesh_status status = mesh_scope_status(NULL);
    if (p->is_reference) {
        p->outcome->backward = status;
    } else if (p->outcome->backward != status) {
        return complain(p, "backward: %s where one rank has %s: %s", mesh_status_name(status),
                        mesh_status_name(p->outcome->backward), mesh_last_error()->message);
    }
    mesh_scope_end(scope);
    return 0;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static int compare_values(struct program *p)
{
    double got = 0;
    for (int i = 0; i < p->n_values; i++) {
        const struct record *r = &p->outcome->value[i];
        mesh_scope *scope = mesh_scope_begin();
        int64_t at =
            p->value[i].x == NULL ? -1 : differs(r, p->value[i].x, 1, p->value[i].tolerance * (1 + r->largest), &got);
        if (at >= 0 || mesh_scope_status(NULL) < 0) {
            return complain(p, "step %d, %s: element %lld is %.9g (tolerance %g); %s", i, p->value[i].what,
                            (long long)at, got, p->value[i].tolerance,
                            mesh_scope_status(NULL) < 0 ? mesh_last_error()->message : "");
        }
        mesh_scope_end(scope);
    }
    return 0;
}

static void keep_gradients(struct program *p)
{
    p->outcome->n_leaves = p->n_leaves;
    for (int i = 0; i < p->n_leaves; i++) {
        mesh_dtensor *g = p->leaf[i].scale > 0 ? mesh_grad(p->leaf[i].x) : NULL;
        if (g != NULL) {
            keep_record(&p->outcome->grad[i], g);
        }
    }
}

static int compare_gradients(struct program *p)
{
    double rough = 1e-9, largest = 0, got = 0;
    for (int i = 0; i < p->n_values; i++) {
        rough = larger(rough,
                       p->value[i].x ? larger(p->value[i].tolerance, roughness(mesh_dtype_of(p->value[i].x))) * 50 : 0);
    }
    for (int i = 0; i < p->n_leaves; i++) {
        largest = larger(largest, p->outcome->grad[i].largest);
        if (p->outcome->grad[i].data != NULL && !p->outcome->grad[i].is_finite) {
            return 0;
        }
    }
    for (int i = 0; i < p->n_leaves; i++) {
        const struct record *r = &p->outcome->grad[i];
        mesh_scope *scope = mesh_scope_begin();
        mesh_dtensor *g = p->leaf[i].scale > 0 ? mesh_grad(p->leaf[i].x) : NULL;
        if ((g == NULL) != (r->data == NULL)) {
            return complain(p, "leaf %d: %s gradient", i, g ? "a" : "no");
        }
        int64_t at = g == NULL ? -1 : differs(r, g, p->leaf[i].scale, rough * (1 + largest), &got);
        if (at >= 0 || mesh_scope_status(NULL) < 0) {
            return complain(p, "leaf %d: element %lld of its gradient is %.9g (allowed %g)", i, (long long)at, got,
                            rough * (1 + largest));
        }
        mesh_scope_end(scope);
    }
    return 0;
}

/* --- whole programs ----------------------------------------------------------------------------------------------- */

static int run_steps(struct program *p)
{
    begin_step(p, 0);
    p->wants_mixed = chance(p, 30);
    int n_begin = 1 + (int)below(p, 3), n_steps = 1 + (int)below(p, MAX_STEPS);
    make_meshes(p);
    for (int i = 0; i < n_begin + n_steps; i++) {
        begin_step(p, i + 1);
        if ((i < n_begin ? begin(p) : step(p)) < 0) {
            return -1;
        }
    }
    return 0;
}

int program_run(struct program *p)
{
    if (run_steps(p) < 0) {
        return -1;
    }
    bool late = p->seed % 2;
    if (!p->is_reference && !late && compare_values(p) < 0) {
        return -1;
    }
    if (go_back(p) < 0) {
        return -1;
    }
    if (p->is_reference) {
        keep_gradients(p);
        return 0;
    }
    return late && compare_values(p) < 0 ? -1 : compare_gradients(p);
}

struct outcome *outcome_new(void)
{
    return calloc(1, sizeof(struct outcome));
}

void outcome_free(struct outcome *o)
{
    for (int i = 0; i < MAX_VALUES; i++) {
        free(o->value[i].data);
    }
    for (int i = 0; i < MAX_LEAVES; i++) {
        free(o->grad[i].data);
    }
    free(o);
}
