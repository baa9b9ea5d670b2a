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
#include "dtensor/exchange.h"
#include "dtensor/line.h"
#include "dtensor/state.h"
#include "dtensor/watch.h"
#include "tensor/shape.h"

/* Of an all_to_all's input. */
#define LONG_ROW_BYTES   1024
#define SMALL_PART_BYTES 16384

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
struct transfer {
    struct collective_call call;
    struct mesh_tensor *in, *out; /* owned; in may be NULL */
    struct line arrives;          /* how what arrives is made up of parts */
};

static struct line line_of(const struct step *s, mesh_placement split)
{
    return (struct line){ s->line, split, s->parts, s->item };
}

/* The whole value of the line: nothing to be put together. */
static struct line undivided(const struct step *s, mesh_shape shape)
{
    return (struct line){ shape, mesh_shard(0), s->parts, s->item };
}

/* Elements of the part of each rank of the line, NULL where they are equal; the caller frees. */
static int part_counts(const struct line *l, size_t **ret_counts)
{
    size_t *counts = NULL;
    if (!line_is_even(l)) {
        counts = mem_new_array(size_t, (size_t)l->parts);
        if (!counts) {
            return err_no_memory((size_t)l->parts * sizeof *counts, "the sizes of the parts");
        }
        line_counts(l, counts);
    }
    *ret_counts = counts;
    return 0;
}

/* t when its parts are contiguous already, else a packed copy.  The caller's reference.  NULL: error set. */
static struct mesh_tensor *packed(struct mesh_tensor *t, const struct line *l)
{
    if (line_is_contiguous(l)) {
        return tensor_ref(t);
    }
    struct mesh_tensor *out = tensor_new(l->shape, t->dtype);
    if (out) {
        line_pack_all(l, out->data, t->data);
    }
    return out;
}

/* The reverse of packed(): takes the reference. */
static struct mesh_tensor *unpacked(struct mesh_tensor *t, const struct line *l)
{
    if (!t || line_is_contiguous(l)) {
        return t;
    }
    struct mesh_tensor *out = tensor_new(l->shape, t->dtype);
    if (out) {
        line_unpack_all(l, out->data, t->data);
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
    struct transfer transfer;
    mesh_work *work; /* a reference */
};

static int later_finish(struct tensor_pending *p, struct mesh_tensor *t)
{
    struct later *l = container_of(p, struct later, pending);
    const struct transfer *e = &l->transfer;
    int r = work_wait(l->work, DEADLINE_NEVER, NULL); /* the work's own deadline bounds it */
    if (r == 0 && !line_is_contiguous(&e->arrives)) {
        line_unpack_all(&e->arrives, t->data, e->out->data);
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
    tensor_unref(l->transfer.in);
    tensor_unref(l->transfer.out);
    mem_free(l);
}

static const struct object_class later_class = { .name = "redistribution", .free = later_free, .settle = later_settle };

/* The tensor that will have the elements: over the memory they arrive in, unless they must be unpacked. */
static struct mesh_tensor *begin_transfer(const struct step *s, const struct transfer *e)
{
    bool is_direct = line_is_contiguous(&e->arrives);
    struct mesh_tensor *t = is_direct ? tensor_share(e->out, e->out->shape) : tensor_new(e->arrives.shape, s->dtype);
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
    l->transfer = *e;
    l->work = work;
    object_ref(&l->object);
    t->pending = &l->pending;
    return t;
}

/* Takes in and out. */
static struct mesh_tensor *transfer_run(const struct step *s, const struct transfer *e)
{
    if (!e->out) {
        tensor_unref(e->in);
        return NULL;
    }
    if (s->is_async) {
        return begin_transfer(s, e);
    }
    int r = collective_run(s->group, &e->call);
    tensor_unref(e->in);
    if (r < 0) {
        tensor_unref(e->out);
        return NULL;
    }
    return unpacked(e->out, &e->arrives);
}

/* The collectives --------------------------------------------------------------------------------------------------- */

static struct mesh_tensor *all_gather(const struct step *s, struct mesh_tensor *t)
{
    size_t *counts = NULL;
    struct transfer e = { .arrives = line_of(s, s->move.from) };
    if (part_counts(&e.arrives, &counts) < 0) {
        return NULL;
    }
    e.in = tensor_ref(t);
    e.out = tensor_new(s->line, s->dtype);
    if (e.out) {
        e.call = (struct collective_call){ .kind = MESH_COMM_ALL_GATHER,
                                           .dtype = s->dtype,
                                           .count = (size_t)t->n,
                                           .out_counts = counts,
                                           .in = t->data,
                                           .out = e.out->data };
    }
    struct mesh_tensor *result = transfer_run(s, &e);
    mem_free(counts);
    return result;
}

static struct mesh_tensor *all_reduce(const struct step *s, struct mesh_tensor *t)
{
    struct transfer e = { .out = tensor_new(s->line, s->dtype), .arrives = undivided(s, s->line) };
    if (!e.out) {
        return NULL;
    }
    memcpy(e.out->data, t->data, tensor_bytes(t)); /* t is somebody's value */
    e.call = (struct collective_call){ .kind = MESH_COMM_ALL_REDUCE,
                                       .dtype = s->dtype,
                                       .op = s->move.from.op,
                                       .count = (size_t)t->n,
                                       .out = e.out->data };
    return transfer_run(s, &e);
}

static struct mesh_tensor *reduce_scatter(const struct step *s, struct mesh_tensor *t)
{
    size_t *counts = NULL;
    struct line leaves = line_of(s, s->move.to);
    struct transfer e = { .arrives = undivided(s, line_part(&leaves, s->me)) };
    if (part_counts(&leaves, &counts) < 0) {
        return NULL;
    }
    e.in = packed(t, &leaves);
    e.out = e.in ? tensor_new(e.arrives.shape, s->dtype) : NULL;
    if (e.out) {
        e.call = (struct collective_call){ .kind = MESH_COMM_REDUCE_SCATTER,
                                           .dtype = s->dtype,
                                           .op = s->move.from.op,
                                           .count = (size_t)e.out->n,
                                           .in_counts = counts,
                                           .in = e.in->data,
                                           .out = e.out->data };
    }
    struct mesh_tensor *result = transfer_run(s, &e);
    mem_free(counts);
    return result;
}

/* Parts of a plain shard lie in rows, which leave as they are unless they are so short that packing costs less. */
static size_t rows_to_send(const struct line *l)
{
    size_t row =
        (size_t)(l->shape.dim[l->split.dim] * shape_inner(l->shape, l->split.dim)) / (size_t)l->parts * l->item;
    size_t rows = (size_t)shape_outer(l->shape, l->split.dim);
    return l->split.kind == MESH_IS_SHARD && (row >= LONG_ROW_BYTES || row * rows <= SMALL_PART_BYTES) ? rows : 0;
}

/* Shard(a) to Shard(b): my rows of a, cut along b, against my piece of b from everybody's rows. */
static struct mesh_tensor *all_to_all(const struct step *s, struct mesh_tensor *t)
{
    size_t n = (size_t)s->parts, *counts = mem_new_array(size_t, 2 * n);
    struct line from = line_of(s, s->move.from), to = line_of(s, s->move.to);
    if (!counts) {
        err_no_memory(2 * n * sizeof *counts, "the sizes of the parts");
        return NULL;
    }
    struct line leaves = to;
    struct transfer e = { .arrives = from };
    leaves.shape = line_part(&from, s->me);
    e.arrives.shape = line_part(&to, s->me);
    line_counts(&leaves, counts);
    line_counts(&e.arrives, counts + n);
    size_t rows = rows_to_send(&leaves);
    e.in = rows > 0 ? tensor_ref(t) : packed(t, &leaves);
    e.out = e.in ? tensor_new(e.arrives.shape, s->dtype) : NULL;
    if (e.out) {
        e.call = (struct collective_call){ .kind = MESH_COMM_ALL_TO_ALL,
                                           .dtype = s->dtype,
                                           .in_rows = rows,
                                           .in_counts = counts,
                                           .out_counts = counts + n,
                                           .in = e.in->data,
                                           .out = e.out->data };
    }
    struct mesh_tensor *result = transfer_run(s, &e);
    mem_free(counts);
    return result;
}

/* Local steps ------------------------------------------------------------------------------------------------------- */

static struct mesh_tensor *slice(const struct step *s, struct mesh_tensor *t)
{
    struct line l = line_of(s, s->move.to);
    struct mesh_tensor *out = tensor_new(line_part(&l, s->me), s->dtype);
    if (out) {
        line_pack(&l, s->me, out->data, t->data);
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
    struct line l = line_of(s, s->move.from);
    struct mesh_tensor *out = tensor_identity(s->line, s->dtype, op);
    if (out) {
        line_unpack(&l, s->me, out->data, t->data);
    }
    return out;
}

static struct mesh_tensor *run_move(const struct step *s, struct mesh_tensor *t)
{
    mesh_placement_kind from = s->move.from.kind, to = s->move.to.kind;
    bool to_shard = placement_is_shard(s->move.to);
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
        struct line l = line_of(s, s->move.to);
        return tensor_new(to_shard ? line_part(&l, s->me) : s->line, s->dtype);
    }
    if (from == MESH_IS_PARTIAL) {
        return to_shard ? reduce_scatter(s, t) : all_reduce(s, t);
    }
    return to_shard ? all_to_all(s, t) : all_gather(s, t);
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

/* On a line there is nothing to plan where one move will do, and no memory to ask. */
static int find_moves(const mesh_dtensor *x, const mesh_placements *to, struct move_list *ret_moves)
{
    const mesh_device_mesh *m = x->mesh;
    if (m->ndim == 1 && redistribute_move_is_legal(1, m->size, &x->placements, 0, to->at[0])) {
        ret_moves->n = 1;
        ret_moves->at[0] = (struct move){ .mesh_dim = 0, .from = x->placements.at[0], .to = to->at[0] };
        return 0;
    }
    return redistribute_recall(x, to, ret_moves);
}

/* is_async: the last move is only begun. */
static struct mesh_tensor *run_moves(const mesh_dtensor *x, const mesh_placements *to, bool is_async)
{
    struct mesh_tensor *t = tensor_ref(x->local);
    struct move_list moves;
    mesh_placements now = x->placements;
    if (!x->mesh->is_member || mesh_placements_equal(now, *to)) {
        return t;
    }
    if (tensor_settle(t) < 0 || find_moves(x, to, &moves) < 0) {
        tensor_unref(t);
        return NULL;
    }
    for (int i = 0; t && i < moves.n; i++) {
        const struct move *move = &moves.at[i];
        watch_move(x->mesh, move);
        struct mesh_tensor *next = NULL;
        if (move->mesh_dim == ALL_MESH_DIMS) {
            struct exchange_end here = { x->mesh, x->shape, &now }, there = { x->mesh, x->shape, to };
            next = exchange_run(&here, &there, t);
        } else {
            struct step s = step_of(x, &now, move);
            s.is_async = is_async && i == moves.n - 1;
            next = run_move(&s, t);
            now.at[move->mesh_dim] = move->to;
        }
        tensor_unref(t);
        t = next;
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
