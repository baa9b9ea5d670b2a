/* client/dtensor/factory.c - tensors made from nothing: constants and random numbers, only the local part allocated.
 *
 * An element is a function of its global index, so every layout, mesh and world size gives the same tensor.  A pending
 * reduction means the logical value: coordinate 0 holds it, the others what changes nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/factory.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "comm/collective.h"
#include "core/scope.h"
#include "dtensor/redistribute.h"
#include "dtensor/state.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"

struct rng_key dtensor_next_key(struct mesh_session *s, uint64_t seed)
{
    struct dtensor_state *st = seed == 0 ? dtensor_state(s) : NULL;
    if (!st) {
        return (struct rng_key){ .seed = seed };
    }
    return (struct rng_key){ .seed = atomic_load(&st->seed), .call = atomic_fetch_add(&st->calls, 1) + 1 };
}

/* Replicas drawn from different seeds would differ without a word: so all ranks say theirs first. */
static int agree_on_seed(struct mesh_session *s, struct dtensor_state *st, uint64_t seed)
{
    char key[48], text[48];
    int *ranks = mem_new_array(int, (size_t)s->world_size);
    if (!ranks) {
        return err_no_memory((size_t)s->world_size * sizeof *ranks, "the ranks of the job");
    }
    for (int i = 0; i < s->world_size; i++) {
        ranks[i] = i;
    }
    pthread_mutex_lock(&st->lock);
    snprintf(key, sizeof key, "manual_seed/%d", st->n_seeded++);
    pthread_mutex_unlock(&st->lock);
    snprintf(text, sizeof text, "seed=%llu", (unsigned long long)seed);
    int r = s->control->ops->agree(s->control, key, ranks, s->world_size, text, session_timeout(s, 0));
    mem_free(ranks);
    return r;
}

void mesh_manual_seed(uint64_t seed)
{
    if (!scope_enter(__func__)) {
        return;
    }
    struct mesh_session *s = session_require();
    struct dtensor_state *st = s ? dtensor_state(s) : NULL;
    if (!st || agree_on_seed(s, st, seed) < 0) {
        scope_fail(err_status());
        return;
    }
    atomic_store(&st->seed, seed);
    atomic_store(&st->calls, 0);
}

const mesh_placement *factory_pending(const mesh_device_mesh *m, const mesh_placements *p)
{
    for (int i = 0; i < p->n; i++) {
        if (p->at[i].kind == MESH_IS_PARTIAL && p->at[i].op != MESH_AVG && m->coordinate[i] != 0) {
            return &p->at[i];
        }
    }
    return NULL;
}

int dtensor_fill(struct mesh_tensor *local, mesh_shape s, const mesh_device_mesh *m, const mesh_placements *p,
                 const struct fill *f)
{
    struct box_walk w;
    int r = 0;
    for (box_walk_first(&w, s, m->size, m->coordinate, p); r == 0 && w.is_some; box_walk_next(&w)) {
        r = tensor_fill_box(local, &w.local, s, &w.global, f);
    }
    return r;
}

static struct mesh_tensor *fill_local(mesh_shape s, mesh_dtype t, const mesh_device_mesh *m, const mesh_placements *p,
                                      const struct fill *f)
{
    if (!m->is_member) {
        return tensor_new(MESH_SHAPE(0), t);
    }
    const mesh_placement *pending = factory_pending(m, p);
    mesh_shape local = layout_local_shape(s, m->size, m->coordinate, p);
    if (pending) {
        return tensor_identity(local, t, pending->op);
    }
    struct mesh_tensor *out = tensor_new(local, t);
    if (out && dtensor_fill(out, s, m, p, f) < 0) {
        tensor_unref(out);
        return NULL;
    }
    return out;
}

mesh_dtensor *dtensor_filled(mesh_shape s, mesh_dtype t, mesh_device_mesh *m, const mesh_placements *p,
                             const struct fill *f)
{
    struct mesh_tensor *local = fill_check(f, t) == 0 ? fill_local(s, t, m, p, f) : NULL;
    return local ? dtensor_new(m, s, t, p, local) : NULL;
}

static int check_random(mesh_dtype t)
{
    return dtype_kind(t) == DTYPE_FLOAT
               ? 0
               : err_set(MESH_EUNSUPPORTED, "random numbers are of a floating dtype, not %s", dtype_name(t));
}

#define WHOLE_MOST (INT64_C(1) << 53) /* what a double holds exactly */

int factory_check_whole(const char *what, mesh_dtype t, int64_t low, int64_t high)
{
    if (!dtype_is_valid((int)t)) {
        return err_set(MESH_EINVAL, "%s: dtype %d does not exist", what, (int)t);
    }
    if (dtype_kind(t) == DTYPE_FLOAT || dtype_kind(t) == DTYPE_BOOL) {
        return err_set(MESH_EUNSUPPORTED, "%s: whole numbers are of an integer dtype, not %s", what, dtype_name(t));
    }
    bool fits = low < high && number_fits(t, (double)low) && number_fits(t, (double)(high - 1));
    return fits && (uint64_t)high - (uint64_t)low <= UINT64_C(1) << 32 && high <= WHOLE_MOST && low >= -WHOLE_MOST
               ? 0
               : err_set(MESH_EINVAL,
                         "%s: [%lld, %lld) for %s: low is below high, by at most 2^32, and all fit the dtype and 2^53",
                         what, (long long)low, (long long)high, dtype_name(t));
}

int factory_check(mesh_shape s, mesh_dtype t, const mesh_device_mesh *m, mesh_placements *inout_p)
{
    if (!m) {
        return err_set(MESH_EINVAL, "the mesh is NULL");
    }
    if (!dtype_is_valid((int)t)) {
        return err_set(MESH_EINVAL, "dtype %d does not exist", (int)t);
    }
    int r = shape_check(s, "the global shape");
    return r < 0 ? r : placements_check("placements", s, t, m->ndim, inout_p);
}

mesh_dtensor *factory_make(mesh_shape s, mesh_device_mesh *m, mesh_placements p, const mesh_factory_options *o,
                           struct fill f)
{
    static const mesh_factory_options defaults;
    o = o ? o : &defaults;
    bool is_whole = f.kind == FILL_WHOLE || f.kind == FILL_ORDER,
         is_real = f.kind == FILL_UNIFORM || f.kind == FILL_NORMAL;
    mesh_dtype t = o->dtype != 0 ? o->dtype : is_whole ? MESH_I64 : MESH_F32;
    int r = factory_check(s, t, m, &p);
    if (r == 0 && is_real) {
        r = check_random(t);
    }
    if (r == 0 && o->requires_grad && dtype_kind(t) != DTYPE_FLOAT) {
        r = err_set(MESH_EINVAL, "a tensor of %s cannot require a gradient: only floating ones can", dtype_name(t));
    }
    if (r < 0) {
        return scope_fail(r);
    }
    if (is_real || is_whole) {
        f.key = dtensor_next_key(m->session, o->seed);
    }
    mesh_dtensor *x = dtensor_filled(s, t, m, &p, &f);
    if (!x) {
        return scope_fail(err_status());
    }
    x->requires_grad = o->requires_grad;
    return x;
}

mesh_dtensor *mesh_zeros_opt(mesh_shape s, mesh_device_mesh *m, mesh_placements p, const mesh_factory_options *o)
{
    return scope_enter(__func__) ? factory_make(s, m, p, o, (struct fill){ .kind = FILL_VALUE, .a = 0 }) : NULL;
}

mesh_dtensor *mesh_ones_opt(mesh_shape s, mesh_device_mesh *m, mesh_placements p, const mesh_factory_options *o)
{
    return scope_enter(__func__) ? factory_make(s, m, p, o, (struct fill){ .kind = FILL_VALUE, .a = 1 }) : NULL;
}

mesh_dtensor *mesh_empty_opt(mesh_shape s, mesh_device_mesh *m, mesh_placements p, const mesh_factory_options *o)
{
    return scope_enter(__func__) ? factory_make(s, m, p, o, (struct fill){ .kind = FILL_VALUE, .a = 0 }) : NULL;
}

mesh_dtensor *mesh_full_opt(mesh_shape s, double value, mesh_device_mesh *m, mesh_placements p,
                            const mesh_factory_options *o)
{
    return scope_enter(__func__) ? factory_make(s, m, p, o, (struct fill){ .kind = FILL_VALUE, .a = value }) : NULL;
}

mesh_dtensor *mesh_rand_opt(mesh_shape s, mesh_device_mesh *m, mesh_placements p, const mesh_factory_options *o)
{
    return scope_enter(__func__) ? factory_make(s, m, p, o, (struct fill){ .kind = FILL_UNIFORM, .a = 0, .b = 1 })
                                 : NULL;
}

mesh_dtensor *mesh_randn_opt(mesh_shape s, mesh_device_mesh *m, mesh_placements p, const mesh_factory_options *o)
{
    return scope_enter(__func__) ? factory_make(s, m, p, o, (struct fill){ .kind = FILL_NORMAL, .a = 0, .b = 1 })
                                 : NULL;
}
