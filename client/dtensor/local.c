/* client/dtensor/local.c - from local parts to one logical tensor: what every rank must agree on first.
 *
 * One small all_gather over the mesh carries each rank's facts (shape, dtype, what was asked for, a hash of the values when
 * replicas are compared).  Every rank then decides on the same facts in the same order, so all succeed or fail alike.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/map.h"
#include "comm/collective.h"
#include "dtensor/dtensor.h"
#include "tensor/shape.h"

struct facts { /* of one rank, as it travels */
    int64_t dim[MESH_MAX_NDIM];
    int32_t ndim, dtype;
    uint64_t asked; /* hash of placements and options */
    uint64_t value; /* hash of the elements; 0: replicas are not compared */
};

struct inquiry {
    mesh_device_mesh *mesh;
    mesh_placements placements;
    mesh_shape shape; /* global; has_shape: given, else found */
    bool has_shape;
    struct facts *facts; /* [mesh->n_ranks] in the mesh's order */
};

static mesh_shape facts_shape(const struct facts *f)
{
    mesh_shape s = { .ndim = f->ndim };
    memcpy(s.dim, f->dim, sizeof s.dim);
    return s;
}

static uint64_t hash_shape(mesh_shape s, uint64_t seed)
{
    return hash_bytes(s.dim, (size_t)s.ndim * sizeof s.dim[0], seed + (uint64_t)s.ndim);
}

static struct facts facts_of(const struct mesh_tensor *t, const mesh_placements *p, const mesh_from_local_options *o)
{
    struct facts f;
    memset(&f, 0, sizeof f);
    f.ndim = t->shape.ndim;
    f.dtype = (int32_t)t->dtype;
    memcpy(f.dim, t->shape.dim, (size_t)t->shape.ndim * sizeof f.dim[0]);
    f.asked = hash_shape(o->shape, 0);
    f.asked = hash_bytes(p->at, (size_t)p->n * sizeof p->at[0], f.asked);
    f.asked = hash_bytes(o->grad.at, (size_t)o->grad.n * sizeof o->grad.at[0], f.asked + (uint64_t)o->grad.n);
    f.asked = hash_bytes(&o->check_replicas, sizeof o->check_replicas, f.asked);
    f.value = o->check_replicas ? hash_bytes(t->data, tensor_bytes(t), 1) : 0;
    return f;
}

/* "[2,6], [2,5], ..." of all ranks, cut to fit. */
static const char *shapes_text(const struct inquiry *q, char *buf, size_t cap)
{
    size_t at = 0;
    buf[0] = 0;
    for (int k = 0; k < q->mesh->n_ranks; k++) {
        char one[SHAPE_TEXT_BYTES];
        shape_text(facts_shape(&q->facts[k]), one, sizeof one);
        if (at + strlen(one) + 8 > cap) {
            snprintf(buf + at, cap - at, ", ...");
            break;
        }
        at += (size_t)snprintf(buf + at, cap - at, "%s%s", k ? ", " : "", one);
    }
    return buf;
}

/* What must be equal everywhere whatever the layout. */
static int check_equal(const struct inquiry *q)
{
    char text[120];
    const struct facts *a = &q->facts[0];
    for (int k = 1; k < q->mesh->n_ranks; k++) {
        const struct facts *b = &q->facts[k];
        int first = q->mesh->ranks[0], rank = q->mesh->ranks[k];
        if (b->asked != a->asked) {
            return err_set(MESH_EMISMATCH, "from_local: rank %d gave other placements or options than rank %d", rank,
                           first);
        }
        if (b->dtype != a->dtype) {
            return err_set(MESH_EMISMATCH, "from_local: rank %d holds %s but rank %d holds %s", rank,
                           dtype_name((mesh_dtype)b->dtype), first, dtype_name((mesh_dtype)a->dtype));
        }
        if (b->ndim != a->ndim) {
            return err_set(MESH_EMISMATCH, "from_local: rank %d holds %d dims but rank %d holds %d; shapes by rank: %s",
                           rank, b->ndim, first, a->ndim, shapes_text(q, text, sizeof text));
        }
    }
    return 0;
}

static bool is_split(const mesh_placements *p, int d)
{
    for (int i = 0; i < p->n; i++) {
        if (placement_splits(p->at[i], d)) {
            return true;
        }
    }
    return false;
}

/* The place-th rank is one of those whose parts make up dim d: its other coordinates are 0. */
static bool counts_along(const struct inquiry *q, int place, int d)
{
    int c[MESH_MAX_MESH_NDIM];
    mesh_coordinate_of(q->mesh, place, c);
    for (int i = 0; i < q->mesh->ndim; i++) {
        const mesh_placement *p = &q->placements.at[i];
        if (c[i] != 0 && !placement_splits(*p, d)) {
            return false;
        }
    }
    return true;
}

static void add_up_shape(struct inquiry *q)
{
    q->shape = (mesh_shape){ .ndim = q->facts[0].ndim };
    for (int d = 0; d < q->shape.ndim; d++) {
        for (int k = 0; k < q->mesh->n_ranks; k++) {
            q->shape.dim[d] += counts_along(q, k, d) ? q->facts[k].dim[d] : 0;
        }
    }
}

static int refuse_part(const struct inquiry *q, int place, int d, int64_t needed)
{
    char text[100], whole[SHAPE_TEXT_BYTES];
    int rank = q->mesh->ranks[place];
    if (!q->has_shape && !is_split(&q->placements, d)) {
        return err_set(MESH_EMISMATCH,
                       "from_local: rank %d holds %lld along dim %d but rank %d holds %lld; shapes by rank: %s", rank,
                       (long long)q->facts[place].dim[d], d, q->mesh->ranks[0], (long long)needed,
                       shapes_text(q, text, sizeof text));
    }
    return err_set(MESH_EINVAL,
                   "from_local: rank %d holds %lld along dim %d, the layout of %s needs %lld; shapes by rank: %s", rank,
                   (long long)q->facts[place].dim[d], d, shape_text(q->shape, whole, sizeof whole), (long long)needed,
                   shapes_text(q, text, sizeof text));
}

static int check_parts(const struct inquiry *q)
{
    for (int k = 0; k < q->mesh->n_ranks; k++) {
        int c[MESH_MAX_MESH_NDIM];
        mesh_coordinate_of(q->mesh, k, c);
        mesh_shape needed = layout_local_shape(q->shape, q->mesh->size, c, &q->placements);
        for (int d = 0; d < q->shape.ndim; d++) {
            if (q->facts[k].dim[d] != needed.dim[d]) {
                return refuse_part(q, k, d, needed.dim[d]);
            }
        }
    }
    return 0;
}

/* Ranks that differ only along replicated mesh dims must hold the same bits. */
static int check_replicas(const struct inquiry *q)
{
    for (int k = 0; k < q->mesh->n_ranks; k++) {
        int c[MESH_MAX_MESH_NDIM], place = 0;
        mesh_coordinate_of(q->mesh, k, c);
        for (int i = 0; i < q->mesh->ndim; i++) {
            place = place * q->mesh->size[i] + (q->placements.at[i].kind == MESH_IS_REPLICATE ? 0 : c[i]);
        }
        if (q->facts[k].value != q->facts[place].value) {
            char text[96];
            return err_set(
                MESH_EMISMATCH, "from_local: rank %d holds other values than rank %d, but %s makes them replicas",
                q->mesh->ranks[k], q->mesh->ranks[place], mesh_placements_text(q->placements, text, sizeof text));
        }
    }
    return 0;
}

static int check_ndim(const struct inquiry *q, int local_ndim)
{
    char text[SHAPE_TEXT_BYTES];
    if (q->has_shape && q->shape.ndim != local_ndim) {
        return err_set(MESH_ESHAPE, "from_local: the local part has %d dims, the global shape %s has %d", local_ndim,
                       shape_text(q->shape, text, sizeof text), q->shape.ndim);
    }
    return q->has_shape ? shape_check(q->shape, "from_local") : 0;
}

static int decide(struct inquiry *q, bool compare_values)
{
    mesh_dtype t = (mesh_dtype)q->facts[0].dtype;
    int r = check_equal(q);
    r = r < 0 ? r : check_ndim(q, q->facts[0].ndim);
    r = r < 0 ? r : placements_check("from_local", facts_shape(&q->facts[0]), t, q->mesh->ndim, &q->placements);
    if (r == 0 && !q->has_shape) {
        add_up_shape(q);
        r = shape_check(q->shape, "from_local");
    }
    r = r < 0 ? r : check_parts(q);
    return r < 0 || !compare_values ? r : check_replicas(q);
}

static int check_all(struct inquiry *q, const struct mesh_tensor *t, const mesh_from_local_options *o)
{
    struct facts mine = facts_of(t, &q->placements, o);
    q->facts = mem_new_array(struct facts, (size_t)q->mesh->n_ranks);
    if (!q->facts) {
        return err_no_memory((size_t)q->mesh->n_ranks * sizeof mine, "the shapes of all ranks");
    }
    struct collective_call call = {
        .kind = MESH_COMM_ALL_GATHER, .dtype = MESH_U8, .count = sizeof mine, .in = &mine, .out = q->facts
    };
    int r = collective_run(q->mesh->whole, &call);
    r = r < 0 ? r : decide(q, o->check_replicas);
    mem_free(q->facts);
    return r;
}

/* Without asking anyone: the shards are taken as even unless the global shape says otherwise. */
static int trust(struct inquiry *q, const struct mesh_tensor *t)
{
    mesh_shape shape = q->has_shape ? q->shape : t->shape;
    int r = check_ndim(q, q->mesh->is_member || !q->has_shape ? t->shape.ndim : q->shape.ndim);
    r = r < 0 ? r : placements_check("from_local", shape, t->dtype, q->mesh->ndim, &q->placements);
    if (r < 0) {
        return r;
    }
    for (int i = 0; !q->has_shape && i < q->mesh->ndim; i++) {
        if (placement_is_shard(q->placements.at[i])) {
            shape.dim[q->placements.at[i].dim] *= q->mesh->size[i];
        }
    }
    mesh_shape needed = layout_local_shape(shape, q->mesh->size, q->mesh->coordinate, &q->placements);
    if (q->mesh->is_member && !shape_equal(needed, t->shape)) {
        char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
        return err_set_local(MESH_EINVAL, "from_local: this rank holds %s, the layout needs %s",
                             shape_text(t->shape, a, sizeof a), shape_text(needed, b, sizeof b));
    }
    q->shape = shape;
    return shape_check(shape, "from_local");
}

/* An empty tensor in place of whatever a rank outside the mesh passed. */
static mesh_dtensor *wrap(struct inquiry *q, struct mesh_tensor *t, const mesh_placements *grad)
{
    struct mesh_tensor *local = q->mesh->is_member ? tensor_ref(t) : tensor_new(MESH_SHAPE(0), t->dtype);
    mesh_dtensor *x = local ? dtensor_new(q->mesh, q->shape, t->dtype, &q->placements, local) : NULL;
    if (x) {
        x->grad_placements = *grad;
    }
    return x;
}

mesh_dtensor *dtensor_from_local(struct mesh_tensor *local, mesh_device_mesh *m, mesh_placements p,
                                 const mesh_from_local_options *o)
{
    static const mesh_from_local_options defaults;
    if (!local || !m) {
        err_set(MESH_EINVAL, "from_local: the %s is NULL", local ? "mesh" : "local tensor");
        return NULL;
    }
    o = o ? o : &defaults;
    if (o->shape.ndim < 0 || o->shape.ndim > MESH_MAX_NDIM) {
        err_set(MESH_ESHAPE, "from_local: a global shape of %d dims; at most %d", o->shape.ndim, MESH_MAX_NDIM);
        return NULL;
    }
    struct inquiry q = { .mesh = m, .placements = p, .shape = o->shape, .has_shape = o->shape.ndim != 0 };
    mesh_placements grad = o->grad;
    if (p.n != m->ndim || (grad.n != 0 && grad.n != m->ndim)) {
        err_set(MESH_EINVAL, "from_local: %d placements and %d for the gradient, on a mesh of %d dims", p.n, grad.n,
                m->ndim);
        return NULL;
    }
    int r = o->unchecked || !m->is_member ? trust(&q, local) : check_all(&q, local, o);
    if (r == 0 && grad.n != 0) {
        r = placements_check("from_local's gradient", q.shape, local->dtype, m->ndim, &grad);
    }
    return r < 0 ? NULL : wrap(&q, local, &grad);
}
