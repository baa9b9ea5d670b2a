/* client/autograd/public_random.c - dropout, and random numbers in place: functions of the global index of an element.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/random.h>

#include <math.h>

#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "autograd/sharded.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "dtensor/factory.h"

static int check_float(const char *what, const mesh_dtensor *x)
{
    return dtype_kind(x->dtype) == DTYPE_FLOAT
               ? 0
               : err_set(MESH_EUNSUPPORTED, "%s: random numbers are of a floating dtype, not %s", what,
                         dtype_name(x->dtype));
}

/* From global facts. */
static int check_tensor(const char *what, const mesh_dtensor *x)
{
    char text[DTENSOR_TEXT_BYTES];
    for (int i = 0; i < x->placements.n; i++) {
        if (x->placements.at[i].kind == MESH_IS_PARTIAL) {
            return err_set(MESH_EPLACEMENT,
                           "%s: %s is pending on mesh dim %d, and a part has no draw of its own: redistribute it first",
                           what, dtensor_text(x, text, sizeof text), i);
        }
    }
    return 0;
}

/* Drops with chance value[0] what draws under the key in index[]. */
static struct fill mask_of(const struct op_attr *attr)
{
    double p = attr->value[0];
    return (struct fill){ .kind = FILL_MASK,
                          .a = p,
                          .b = p < 1 ? 1 / (1 - p) : 0,
                          .key = { (uint64_t)attr->index[0], (uint64_t)attr->index[1] } };
}

/* x where the mask is not 0, scaled; a pending x in parts.  NULL: error set. */
static mesh_dtensor *masked(mesh_dtensor *x, const struct op_attr *attr)
{
    struct fill mask = mask_of(attr);
    mesh_placements p = x->placements;
    for (int d = 0; d < p.n; d++) {
        p.at[d] = p.at[d].kind == MESH_IS_PARTIAL ? mesh_replicate() : p.at[d];
    }
    return grad_op2(OP_mul, x, dtensor_filled(x->shape, x->dtype, x->mesh, &p, &mask), NULL);
}

/* The mask is drawn again, not kept. */
static void dropout_back(struct grad_call *c)
{
    c->dx[0] = masked(c->dy, &c->node->attr);
}
static const struct gradient g_dropout = { dropout_back, { 0 } };

/* In f32 where x is of 16 bits, so that 1 / (1 - p) is not rounded to them. */
static mesh_dtensor *dropout(mesh_dtensor *x, const struct op_attr *attr)
{
    bool is_half = x->dtype == MESH_F16 || x->dtype == MESH_BF16;
    mesh_dtensor *wide = is_half ? cast_to(x, MESH_F32) : x;
    struct tape_entry e = { .name = "dropout", .gradient = &g_dropout, .attr = attr, .n_in = 1, .in = &wide };
    mesh_dtensor *y = wide == NULL ? NULL : recorded(&e, masked(wide, attr));
    return y == NULL ? NULL : cast_to(y, x->dtype);
}

mesh_dtensor *mesh_dropout_opt(mesh_dtensor *x, double p, const mesh_dropout_options *o)
{
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    int r = check_float("dropout", x);
    r = r < 0 ? r : check_tensor("dropout", x);
    if (r == 0 && !(p >= 0 && p <= 1)) {
        r = err_set(MESH_EINVAL, "dropout: probability %g is not in [0, 1]", p);
    }
    if (r < 0) {
        return scope_fail(r);
    }
    struct rng_key key = dtensor_next_key(x->mesh->session, o != NULL ? o->seed : 0);
    struct op_attr attr = { .value = { p }, .index = { (int64_t)key.seed, (int64_t)key.call } };
    mesh_dtensor *y = dropout(x, &attr);
    return public_result(mark, y != NULL ? y : scope_fail(err_status()));
}

static int check_in_place(const char *what, const mesh_dtensor *x)
{
    int r = check_tensor(what, x);
    if (r == 0 && tape_is_on() && (x->requires_grad || x->node != NULL)) {
        return err_set(MESH_ESTATE,
                       "%s: the tensor requires a gradient, which knows nothing of values written over it: "
                       "call mesh_grad_enable(false) around it",
                       what);
    }
    return r;
}

/* Of f: a range or, of normal numbers, a mean and a deviation. */
static int check_real(const char *what, const mesh_dtensor *x, const struct fill *f)
{
    int r = check_float(what, x);
    double least = f->kind == FILL_UNIFORM ? f->a : 0;
    return r < 0 || (isfinite(f->a) && isfinite(f->b) && f->b >= least)
               ? r
               : err_set(MESH_EINVAL, "%s: %g and %g: finite numbers, a range upwards, a deviation of at least 0", what,
                         f->a, f->b);
}

/* r: of the check of f. */
static mesh_dtensor *draw_into(const char *what, int r, mesh_dtensor *x, struct fill *f, uint64_t seed)
{
    r = r < 0 ? r : check_in_place(what, x);
    if (r == 0) {
        f->key = dtensor_next_key(x->mesh->session, seed);
    }
    if (r == 0 && x->mesh->is_member) {
        r = tensor_settle(x->local);
        r = r < 0 ? r : dtensor_fill(x->local, x->shape, x->mesh, &x->placements, f);
    }
    return r < 0 ? scope_fail(r) : x;
}

mesh_dtensor *mesh_uniform_(mesh_dtensor *x, double low, double high, uint64_t seed)
{
    struct fill f = { .kind = FILL_UNIFORM, .a = low, .b = high };
    return public_enter(__func__, &x, 1) ? draw_into("uniform_", check_real("uniform_", x, &f), x, &f, seed) : NULL;
}

mesh_dtensor *mesh_normal_(mesh_dtensor *x, double mean, double deviation, uint64_t seed)
{
    struct fill f = { .kind = FILL_NORMAL, .a = mean, .b = deviation };
    return public_enter(__func__, &x, 1) ? draw_into("normal_", check_real("normal_", x, &f), x, &f, seed) : NULL;
}

mesh_dtensor *mesh_randint_(mesh_dtensor *x, int64_t low, int64_t high, uint64_t seed)
{
    struct fill f = { .kind = FILL_WHOLE, .a = (double)low, .b = (double)high };
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    return draw_into("randint_", factory_check_whole("randint_", x->dtype, low, high), x, &f, seed);
}
