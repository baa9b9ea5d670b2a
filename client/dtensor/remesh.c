/* client/dtensor/remesh.c - from one mesh to another over the same ranks, in one exchange of just the boxes that change ranks.
 *
 *     what rank i sends to rank k  =  box of i on the old mesh  cut with  box of k on the new one
 *
 * The distinct boxes of the old mesh make up the whole, so every element of a new box comes exactly once.  Of several replicas
 * the receiver itself sends if it is one; else they take turns.  Pending reductions are done before, and made after.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/remesh.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/collective.h"
#include "dtensor/redistribute.h"
#include "tensor/shape.h"

struct remesh {
    const mesh_device_mesh *from, *to;
    mesh_shape shape;
    mesh_placements old, new;
    size_t item;
    int me;             /* place on the old mesh, as all places here */
    int *new_place;     /* [n] on the new mesh, of each place */
    size_t *sent, *got; /* [n] elements */
};

static bool is_replicated(const struct remesh *q, int i)
{
    return q->old.at[i].kind != MESH_IS_SHARD;
}

/* Which box of the old mesh a place holds, and as the how-manieth of n replicas. */
static int box_number(const struct remesh *q, int place, int *ret_replica, int *ret_n)
{
    int c[MESH_MAX_MESH_NDIM], box = 0, replica = 0, n = 1;
    mesh_coordinate_of(q->from, place, c);
    for (int i = 0; i < q->from->ndim; i++) {
        int size = q->from->size[i];
        box = box * size + (is_replicated(q, i) ? 0 : c[i]);
        replica = is_replicated(q, i) ? replica * size + c[i] : replica;
        n *= is_replicated(q, i) ? size : 1;
    }
    *ret_replica = replica;
    *ret_n = n;
    return box;
}

static bool sends(const struct remesh *q, int i, int k)
{
    int replica, other, n;
    int mine = box_number(q, i, &replica, &n), yours = box_number(q, k, &other, &n);
    return mine == yours ? i == k : replica == k % n;
}

static void old_box(const struct remesh *q, int place, struct box *ret_box)
{
    int c[MESH_MAX_MESH_NDIM];
    mesh_coordinate_of(q->from, place, c);
    layout_box(q->shape, q->from->size, c, &q->old, ret_box);
}

static void new_box(const struct remesh *q, int place, struct box *ret_box)
{
    int c[MESH_MAX_MESH_NDIM];
    mesh_coordinate_of(q->to, q->new_place[place], c);
    layout_box(q->shape, q->to->size, c, &q->new, ret_box);
}

/* What i sends to k, in global indices; returns the number of elements. */
static size_t common(const struct remesh *q, int i, int k, struct box *ret_box)
{
    struct box a, b;
    size_t n = sends(q, i, k) ? 1 : 0;
    old_box(q, i, &a);
    new_box(q, k, &b);
    *ret_box = (struct box){ .ndim = a.ndim };
    for (int d = 0; d < a.ndim; d++) {
        int64_t begin = MAX(a.offset[d], b.offset[d]);
        int64_t end = MIN(a.offset[d] + a.extent[d], b.offset[d] + b.extent[d]);
        ret_box->offset[d] = begin;
        ret_box->extent[d] = MAX(end - begin, 0);
        n *= (size_t)ret_box->extent[d];
    }
    return n;
}

static void make_relative(struct box *inout, const struct box *to)
{
    for (int d = 0; d < inout->ndim; d++) {
        inout->offset[d] -= to->offset[d];
    }
}

static struct mesh_tensor *pack(const struct remesh *q, const struct mesh_tensor *local)
{
    size_t total = 0;
    struct box mine, b;
    old_box(q, q->me, &mine);
    for (int k = 0; k < q->from->n_ranks; k++) {
        total += q->sent[k];
    }
    struct mesh_tensor *packed = tensor_new(MESH_SHAPE((int64_t)total), local->dtype);
    char *at = packed ? packed->data : NULL;
    for (int k = 0; packed && k < q->from->n_ranks; k++) {
        if (common(q, q->me, k, &b) > 0) {
            make_relative(&b, &mine);
            box_pack(at, local->data, local->shape, &b, q->item);
            at += q->sent[k] * q->item;
        }
    }
    return packed;
}

static void unpack(const struct remesh *q, const struct mesh_tensor *packed, struct mesh_tensor *out)
{
    struct box mine, b;
    const char *at = packed->data;
    new_box(q, q->me, &mine);
    for (int i = 0; i < q->from->n_ranks; i++) {
        if (common(q, i, q->me, &b) > 0) {
            make_relative(&b, &mine);
            box_unpack(out->data, out->shape, at, &b, q->item);
            at += q->got[i] * q->item;
        }
    }
}

static struct mesh_tensor *exchange(const struct remesh *q, const struct mesh_tensor *local)
{
    mesh_shape shape = layout_local_shape(q->shape, q->to->size, q->to->coordinate, &q->new);
    struct mesh_tensor *out = tensor_new(shape, local->dtype);
    if (!out || shape_numel(q->shape) == 0) {
        return out;
    }
    struct mesh_tensor *in = pack(q, local);
    struct mesh_tensor *arrived = in ? tensor_new(MESH_SHAPE(out->n), local->dtype) : NULL;
    int r = arrived ? 0 : (int)mesh_last_error()->status;
    if (r == 0) {
        struct collective_call call = { .kind = MESH_COMM_ALL_TO_ALL,
                                        .dtype = local->dtype,
                                        .in_counts = q->sent,
                                        .out_counts = q->got,
                                        .in = in->data,
                                        .out = arrived->data };
        r = collective_run(q->from->whole, &call);
    }
    if (r == 0) {
        unpack(q, arrived, out);
    }
    tensor_unref(in);
    tensor_unref(arrived);
    if (r < 0) {
        tensor_unref(out);
        return NULL;
    }
    return out;
}

/* Where each rank of the old mesh stands on the new one. */
static int match_ranks(const struct remesh *q)
{
    char a[MESH_TEXT_BYTES], b[MESH_TEXT_BYTES];
    bool is_same = q->from->n_ranks == q->to->n_ranks;
    for (int k = 0; is_same && k < q->from->n_ranks; k++) {
        int place = 0;
        while (place < q->to->n_ranks && q->to->ranks[place] != q->from->ranks[k]) {
            place++;
        }
        is_same = place < q->to->n_ranks;
        q->new_place[k] = place;
    }
    return is_same ? 0
                   : err_set(MESH_EUNSUPPORTED,
                             "redistribute: mesh %s and mesh %s are not over the same ranks: values do not leave the "
                             "ranks of their mesh",
                             mesh_text(q->from, a, sizeof a), mesh_text(q->to, b, sizeof b));
}

static struct mesh_tensor *run(struct remesh *q, const struct mesh_tensor *local)
{
    struct box b;
    if (!q->from->is_member) {
        return tensor_new(MESH_SHAPE(0), local->dtype);
    }
    for (int k = 0; k < q->from->n_ranks; k++) {
        q->me = q->from->ranks[k] == q->from->session->rank ? k : q->me;
    }
    for (int k = 0; k < q->from->n_ranks; k++) {
        q->sent[k] = common(q, q->me, k, &b);
        q->got[k] = common(q, k, q->me, &b);
    }
    return exchange(q, local);
}

static mesh_placements without_pending(mesh_placements p)
{
    for (int i = 0; i < p.n; i++) {
        p.at[i] = p.at[i].kind == MESH_IS_PARTIAL ? mesh_replicate() : p.at[i];
    }
    return p;
}

mesh_dtensor *dtensor_remesh(mesh_dtensor *x, mesh_device_mesh *m, const mesh_placements *p)
{
    size_t n = (size_t)x->mesh->n_ranks;
    struct remesh q = { .from = x->mesh, .to = m, .shape = x->shape, .item = dtype_size(x->dtype) };
    q.old = without_pending(x->placements);
    q.new = without_pending(*p);
    q.new_place = mem_new_array(int, n);
    q.sent = mem_new_array(size_t, n);
    q.got = mem_new_array(size_t, n);
    int r = q.new_place && q.sent && q.got ? match_ranks(&q) : err_no_memory(n * 20, "the places of the ranks");
    struct mesh_tensor *whole = r < 0 ? NULL : redistribute_run(x, &q.old);
    struct mesh_tensor *local = whole ? run(&q, whole) : NULL;
    mesh_dtensor *y = local ? dtensor_new(m, x->shape, x->dtype, &q.new, local) : NULL;
    tensor_unref(whole);
    mem_free(q.new_place);
    mem_free(q.sent);
    mem_free(q.got);
    return y ? dtensor_redistribute(y, p) : NULL;
}
