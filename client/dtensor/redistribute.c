/* client/dtensor/redistribute.c - runs the moves of a plan: packing, one collective of one line each, unpacking.
 *
 * The line of mesh dim i is the set of ranks that differ in that coordinate only.  Since no later mesh dim splits the tensor
 * dim a move touches, the line shares one dense value of shape `line`; a shard is a box of it.  Boxes of the outermost dim are
 * contiguous, so they need no packing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/redistribute.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/collective.h"
#include "comm/work.h"
#include "dtensor/state.h"
#include "dtensor/watch.h"
#include "tensor/shape.h"

struct step { /* one move, seen by one rank */
    const mesh_device_mesh *mesh;
    mesh_group *group;
    int parts, me;
    mesh_shape line;
    mesh_dtype dtype;
    size_t item;
    struct move move;
    bool is_async; /* begin the exchange, do not wait */
};

/* A step's one collective, and how what it brings becomes the result. */
struct exchange {
    struct collective_call call;
    struct mesh_tensor *in, *out; /* owned; in may be NULL */
    mesh_shape whole;             /* of what arrives in parts along dim d, dense each */
    int d;
};

static struct box chunk_box(mesh_shape line, int d, struct chunk c)
{
    struct box b = { .ndim = line.ndim };
    for (int k = 0; k < line.ndim; k++) {
        b.extent[k] = line.dim[k];
    }
    b.offset[d] = c.offset;
    b.extent[d] = c.extent;
    return b;
}

static int64_t box_numel(const struct box *b)
{
    int64_t n = 1;
    for (int d = 0; d < b->ndim; d++) {
        n *= b->extent[d];
    }
    return n;
}

static mesh_shape with_chunk(mesh_shape s, int d, int64_t n, int parts, int i)
{
    s.dim[d] = layout_chunk(n, parts, i).extent;
    return s;
}

/* Elements of the part of each rank of the line when dim d of s is split; the caller frees.  NULL: error set. */
static size_t *part_counts(mesh_shape s, int d, int64_t n, int parts)
{
    size_t *counts = mem_new_array(size_t, (size_t)parts);
    if (!counts) {
        err_no_memory((size_t)parts * sizeof *counts, "the sizes of the parts");
        return NULL;
    }
    for (int i = 0; i < parts; i++) {
        counts[i] = (size_t)shape_numel(with_chunk(s, d, n, parts, i));
    }
    return counts;
}

/* Parts of `whole` split along dim d, one after another, to dense form; and back. */
static void pack_parts(void *dst, const void *src, mesh_shape whole, int d, const struct step *s)
{
    char *at = dst;
    for (int i = 0; i < s->parts; i++) {
        struct box b = chunk_box(whole, d, layout_chunk(whole.dim[d], s->parts, i));
        box_pack(at, src, whole, &b, s->item);
        at += (size_t)box_numel(&b) * s->item;
    }
}

static void unpack_parts(void *dst, const void *src, mesh_shape whole, int d, const struct step *s)
{
    const char *at = src;
    for (int i = 0; i < s->parts; i++) {
        struct box b = chunk_box(whole, d, layout_chunk(whole.dim[d], s->parts, i));
        box_unpack(dst, whole, at, &b, s->item);
        at += (size_t)box_numel(&b) * s->item;
    }
}

static bool is_contiguous(mesh_shape whole, int d)
{
    return shape_outer(whole, d) <= 1;
}

/* t when its parts along d are contiguous already, else a packed copy.  The caller's reference.  NULL: error set. */
static struct mesh_tensor *packed(struct mesh_tensor *t, mesh_shape whole, int d, const struct step *s)
{
    if (is_contiguous(whole, d)) {
        return tensor_ref(t);
    }
    struct mesh_tensor *out = tensor_new(whole, s->dtype);
    if (out) {
        pack_parts(out->data, t->data, whole, d, s);
    }
    return out;
}

/* The reverse of packed(): takes the reference. */
static struct mesh_tensor *unpacked(struct mesh_tensor *t, mesh_shape whole, int d, const struct step *s)
{
    if (!t || is_contiguous(whole, d)) {
        return t;
    }
    struct mesh_tensor *out = tensor_new(whole, s->dtype);
    if (out) {
        unpack_parts(out->data, t->data, whole, d, s);
    }
    tensor_unref(t);
    return out;
}

/* Waiting later ----------------------------------------------------------------------------------------------------- */

/* Owned by the scope that the exchange began in, so that what is still in flight outlives neither its buffers nor, by long,
 * its scope; the tensor that will have the elements holds a reference. */
struct later {
    struct object object;
    struct tensor_pending pending;
    struct step step;
    struct exchange exchange;
    mesh_work *work; /* a reference */
};

static int later_finish(struct tensor_pending *p, struct mesh_tensor *t)
{
    struct later *l = container_of(p, struct later, pending);
    const struct exchange *e = &l->exchange;
    int r = work_wait(l->work, DEADLINE_NEVER, NULL); /* the work's own deadline bounds it */
    if (r == 0 && !is_contiguous(e->whole, e->d)) {
        unpack_parts(t->data, e->out->data, e->whole, e->d, &l->step);
    }
    return r;
}

static void later_drop(struct tensor_pending *p)
{
    object_unref(&container_of(p, struct later, pending)->object);
}

static int later_settle(struct object *o)
{
    struct later *l = container_of(o, struct later, object);
    return work_wait(l->work, DEADLINE_NEVER, NULL);
}

static void later_free(struct object *o)
{
    struct later *l = container_of(o, struct later, object);
    if (l->work) {
        object_release(&l->work->object);
        object_unref(&l->work->object);
    }
    tensor_unref(l->exchange.in);
    tensor_unref(l->exchange.out);
    mem_free(l);
}

static const struct object_class later_class = { .name = "redistribution", .free = later_free, .settle = later_settle };

/* The tensor that will have the elements: over the memory they arrive in, unless they must be unpacked. */
static struct mesh_tensor *begin_exchange(const struct step *s, const struct exchange *e)
{
    bool is_direct = is_contiguous(e->whole, e->d);
    struct mesh_tensor *t = is_direct ? tensor_share(e->out, e->out->shape) : tensor_new(e->whole, s->dtype);
    struct later *l = t ? mem_new(struct later) : NULL;
    mesh_work *work = l ? collective_start(s->group, &e->call) : NULL;
    if (!work) {
        if (t && !l) {
            err_no_memory(sizeof *l, "a redistribution");
        }
        mem_free(l);
        tensor_unref(t);
        tensor_unref(e->in);
        tensor_unref(e->out);
        return NULL;
    }
    object_ref(&work->object);
    object_init(&l->object, &later_class);
    l->pending = (struct tensor_pending){ .finish = later_finish, .drop = later_drop };
    l->step = *s;
    l->exchange = *e;
    l->work = work;
    object_ref(&l->object);
    t->pending = &l->pending;
    return t;
}

/* Takes in and out. */
static struct mesh_tensor *exchange_run(const struct step *s, const struct exchange *e)
{
    if (!e->out) {
        tensor_unref(e->in);
        return NULL;
    }
    if (s->is_async) {
        return begin_exchange(s, e);
    }
    int r = collective_run(s->group, &e->call);
    tensor_unref(e->in);
    if (r < 0) {
        tensor_unref(e->out);
        return NULL;
    }
    return unpacked(e->out, e->whole, e->d, s);
}

/* The collectives --------------------------------------------------------------------------------------------------- */

static struct mesh_tensor *all_gather(const struct step *s, struct mesh_tensor *t)
{
    int d = s->move.from.dim;
    int64_t n = s->line.dim[d];
    bool is_even = n % s->parts == 0;
    size_t *counts = is_even ? NULL : part_counts(s->line, d, n, s->parts);
    struct exchange e = { .in = tensor_ref(t), .whole = s->line, .d = d };
    e.out = is_even || counts ? tensor_new(s->line, s->dtype) : NULL;
    if (e.out) {
        e.call = (struct collective_call){ .kind = MESH_COMM_ALL_GATHER,
                                           .dtype = s->dtype,
                                           .count = (size_t)t->n,
                                           .out_counts = counts,
                                           .in = t->data,
                                           .out = e.out->data };
    }
    struct mesh_tensor *result = exchange_run(s, &e);
    mem_free(counts);
    return result;
}

static struct mesh_tensor *all_reduce(const struct step *s, struct mesh_tensor *t)
{
    struct exchange e = { .out = tensor_new(s->line, s->dtype), .whole = s->line, .d = 0 };
    if (!e.out) {
        return NULL;
    }
    memcpy(e.out->data, t->data, tensor_bytes(t)); /* t is somebody's value */
    e.call = (struct collective_call){ .kind = MESH_COMM_ALL_REDUCE,
                                       .dtype = s->dtype,
                                       .op = s->move.from.op,
                                       .count = (size_t)t->n,
                                       .out = e.out->data };
    return exchange_run(s, &e);
}

static struct mesh_tensor *reduce_scatter(const struct step *s, struct mesh_tensor *t)
{
    int d = s->move.to.dim;
    int64_t n = s->line.dim[d];
    bool is_even = n % s->parts == 0;
    size_t *counts = is_even ? NULL : part_counts(s->line, d, n, s->parts);
    struct exchange e = { .whole = with_chunk(s->line, d, n, s->parts, s->me), .d = 0 };
    e.in = is_even || counts ? packed(t, s->line, d, s) : NULL;
    e.out = e.in ? tensor_new(e.whole, s->dtype) : NULL;
    if (e.out) {
        e.call = (struct collective_call){ .kind = MESH_COMM_REDUCE_SCATTER,
                                           .dtype = s->dtype,
                                           .op = s->move.from.op,
                                           .count = (size_t)e.out->n,
                                           .in_counts = counts,
                                           .in = e.in->data,
                                           .out = e.out->data };
    }
    struct mesh_tensor *result = exchange_run(s, &e);
    mem_free(counts);
    return result;
}

/* Shard(a) to Shard(b): my rows of a, cut along b, against my piece of b from everybody's rows. */
static struct mesh_tensor *all_to_all(const struct step *s, struct mesh_tensor *t)
{
    int a = s->move.from.dim, b = s->move.to.dim;
    mesh_shape mine = with_chunk(s->line, a, s->line.dim[a], s->parts, s->me);
    struct exchange e = { .whole = with_chunk(s->line, b, s->line.dim[b], s->parts, s->me), .d = a };
    size_t *in_counts = part_counts(mine, b, s->line.dim[b], s->parts);
    size_t *out_counts = in_counts ? part_counts(e.whole, a, s->line.dim[a], s->parts) : NULL;
    e.in = out_counts ? packed(t, mine, b, s) : NULL;
    e.out = e.in ? tensor_new(e.whole, s->dtype) : NULL;
    if (e.out) {
        e.call = (struct collective_call){ .kind = MESH_COMM_ALL_TO_ALL,
                                           .dtype = s->dtype,
                                           .in_counts = in_counts,
                                           .out_counts = out_counts,
                                           .in = e.in->data,
                                           .out = e.out->data };
    }
    struct mesh_tensor *result = exchange_run(s, &e);
    mem_free(in_counts);
    mem_free(out_counts);
    return result;
}

/* Local steps ------------------------------------------------------------------------------------------------------- */

static struct mesh_tensor *slice(const struct step *s, struct mesh_tensor *t)
{
    int d = s->move.to.dim;
    struct box b = chunk_box(s->line, d, layout_chunk(s->line.dim[d], s->parts, s->me));
    struct mesh_tensor *out = tensor_new(with_chunk(s->line, d, s->line.dim[d], s->parts, s->me), s->dtype);
    if (out) {
        box_pack(out->data, t->data, s->line, &b, s->item);
    }
    return out;
}

struct mesh_tensor *tensor_identity(mesh_shape shape, mesh_dtype t, mesh_reduce_op op)
{
    struct mesh_tensor *out = tensor_new(shape, t);
    if (out) {
        reduce_fill_identity(out->data, (size_t)out->n, t, op);
    }
    return out;
}

/* To a pending reduction: coordinate 0 (or the owner of a shard) has the value, the others what changes nothing; the
 * average of equal values is the value. */
static struct mesh_tensor *make_pending(const struct step *s, struct mesh_tensor *t)
{
    mesh_reduce_op op = s->move.to.op;
    if (s->move.from.kind == MESH_IS_REPLICATE) {
        return s->me == 0 || op == MESH_AVG ? tensor_ref(t) : tensor_identity(s->line, s->dtype, op);
    }
    int d = s->move.from.dim;
    struct box b = chunk_box(s->line, d, layout_chunk(s->line.dim[d], s->parts, s->me));
    struct mesh_tensor *out = tensor_identity(s->line, s->dtype, op);
    if (out) {
        box_unpack(out->data, s->line, t->data, &b, s->item);
    }
    return out;
}

static struct mesh_tensor *run_move(const struct step *s, struct mesh_tensor *t)
{
    mesh_placement_kind from = s->move.from.kind, to = s->move.to.kind;
    if (s->parts == 1) {
        return tensor_ref(t);
    }
    if (to == MESH_IS_PARTIAL) {
        return make_pending(s, t);
    }
    if (from == MESH_IS_REPLICATE) {
        return slice(s, t);
    }
    if (shape_numel(s->line) == 0) {
        bool is_shard = to == MESH_IS_SHARD;
        int d = s->move.to.dim;
        return tensor_new(is_shard ? with_chunk(s->line, d, s->line.dim[d], s->parts, s->me) : s->line, s->dtype);
    }
    if (from == MESH_IS_PARTIAL) {
        return to == MESH_IS_SHARD ? reduce_scatter(s, t) : all_reduce(s, t);
    }
    return to == MESH_IS_SHARD ? all_to_all(s, t) : all_gather(s, t);
}

static struct step step_of(const mesh_dtensor *x, const mesh_placements *now, const struct move *move)
{
    const mesh_device_mesh *m = x->mesh;
    int i = move->mesh_dim;
    mesh_placements without = *now;
    without.at[i] = mesh_replicate();
    return (struct step){ .mesh = m,
                          .group = m->group[i],
                          .parts = m->size[i],
                          .me = m->coordinate[i],
                          .line = layout_local_shape(x->shape, m->size, m->coordinate, &without),
                          .dtype = x->dtype,
                          .item = dtype_size(x->dtype),
                          .move = *move };
}

struct plan_key {
    const mesh_device_mesh *mesh;
    mesh_shape shape;
    mesh_placements from, to;
    int dtype, kind; /* kind tells these keys from those of operators */
};

int redistribute_recall(const mesh_dtensor *x, const mesh_placements *to, struct move_list *ret_moves)
{
    struct dtensor_state *st = x->mesh->state;
    struct plan_key key;
    memset(&key, 0, sizeof key);
    key.mesh = x->mesh;
    key.dtype = (int)x->dtype;
    key.kind = -1;
    key.from = x->placements;
    key.to = *to;
    key.shape.ndim = x->shape.ndim;
    for (int d = 0; d < x->shape.ndim; d++) {
        key.shape.dim[d] = x->shape.dim[d];
    }
    if (memory_recall(st, &key, sizeof key, ret_moves, sizeof *ret_moves)) {
        return 0;
    }
    struct relayout q = { .shape = x->shape,
                          .dtype = x->dtype,
                          .mesh_ndim = x->mesh->ndim,
                          .mesh_size = x->mesh->size,
                          .from = &x->placements,
                          .to = to };
    int r = redistribute_plan(&q, ret_moves);
    if (r == 0) {
        memory_store(st, &key, sizeof key, ret_moves, sizeof *ret_moves);
    }
    return r;
}

/* is_async: the last move is only begun. */
static struct mesh_tensor *run_moves(const mesh_dtensor *x, const mesh_placements *to, bool is_async)
{
    struct mesh_tensor *t = tensor_ref(x->local);
    struct move_list moves = { .n = 0 };
    mesh_placements now = x->placements;
    if (!x->mesh->is_member || mesh_placements_equal(now, *to)) {
        return t;
    }
    if (tensor_settle(t) < 0 || redistribute_recall(x, to, &moves) < 0) {
        tensor_unref(t);
        return NULL;
    }
    for (int i = 0; t && i < moves.n; i++) {
        struct step s = step_of(x, &now, &moves.at[i]);
        s.is_async = is_async && i == moves.n - 1;
        watch_move(x->mesh, &moves.at[i]);
        struct mesh_tensor *next = run_move(&s, t);
        tensor_unref(t);
        t = next;
        now.at[moves.at[i].mesh_dim] = moves.at[i].to;
    }
    watch_move(x->mesh, NULL);
    return t;
}

struct mesh_tensor *redistribute_run(const mesh_dtensor *x, const mesh_placements *to)
{
    struct mesh_tensor *t = run_moves(x, to, false);
    if (t && tensor_settle(t) < 0) {
        tensor_unref(t);
        return NULL;
    }
    return t;
}

struct mesh_tensor *redistribute_begin(const mesh_dtensor *x, const mesh_placements *to)
{
    return run_moves(x, to, true);
}
