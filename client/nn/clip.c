/* client/nn/clip.c - the norm of all gradients of a module, and their shrinking to a limit.
 *
 * A rank adds up the squares of the elements that it is the first to hold (coordinate 0 on every mesh dim that
 * replicates), so that one sum over the mesh counts each logical element once, whatever the layout.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "autograd/grads.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "nn/module.h"

/* A parameter whose gradient was asked for in a pending layout gets it complete, once. */
static int complete(mesh_dtensor *value)
{
    if (mesh_placements_equal(value->grad->placements, value->placements)) {
        return tensor_settle(value->grad->local);
    }
    mesh_dtensor *g = dtensor_redistribute(value->grad, &value->placements);
    if (g == NULL) {
        return err_status();
    }
    dtensor_unref(value->grad);
    value->grad = dtensor_ref(g);
    object_release(&g->object);
    return tensor_settle(value->grad->local);
}

static bool is_first_holder(const mesh_dtensor *x)
{
    bool is_first = x->mesh->is_member;
    for (int d = 0; d < x->placements.n; d++) {
        is_first = is_first && (placement_is_shard(x->placements.at[d]) || x->mesh->coordinate[d] == 0);
    }
    return is_first;
}

static double element(const struct mesh_tensor *t, int64_t i)
{
    switch (t->dtype) {
    case MESH_F64:
        return ((const double *)t->data)[i];
    case MESH_F16:
        return (double)float_from_f16(((const uint16_t *)t->data)[i]);
    case MESH_BF16:
        return (double)float_from_bf16(((const uint16_t *)t->data)[i]);
    default: /* only floats have gradients */
        return (double)((const float *)t->data)[i];
    }
}

static double sum_of_squares(const mesh_dtensor *g)
{
    double sum = 0;
    for (int64_t i = 0; is_first_holder(g) && i < g->local->n; i++) {
        double v = element(g->local, i);
        sum += v * v;
    }
    return sum;
}

/* A tensor with several names counts once. */
static bool has_gradient(mesh_module *root, const struct parameter *p)
{
    return p->value != NULL && p->value->grad != NULL && !tied_is_repeated(root, p);
}

/* *inout_mesh NULL: none seen yet. */
static int add_squares(struct parameter *p, mesh_device_mesh **inout_mesh, double *inout_sum)
{
    mesh_dtensor *value = p->value;
    if (*inout_mesh != NULL && *inout_mesh != value->mesh) {
        return err_set(MESH_EUNSUPPORTED,
                       "parameter \"%s\" is on another mesh than those before it: clip each part of the module that is "
                       "on one mesh",
                       p->name);
    }
    *inout_mesh = value->mesh;
    int r = complete(value);
    *inout_sum += r == 0 ? sum_of_squares(value->grad) : 0;
    return r;
}

/* The sum over all ranks of the mesh: what each has is its share of a number that is pending on every mesh dim. */
static int sum_over_mesh(mesh_device_mesh *mesh, double mine, double *ret_sum)
{
    mesh_placements pending = { .n = mesh->ndim };
    mesh_shape scalar = { .ndim = 0 };
    struct mesh_tensor *local = tensor_new(mesh->is_member ? scalar : MESH_SHAPE(0), MESH_F64);
    for (int d = 0; d < pending.n; d++) {
        pending.at[d] = mesh_partial(MESH_SUM);
    }
    if (local != NULL && mesh->is_member) {
        ((double *)local->data)[0] = mine;
    }
    mesh_dtensor *x = local == NULL ? NULL : dtensor_new(mesh, scalar, MESH_F64, &pending, local);
    struct mesh_tensor *sum = x == NULL ? NULL : dtensor_full(x);
    if (sum == NULL) {
        return err_status();
    }
    *ret_sum = mesh->is_member ? ((const double *)sum->data)[0] : (double)NAN;
    tensor_unref(sum);
    return 0;
}

static int measure(mesh_module *m, double *ret_norm)
{
    mesh_device_mesh *mesh = NULL;
    double mine = 0, sum = 0;
    int r = 0;
    for (mesh_module *at = m; r == 0 && at != NULL; at = module_following(m, at)) {
        for (size_t i = 0; r == 0 && i < at->parameters.n; i++) {
            struct parameter *p = &at->parameters.at[i];
            r = has_gradient(m, p) ? add_squares(p, &mesh, &mine) : 0;
        }
    }
    r = r < 0 || mesh == NULL ? r : sum_over_mesh(mesh, mine, &sum);
    if (r == 0) {
        *ret_norm = sqrt(sum);
    }
    return r;
}

static int shrink(mesh_module *m, double factor)
{
    for (mesh_module *at = m; at != NULL; at = module_following(m, at)) {
        for (size_t i = 0; i < at->parameters.n; i++) {
            mesh_dtensor *value = at->parameters.at[i].value;
            if (!has_gradient(m, &at->parameters.at[i])) {
                continue;
            }
            mesh_dtensor *g = grad_scale(value->grad, factor);
            if (g == NULL) {
                return err_status();
            }
            dtensor_unref(value->grad);
            value->grad = dtensor_ref(g);
            object_release(&g->object);
        }
    }
    return 0;
}

MESH_API double mesh_clip_grad_norm(mesh_module *m, double max_norm)
{
    double norm = 0;
    if (!scope_enter(__func__)) {
        return (double)NAN;
    }
    int r = 0;
    if (m == NULL) {
        r = err_set(MESH_EINVAL, "the module is NULL");
    } else if (!(max_norm >= 0)) {
        r = err_set(MESH_EINVAL, "a largest norm of %g; it must not be negative", max_norm);
    }
    r = r < 0 ? r : measure(m, &norm);
    if (r == 0 && isfinite(norm) && norm > max_norm) {
        r = shrink(m, max_norm / norm);
    }
    if (r < 0) {
        scope_fail(r);
        return (double)NAN;
    }
    return norm;
}
