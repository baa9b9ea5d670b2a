/* client/dtensor/create.c - tensors of evenly spaced numbers, tensors like others, tensors that a callback fills.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/create.h>

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "comm/collective.h"
#include "core/scope.h"
#include "dtensor/factory.h"
#include "dtensor/redistribute.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"

#define MOST_POINTS 0x1p53 /* beyond, doubles no longer count */

/* Between the ends the points are, so the ends decide.  Integers cut what is behind the point. */
static int check_points(const char *what, const struct fill *f, const mesh_factory_options *o)
{
    mesh_dtype t = o && o->dtype != 0 ? o->dtype : MESH_F32;
    if (!isfinite(f->a) || !isfinite(f->b)) {
        return err_set(MESH_EINVAL, "%s: from %g to %g: both must be finite", what, f->a, f->b);
    }
    for (int k = 0; k < 2 && f->n > 0; k++) {
        double v = fill_point(f, k == 0 ? 0 : f->n - 1);
        if (dtype_is_valid((int)t) && dtype_kind(t) != DTYPE_FLOAT && !number_fits(t, trunc(v))) {
            return err_set(MESH_EINVAL, "%s: a tensor of %s cannot hold %g", what, dtype_name(t), v);
        }
    }
    return 0;
}

static mesh_dtensor *make_points(const char *what, mesh_device_mesh *m, mesh_placements p,
                                 const mesh_factory_options *o, const struct fill *f)
{
    int r =
        f->n < 0 ? err_set(MESH_EINVAL, "%s: %lld steps: at least 0", what, (long long)f->n) : check_points(what, f, o);
    return r < 0 ? scope_fail(r) : factory_make(MESH_SHAPE(f->n), m, p, o, *f);
}

mesh_dtensor *mesh_linspace_opt(double start, double end, int64_t steps, mesh_device_mesh *m, mesh_placements p,
                                const mesh_factory_options *o)
{
    struct fill f = { .kind = FILL_LINEAR, .a = start, .b = end, .n = steps };
    return scope_enter(__func__) ? make_points("linspace", m, p, o, &f) : NULL;
}

mesh_dtensor *mesh_logspace_opt(double start, double end, int64_t steps, mesh_device_mesh *m, mesh_placements p,
                                const mesh_factory_options *o)
{
    struct fill f = { .kind = FILL_POWER, .a = start, .b = end, .n = steps };
    f.base = o && o->base != 0 ? o->base : 10;
    return scope_enter(__func__) ? make_points("logspace", m, p, o, &f) : NULL;
}

static int count_steps(double start, double end, double step, int64_t *ret_n)
{
    double n = ceil((end - start) / step);
    if (!isfinite(n) || n > MOST_POINTS) {
        return err_set(MESH_EINVAL, "arange: from %g to %g by %g: the step must be finite and not 0", start, end, step);
    }
    if (n < 0) {
        return err_set(MESH_EINVAL, "arange: from %g to %g by %g: the step leads away from the end", start, end, step);
    }
    *ret_n = (int64_t)n;
    return 0;
}

mesh_dtensor *mesh_arange_opt(double start, double end, double step, mesh_device_mesh *m, mesh_placements p,
                              const mesh_factory_options *o)
{
    struct fill f = { .kind = FILL_STEPS, .a = start, .b = step };
    if (!scope_enter(__func__)) {
        return NULL;
    }
    int r = count_steps(start, end, step, &f.n);
    return r < 0 ? scope_fail(r) : make_points("arange", m, p, o, &f);
}

mesh_dtensor *mesh_randint_opt(mesh_shape s, int64_t low, int64_t high, mesh_device_mesh *m, mesh_placements p,
                               const mesh_factory_options *o)
{
    struct fill f = { .kind = FILL_WHOLE, .a = (double)low, .b = (double)high };
    if (!scope_enter(__func__)) {
        return NULL;
    }
    int r = factory_check_whole("randint", o && o->dtype != 0 ? o->dtype : MESH_I64, low, high);
    return r < 0 ? scope_fail(r) : factory_make(s, m, p, o, f);
}

mesh_dtensor *mesh_randperm_opt(int64_t n, mesh_device_mesh *m, mesh_placements p, const mesh_factory_options *o)
{
    mesh_dtype t = o && o->dtype != 0 ? o->dtype : MESH_I64;
    if (!scope_enter(__func__)) {
        return NULL;
    }
    bool is_integer = dtype_is_valid((int)t) && dtype_kind(t) == DTYPE_INT; /* factory_make() refuses the others */
    if (n < 0 || (is_integer && n > 0 && !number_fits(t, (double)(n - 1)))) {
        return scope_fail(err_set(MESH_EINVAL,
                                  "randperm: the numbers below %lld for %s: n is at least 0, and all fit the dtype",
                                  (long long)n, dtype_is_valid((int)t) ? dtype_name(t) : "no dtype"));
    }
    return factory_make(MESH_SHAPE(n), m, p, o, (struct fill){ .kind = FILL_ORDER, .n = n });
}

static mesh_dtensor *make_like(const char *function, const mesh_dtensor *x, const mesh_factory_options *o,
                               struct fill f)
{
    mesh_factory_options like = { .size = sizeof like };
    if (!scope_enter(function)) {
        return NULL;
    }
    if (!x) {
        return scope_fail(err_set(MESH_EINVAL, "the tensor is NULL"));
    }
    like = o ? *o : like;
    like.dtype = like.dtype == 0 ? x->dtype : like.dtype;
    mesh_placements p = x->placements;
    for (int i = 0; i < p.n; i++) {
        p.at[i] = p.at[i].kind == MESH_IS_PARTIAL ? mesh_replicate() : p.at[i];
    }
    return factory_make(x->shape, x->mesh, p, &like, f);
}

mesh_dtensor *mesh_zeros_like_opt(const mesh_dtensor *x, const mesh_factory_options *o)
{
    return make_like(__func__, x, o, (struct fill){ .kind = FILL_VALUE, .a = 0 });
}

mesh_dtensor *mesh_ones_like_opt(const mesh_dtensor *x, const mesh_factory_options *o)
{
    return make_like(__func__, x, o, (struct fill){ .kind = FILL_VALUE, .a = 1 });
}

mesh_dtensor *mesh_empty_like_opt(const mesh_dtensor *x, const mesh_factory_options *o)
{
    return make_like(__func__, x, o, (struct fill){ .kind = FILL_VALUE, .a = 0 });
}

mesh_dtensor *mesh_full_like_opt(const mesh_dtensor *x, double value, const mesh_factory_options *o)
{
    return make_like(__func__, x, o, (struct fill){ .kind = FILL_VALUE, .a = value });
}

mesh_dtensor *mesh_rand_like_opt(const mesh_dtensor *x, const mesh_factory_options *o)
{
    return make_like(__func__, x, o, (struct fill){ .kind = FILL_UNIFORM, .a = 0, .b = 1 });
}

mesh_dtensor *mesh_randn_like_opt(const mesh_dtensor *x, const mesh_factory_options *o)
{
    return make_like(__func__, x, o, (struct fill){ .kind = FILL_NORMAL, .a = 0, .b = 1 });
}

mesh_dtensor *mesh_randint_like_opt(const mesh_dtensor *x, int64_t low, int64_t high, const mesh_factory_options *o)
{
    mesh_dtype t = o && o->dtype != 0 ? o->dtype : x ? x->dtype : MESH_I64;
    if (!scope_enter(__func__)) {
        return NULL;
    }
    int r = factory_check_whole("randint_like", t, low, high);
    return r < 0 ? scope_fail(r)
                 : make_like(__func__, x, o, (struct fill){ .kind = FILL_WHOLE, .a = (double)low, .b = (double)high });
}

struct maker {
    mesh_part_fn fn;
    void *arg;
};

static mesh_shape shape_from(int ndim, const int64_t *dim)
{
    mesh_shape s = { .ndim = ndim };
    memcpy(s.dim, dim, (size_t)ndim * sizeof s.dim[0]);
    return s;
}

/* One box of this rank's part, of which a strided shard has several: fn writes dense memory. */
static int make_box(mesh_dtensor *x, const struct box_walk *w, const struct maker *maker)
{
    int ndim = x->shape.ndim;
    mesh_shape offset = shape_from(ndim, w->global.offset), extent = shape_from(ndim, w->global.extent);
    bool is_all = shape_equal(extent, x->local->shape);
    struct mesh_tensor *box = is_all ? tensor_ref(x->local) : tensor_new(extent, x->dtype);
    if (!box) {
        return err_status();
    }
    int r = maker->fn(box->data, offset, extent, maker->arg);
    if (r == 0 && !is_all) {
        box_unpack(x->local->data, x->local->shape, box->data, &w->local, dtype_size(x->dtype));
    }
    tensor_unref(box);
    return r == 0 ? 0 : err_set_local(r < 0 ? r : MESH_EINVAL, "make_from_callback: the callback returned %d", r);
}

/* This rank's part of x, written by fn. */
static int call_back(mesh_dtensor *x, const struct maker *maker)
{
    const mesh_placement *pending = factory_pending(x->mesh, &x->placements);
    if (pending) {
        reduce_fill_identity(x->local->data, (size_t)x->local->n, x->dtype, pending->op);
        return 0;
    }
    struct box_walk w;
    int r = 0;
    for (box_walk_first(&w, x->shape, x->mesh->size, x->mesh->coordinate, &x->placements); r == 0 && w.is_some;
         box_walk_next(&w)) {
        r = make_box(x, &w, maker);
    }
    return r;
}

mesh_dtensor *mesh_make_from_callback_opt(mesh_shape s, mesh_device_mesh *m, mesh_placements p, mesh_part_fn fn,
                                          void *arg, const mesh_factory_options *o)
{
    if (!scope_enter(__func__)) {
        return NULL;
    }
    if (!fn) {
        return scope_fail(err_set(MESH_EINVAL, "the callback is NULL"));
    }
    mesh_dtensor *x = factory_make(s, m, p, o, (struct fill){ .kind = FILL_VALUE, .a = 0 });
    int r = x && m->is_member && x->local->n > 0 ? call_back(x, &(struct maker){ fn, arg }) : 0;
    return r < 0 ? scope_fail(r) : x;
}
