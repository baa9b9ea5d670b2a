/* client/autograd/public_reduce.c - the reductions of mesh/ops.h and mesh/ops_reduce.h.
 *
 * One kernel does the work where the dims that go are whole on every rank, or where the results of parts complete each
 * other; else the pieces of sharded.h do.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_reduce.h>

#include <math.h>

#include "autograd/public_call.h"
#include "autograd/reduce_attr.h"
#include "autograd/sharded.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "tensor/shape.h"

int reduce_attr(const char *what, mesh_shape shape, const mesh_reduce_options *o, struct op_attr *ret_attr,
                double *ret_count)
{
    struct op_attr attr = { .keepdim = o != NULL && o->keepdim };
    int n = o != NULL ? o->dims.ndim : 0, r = 0;
    if (n < 0 || n > MESH_MAX_NDIM) {
        return err_set(MESH_ESHAPE, "%s: a list of %d dims; at most %d", what, n, MESH_MAX_NDIM);
    }
    for (int i = 0; r == 0 && i < n; i++) {
        int d = 0;
        r = shape_dim(shape, o->dims.dim[i], what, &d);
        if (r == 0 && (attr.dims & (1U << d)) != 0) {
            r = err_set(MESH_EINVAL, "%s: dim %d is named twice", what, d);
        }
        attr.dims |= r == 0 ? 1U << d : 0;
    }
    if (r < 0) {
        return r;
    }
    attr.dims = n == 0 ? (1U << shape.ndim) - 1 : attr.dims;
    *ret_count = 1;
    for (int d = 0; d < shape.ndim; d++) {
        *ret_count *= (attr.dims & (1U << d)) != 0 ? (double)shape.dim[d] : 1;
    }
    *ret_attr = attr;
    return 0;
}

static mesh_dtensor *or_fail(mesh_dtensor *y)
{
    return y != NULL ? y : scope_fail(err_status());
}

static bool is_float(const mesh_dtensor *x)
{
    return dtype_kind(x->dtype) == DTYPE_FLOAT;
}

/* Put together from shards, and recorded as one operator. */
static mesh_dtensor *from_shards(const char *name, const struct gradient *g, const struct op_attr *attr,
                                 mesh_dtensor *x, mesh_dtensor *y)
{
    return or_fail(recorded(&(struct tape_entry){ .name = name, .gradient = g, .attr = attr, .n_in = 1, .in = &x }, y));
}

/* --- one operator, whatever the layout ---------------------------------------------------------------------------- */

static mesh_dtensor *reduce(enum op_id id, mesh_dtensor *x, const mesh_reduce_options *o)
{
    struct op_attr attr;
    double count;
    int r = reduce_attr(op_table[id].name, x->shape, o, &attr, &count);
    if (r < 0) {
        return scope_fail(r);
    }
    attr.value[0] = id == OP_mean ? 1 / count : 0;
    if ((id == OP_amax || id == OP_amin) && tape_wants(&x, 1)) {
        x = settled(x); /* the gradient looks for the very bits of the result */
        if (x == NULL) {
            return or_fail(NULL);
        }
    }
    return public_apply(id, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &attr);
}

#define REDUCTION(name)                                                                                                \
    MESH_API mesh_dtensor *mesh_##name##_opt(mesh_dtensor *x, const mesh_reduce_options *o)                            \
    {                                                                                                                  \
        const struct object *mark = scope_mark();                                                                      \
        return public_enter(__func__, &x, 1) ? public_result(mark, reduce(OP_##name, x, o)) : NULL;                    \
    }
REDUCTION(sum)
REDUCTION(mean)
REDUCTION(amax)
REDUCTION(amin)
REDUCTION(prod)
REDUCTION(all)
REDUCTION(any)

/* --- by shards where the dims that go are sharded ----------------------------------------------------------------- */

static mesh_dtensor *var(mesh_dtensor *x, double correction, const mesh_reduce_options *o)
{
    struct op_attr attr;
    double n;
    int r = reduce_attr("var", x->shape, o, &attr, &n);
    if (r < 0) {
        return scope_fail(r);
    }
    attr.value[0] = 1 / n;
    attr.value[1] = 1 / fmax(n - correction, 0); /* of too few elements: 0 / 0 */
    if (!is_sharded_along(x, attr.dims) || !is_float(x)) {
        return public_apply(OP_var, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &attr);
    }
    x = settled(x);
    return from_shards("var", &g_var, &attr, x, x == NULL ? NULL : sharded_var(x, &attr));
}

MESH_API mesh_dtensor *mesh_var_opt(mesh_dtensor *x, double correction, const mesh_reduce_options *o)
{
    const struct object *mark = scope_mark();
    return public_enter(__func__, &x, 1) ? public_result(mark, var(x, correction, o)) : NULL;
}

MESH_API mesh_dtensor *mesh_std_opt(mesh_dtensor *x, double correction, const mesh_reduce_options *o)
{
    const struct object *mark = scope_mark();
    mesh_dtensor *in[OP_MAX_INPUTS] = { public_enter(__func__, &x, 1) ? var(x, correction, o) : NULL };
    return in[0] == NULL ? NULL : public_result(mark, public_apply(OP_sqrt, in, NULL));
}

static mesh_dtensor *logsumexp(mesh_dtensor *x, const mesh_reduce_options *o)
{
    struct op_attr attr;
    double n;
    int r = reduce_attr("logsumexp", x->shape, o, &attr, &n);
    if (r < 0) {
        return scope_fail(r);
    }
    if (!is_sharded_along(x, attr.dims) || !is_float(x) || n == 0) {
        return public_apply(OP_logsumexp, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &attr);
    }
    x = settled(x);
    return from_shards("logsumexp", &g_logsumexp, &attr, x, x == NULL ? NULL : sharded_logsumexp(x, &attr));
}

MESH_API mesh_dtensor *mesh_logsumexp_opt(mesh_dtensor *x, const mesh_reduce_options *o)
{
    const struct object *mark = scope_mark();
    return public_enter(__func__, &x, 1) ? public_result(mark, logsumexp(x, o)) : NULL;
}

static mesh_dtensor *index_of_extreme(enum op_id id, mesh_dtensor *x, const mesh_reduce_options *o)
{
    struct op_attr attr;
    double n;
    int r = reduce_attr(op_table[id].name, x->shape, o, &attr, &n);
    if (r < 0) {
        return scope_fail(r);
    }
    if (!is_sharded_along(x, attr.dims) || n == 0) {
        return public_apply(id, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &attr);
    }
    x = completed(x);
    return or_fail(x == NULL ? NULL : sharded_index(id, x, &attr));
}

MESH_API mesh_dtensor *mesh_argmax_opt(mesh_dtensor *x, const mesh_reduce_options *o)
{
    const struct object *mark = scope_mark();
    return public_enter(__func__, &x, 1) ? public_result(mark, index_of_extreme(OP_argmax, x, o)) : NULL;
}

MESH_API mesh_dtensor *mesh_argmin_opt(mesh_dtensor *x, const mesh_reduce_options *o)
{
    const struct object *mark = scope_mark();
    return public_enter(__func__, &x, 1) ? public_result(mark, index_of_extreme(OP_argmin, x, o)) : NULL;
}

/* --- norms -------------------------------------------------------------------------------------------------------- */

static mesh_dtensor *norm(mesh_dtensor *x, double p, const mesh_reduce_options *o)
{
    struct op_attr attr;
    double n;
    int r = reduce_attr("norm", x->shape, o, &attr, &n);
    if (r == 0 && isnan(p)) {
        r = err_set(MESH_EINVAL, "norm: p is NaN");
    }
    if (r == 0 && !is_float(x)) {
        r = err_set(MESH_EUNSUPPORTED, "norm: %s is not a floating dtype", dtype_name(x->dtype));
    }
    if (r < 0) {
        return scope_fail(r);
    }
    if (isinf(p)) {
        mesh_dtensor *in[OP_MAX_INPUTS] = { x };
        r = ag_apply(OP_abs, in, NULL, &x);
        return r < 0 ? scope_fail(r) : reduce(p > 0 ? OP_amax : OP_amin, x, o);
    }
    attr.value[0] = p;
    x = settled(x); /* once, for the sum and for its gradient */
    return from_shards("norm", &g_norm, &attr, x, x == NULL ? NULL : norm_of(x, &attr));
}

MESH_API mesh_dtensor *mesh_norm_opt(mesh_dtensor *x, double p, const mesh_reduce_options *o)
{
    const struct object *mark = scope_mark();
    return public_enter(__func__, &x, 1) ? public_result(mark, norm(x, p, o)) : NULL;
}
