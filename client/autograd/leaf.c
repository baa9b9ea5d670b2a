/* client/autograd/leaf.c - sums the contributions to a leaf's gradient and lays the sum out like the leaf.
 *
 * A leaf made by mesh_from_local() has grad_placements; the local part of its gradient is that of the local value, of
 * which the logical one is a function:
 *     Partial(sum)       x = sum of parts         d part = dx
 *     Partial(avg)       x = sum of parts / n     d part = dx / n
 *     Partial(max, min)  x = extreme of parts     d part = dx, shared equally by the parts that attain it
 * In the last case a layout that was asked for is not heeded: the shares belong to the parts, where they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/leaf.h"

#include <string.h>

#include "autograd/grads.h"
#include "autograd/hooks.h"
#include "base/error.h"

int gradient_add(mesh_dtensor **sum, mesh_dtensor *dx)
{
    if (*sum != NULL) {
        struct op_attr attr = { .value = { 1.0 } };
        dx = grad_op2(OP_add, *sum, dx, &attr);
        if (dx == NULL) {
            return err_status();
        }
        dtensor_unref(*sum);
    }
    *sum = dtensor_ref(dx);
    return 0;
}

static bool is_pending(const mesh_dtensor *x, mesh_reduce_op op, int d)
{
    return x->placements.at[d].kind == MESH_IS_PARTIAL && x->placements.at[d].op == op;
}

static bool has_extreme(const mesh_dtensor *leaf)
{
    for (int d = 0; d < leaf->placements.n; d++) {
        if (is_pending(leaf, MESH_MAX, d) || is_pending(leaf, MESH_MIN, d)) {
            return true;
        }
    }
    return false;
}

static mesh_placements layout_of_gradient(const mesh_dtensor *leaf)
{
    if (leaf->grad_placements.n > 0 && !has_extreme(leaf)) {
        return leaf->grad_placements;
    }
    mesh_placements p = leaf->placements;
    for (int d = 0; d < p.n; d++) {
        if (p.at[d].kind == MESH_IS_PARTIAL) {
            p.at[d] = mesh_replicate();
        }
    }
    return p;
}

static mesh_dtensor *copy(mesh_dtensor *x)
{
    struct mesh_tensor *local = tensor_copy(x->local);
    return local == NULL ? NULL : dtensor_new(x->mesh, x->shape, x->dtype, &x->placements, local);
}

/* The factor of the means that a local part went into. */
static double share_of_mean(const mesh_dtensor *leaf)
{
    double n = 1;
    for (int d = 0; d < leaf->placements.n; d++) {
        n *= is_pending(leaf, MESH_AVG, d) ? leaf->mesh->size[d] : 1;
    }
    return 1 / n;
}

/* [i] = whether this rank's part attains the extreme (a NaN attains a NaN), as 1 or 0. */
static struct mesh_tensor *attains(const struct mesh_tensor *part, const struct mesh_tensor *extreme)
{
    struct mesh_tensor *mask = tensor_new(part->shape, part->dtype);
    if (mask == NULL) {
        return NULL;
    }
    for (int64_t i = 0; i < part->n; i++) {
        if (part->dtype == MESH_F64) {
            double a = ((const double *)part->data)[i], b = ((const double *)extreme->data)[i];
            ((double *)mask->data)[i] = a == b || (a != a && b != b);
        } else {
            float a = ((const float *)part->data)[i], b = ((const float *)extreme->data)[i];
            ((float *)mask->data)[i] = a == b || (a != a && b != b);
        }
    }
    return mask;
}

/* g times the share of this rank's part: 1 / (how many parts attain the extreme) for those that do, else 0.  The result
 * is called replicated, as the caller asked, though its local parts differ: each is the gradient of its own part. */
static mesh_dtensor *share_of_extreme(mesh_dtensor *leaf, mesh_dtensor *g)
{
    mesh_placements whole = layout_of_gradient(leaf), counted = leaf->placements;
    mesh_dtensor *extreme = dtensor_redistribute(leaf, &whole);
    struct mesh_tensor *mask = extreme == NULL ? NULL : attains(leaf->local, extreme->local);
    if (mask == NULL) {
        return NULL;
    }
    for (int d = 0; d < counted.n; d++) {
        counted.at[d] = counted.at[d].kind == MESH_IS_PARTIAL ? mesh_partial(MESH_SUM) : counted.at[d];
    }
    mesh_dtensor *mine = dtensor_new(leaf->mesh, leaf->shape, leaf->dtype, &whole, tensor_ref(mask));
    mesh_dtensor *parts = dtensor_new(leaf->mesh, leaf->shape, leaf->dtype, &counted, mask);
    mesh_dtensor *ties = parts == NULL ? NULL : dtensor_redistribute(parts, &whole);
    return grad_op2(OP_div, grad_op2(OP_mul, g, mine, NULL), ties, NULL);
}

/* From the gradient of the logical value to that of the local one; both the same but for pending means and extremes. */
static mesh_dtensor *of_local_value(mesh_dtensor *leaf, mesh_dtensor *g)
{
    if (leaf->grad_placements.n == 0) {
        return g;
    }
    if (has_extreme(leaf)) {
        return share_of_extreme(leaf, g);
    }
    double factor = share_of_mean(leaf);
    return factor < 1 ? grad_scale(g, factor) : g;
}

int leaf_finish(struct leaf_sum *s, const char *name)
{
    mesh_placements p = layout_of_gradient(s->leaf);
    mesh_dtensor *g = dtensor_redistribute(s->sum, &p);
    g = g == NULL ? NULL : of_local_value(s->leaf, g);
    if (g != NULL && s->leaf->hooks != NULL) {
        mesh_dtensor *hooked = hooks_run(s->leaf->hooks, name, g);
        g = hooked == NULL ? NULL : dtensor_redistribute(hooked, &p);
    }
    if (g != NULL && s->is_shared && g->local->storage == s->sum->local->storage) {
        g = copy(g);
    }
    if (g == NULL) {
        return err_status();
    }
    dtensor_unref(s->sum);
    s->sum = NULL;
    s->total = s->leaf->grad != NULL ? dtensor_ref(s->leaf->grad) : NULL;
    return gradient_add(&s->total, g);
}

void leaf_commit(struct leaf_sum *s)
{
    dtensor_unref(s->leaf->grad);
    s->leaf->grad = s->total;
    s->total = NULL;
}

void leaf_fini(struct leaf_sum *s)
{
    dtensor_unref(s->leaf);
    dtensor_unref(s->sum);
    dtensor_unref(s->total);
}
