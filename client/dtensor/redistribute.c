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
#include "base/dtype.h"
#include "base/error.h"
#include "comm/collective.h"
#include "dtensor/state.h"
#include "tensor/shape.h"

struct step { /* one move, seen by one rank */
    const mesh_device_mesh *mesh;
    mesh_group *group;
    int parts, me;
    mesh_shape line;
    mesh_dtype dtype;
    size_t item;
    struct move move;
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

static struct mesh_tensor *drop_on_error(struct mesh_tensor *t, int r)
{
    if (r < 0) {
        tensor_unref(t);
        return NULL;
    }
    return t;
}

static struct mesh_tensor *all_gather(const struct step *s, struct mesh_tensor *t)
{
    int d = s->move.from.dim;
    int64_t n = s->line.dim[d];
    bool is_even = n % s->parts == 0;
    size_t *counts = is_even ? NULL : part_counts(s->line, d, n, s->parts);
    struct mesh_tensor *out = is_even || counts ? tensor_new(s->line, s->dtype) : NULL;
    if (out) {
        struct collective_call call = { .kind = MESH_COMM_ALL_GATHER,
                                        .dtype = s->dtype,
                                        .count = (size_t)t->n,
                                        .out_counts = counts,
                                        .in = t->data,
                                        .out = out->data };
        out = drop_on_error(out, collective_run(s->group, &call));
    }
    mem_free(counts);
    return unpacked(out, s->line, d, s);
}

static struct mesh_tensor *all_reduce(const struct step *s, struct mesh_tensor *t)
{
    struct mesh_tensor *out = tensor_new(s->line, s->dtype);
    if (!out) {
        return NULL;
    }
    memcpy(out->data, t->data, tensor_bytes(t)); /* t is somebody's value */
    struct collective_call call = {
        .kind = MESH_COMM_ALL_REDUCE, .dtype = s->dtype, .op = s->move.from.op, .count = (size_t)t->n, .out = out->data
    };
    return drop_on_error(out, collective_run(s->group, &call));
}

static struct mesh_tensor *reduce_scatter(const struct step *s, struct mesh_tensor *t)
{
    int d = s->move.to.dim;
    int64_t n = s->line.dim[d];
    bool is_even = n % s->parts == 0;
    size_t *counts = is_even ? NULL : part_counts(s->line, d, n, s->parts);
    struct mesh_tensor *in = is_even || counts ? packed(t, s->line, d, s) : NULL;
    struct mesh_tensor *out = in ? tensor_new(with_chunk(s->line, d, n, s->parts, s->me), s->dtype) : NULL;
    if (out) {
        struct collective_call call = { .kind = MESH_COMM_REDUCE_SCATTER,
                                        .dtype = s->dtype,
                                        .op = s->move.from.op,
                                        .count = (size_t)out->n,
                                        .in_counts = counts,
                                        .in = in->data,
                                        .out = out->data };
        out = drop_on_error(out, collective_run(s->group, &call));
    }
    tensor_unref(in);
    mem_free(counts);
    return out;
}

/* Shard(a) to Shard(b): my rows of a, cut along b, against my piece of b from everybody's rows. */
static struct mesh_tensor *all_to_all(const struct step *s, struct mesh_tensor *t)
{
    int a = s->move.from.dim, b = s->move.to.dim;
    mesh_shape mine = with_chunk(s->line, a, s->line.dim[a], s->parts, s->me);
    mesh_shape result = with_chunk(s->line, b, s->line.dim[b], s->parts, s->me);
    size_t *in_counts = part_counts(mine, b, s->line.dim[b], s->parts);
    size_t *out_counts = in_counts ? part_counts(result, a, s->line.dim[a], s->parts) : NULL;
    struct mesh_tensor *in = out_counts ? packed(t, mine, b, s) : NULL;
    struct mesh_tensor *out = in ? tensor_new(result, s->dtype) : NULL;
    if (out) {
        struct collective_call call = { .kind = MESH_COMM_ALL_TO_ALL,
                                        .dtype = s->dtype,
                                        .in_counts = in_counts,
                                        .out_counts = out_counts,
                                        .in = in->data,
                                        .out = out->data };
        out = drop_on_error(out, collective_run(s->group, &call));
    }
    tensor_unref(in);
    mem_free(in_counts);
    mem_free(out_counts);
    return unpacked(out, result, a, s);
}

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

static int recall_plan(const mesh_dtensor *x, const mesh_placements *to, struct move_list *ret_moves)
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

struct mesh_tensor *redistribute_run(const mesh_dtensor *x, const mesh_placements *to)
{
    struct mesh_tensor *t = tensor_ref(x->local);
    struct move_list moves = { .n = 0 };
    mesh_placements now = x->placements;
    if (!x->mesh->is_member || mesh_placements_equal(now, *to)) {
        return t;
    }
    if (recall_plan(x, to, &moves) < 0) {
        tensor_unref(t);
        return NULL;
    }
    for (int i = 0; t && i < moves.n; i++) {
        struct step s = step_of(x, &now, &moves.at[i]);
        struct mesh_tensor *next = run_move(&s, t);
        tensor_unref(t);
        t = next;
        now.at[moves.at[i].mesh_dim] = moves.at[i].to;
    }
    return t;
}
