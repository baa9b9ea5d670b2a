/* client/dtensor/exchange.c - from any layout to any other in one all_to_all of just the elements that change ranks.
 *
 *     what rank i sends to rank k  =  the elements of i at one end cut with those of k at the other
 *
 * The distinct parts at one end make up the whole, so every element of a new part comes exactly once.  Of several
 * replicas the receiver itself sends if it is one; else they take turns.  A pending part only goes to ranks that hold
 * the same addend.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/exchange.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/collective.h"
#include "dtensor/mesh_make.h"
#include "dtensor/stream.h"
#include "tensor/shape.h"

struct exchange {
    const struct exchange_end *from, *to;
    mesh_device_mesh *over; /* the ranks of both; a place is one of its ranks */
    int me;
    int *from_place, *to_place; /* [n] of each place on the two meshes; -1: not there */
    size_t *sent, *got;         /* [n] elements */
    size_t item;
};

/* Which part of the old mesh a place holds, and as the how-manieth of n replicas. */
static int part_number(const struct exchange *x, int place, int *ret_replica, int *ret_n)
{
    const mesh_device_mesh *m = x->from->mesh;
    int c[MESH_MAX_MESH_NDIM], part = 0, replica = 0, n = 1;
    mesh_coordinate_of(m, place, c);
    for (int i = 0; i < m->ndim; i++) {
        bool is_replica = x->from->placements->at[i].kind == MESH_IS_REPLICATE;
        part = part * m->size[i] + (is_replica ? 0 : c[i]);
        replica = is_replica ? replica * m->size[i] + c[i] : replica;
        n *= is_replica ? m->size[i] : 1;
    }
    *ret_replica = replica;
    *ret_n = n;
    return part;
}

/* Of what is pending at both ends, a rank needs the addend of its own coordinate. */
static bool has_other_addend(const struct exchange *x, int i, int k)
{
    int a[MESH_MAX_MESH_NDIM], b[MESH_MAX_MESH_NDIM];
    const mesh_placements *p = x->from->placements;
    if (x->from->mesh != x->to->mesh) {
        return false;
    }
    mesh_coordinate_of(x->from->mesh, x->from_place[i], a);
    mesh_coordinate_of(x->from->mesh, x->from_place[k], b);
    for (int m = 0; m < p->n; m++) {
        if (p->at[m].kind == MESH_IS_PARTIAL && a[m] != b[m]) {
            return true;
        }
    }
    return false;
}

static bool sends(const struct exchange *x, int i, int k)
{
    int replica, other, n, place = x->from_place[k];
    if (x->from_place[i] < 0 || x->to_place[k] < 0 || has_other_addend(x, i, k)) {
        return false;
    }
    int mine = part_number(x, x->from_place[i], &replica, &n);
    return place >= 0 && mine == part_number(x, place, &other, &n) ? i == k : replica == k % n;
}

static void open_end(const struct exchange_end *e, int place, struct stream *ret_stream)
{
    int c[MESH_MAX_MESH_NDIM];
    mesh_coordinate_of(e->mesh, place, c);
    stream_first(ret_stream, e->shape, e->mesh->size, c, e->placements);
}

/* Copies what i sends to k out of i's part to data, dense, or from there into k's; both NULL: only counts. */
static size_t pass(const struct exchange *x, int i, int k, char *part, char *data)
{
    struct stream a, b;
    size_t total = 0;
    if (!sends(x, i, k)) {
        return 0;
    }
    open_end(x->from, x->from_place[i], &a);
    open_end(x->to, x->to_place[k], &b);
    for (int64_t n; (n = streams_meet(&a, &b)) > 0; stream_skip(&a, n), stream_skip(&b, n)) {
        size_t bytes = (size_t)n * x->item;
        if (data && k != x->me) {
            memcpy(data + total * x->item, part + (size_t)a.local * x->item, bytes);
        } else if (data) {
            memcpy(part + (size_t)b.local * x->item, data + total * x->item, bytes);
        }
        total += (size_t)n;
    }
    return total;
}

/* What stays on this rank. */
static void keep(const struct exchange *x, char *out, const char *in)
{
    struct stream a, b;
    if (!sends(x, x->me, x->me)) {
        return;
    }
    open_end(x->from, x->from_place[x->me], &a);
    open_end(x->to, x->to_place[x->me], &b);
    for (int64_t n; (n = streams_meet(&a, &b)) > 0; stream_skip(&a, n), stream_skip(&b, n)) {
        memcpy(out + (size_t)b.local * x->item, in + (size_t)a.local * x->item, (size_t)n * x->item);
    }
}

static void count_all(const struct exchange *x)
{
    for (int k = 0; k < x->over->n_ranks; k++) {
        x->sent[k] = k == x->me ? 0 : pass(x, x->me, k, NULL, NULL);
        x->got[k] = k == x->me ? 0 : pass(x, k, x->me, NULL, NULL);
    }
}

static size_t sum_of(const size_t *counts, int n)
{
    size_t sum = 0;
    for (int k = 0; k < n; k++) {
        sum += counts[k];
    }
    return sum;
}

static void pack(const struct exchange *x, const struct mesh_tensor *local, char *to)
{
    for (int k = 0; k < x->over->n_ranks; k++) {
        to += x->sent[k] == 0 ? 0 : pass(x, x->me, k, local->data, to) * x->item;
    }
}

static void unpack(const struct exchange *x, struct mesh_tensor *out, char *from)
{
    for (int k = 0; k < x->over->n_ranks; k++) {
        from += x->got[k] == 0 ? 0 : pass(x, k, x->me, out->data, from) * x->item;
    }
}

static int swap(const struct exchange *x, const struct mesh_tensor *local, struct mesh_tensor *out)
{
    int n = x->over->n_ranks;
    struct mesh_tensor *in = tensor_new(MESH_SHAPE((int64_t)sum_of(x->sent, n)), local->dtype);
    struct mesh_tensor *arrived = in ? tensor_new(MESH_SHAPE((int64_t)sum_of(x->got, n)), local->dtype) : NULL;
    int r = arrived ? 0 : err_status();
    if (r == 0) {
        struct collective_call call = { .kind = MESH_COMM_ALL_TO_ALL,
                                        .dtype = local->dtype,
                                        .in_counts = x->sent,
                                        .out_counts = x->got,
                                        .in = in->data,
                                        .out = arrived->data };
        pack(x, local, in->data);
        r = collective_run(x->over->whole, &call);
    }
    if (r == 0) {
        unpack(x, out, arrived->data);
    }
    tensor_unref(in);
    tensor_unref(arrived);
    return r;
}

static int place_on(const mesh_device_mesh *m, int rank)
{
    for (int k = 0; k < m->n_ranks; k++) {
        if (m->ranks[k] == rank) {
            return k;
        }
    }
    return -1;
}

static int find_places(struct exchange *x)
{
    size_t n = (size_t)x->over->n_ranks;
    x->from_place = mem_new_array(int, 2 * n);
    x->sent = mem_new_array(size_t, 2 * n);
    if (!x->from_place || !x->sent) {
        return err_no_memory(2 * n * (sizeof(int) + sizeof(size_t)), "the places of the ranks");
    }
    x->to_place = x->from_place + n;
    x->got = x->sent + n;
    for (int k = 0; k < x->over->n_ranks; k++) {
        x->from_place[k] = place_on(x->from->mesh, x->over->ranks[k]);
        x->to_place[k] = place_on(x->to->mesh, x->over->ranks[k]);
    }
    x->me = place_on(x->over, x->over->session->rank);
    return 0;
}

static struct mesh_tensor *run(struct exchange *x, const struct mesh_tensor *local)
{
    const mesh_device_mesh *m = x->to->mesh;
    bool is_there = m->is_member;
    mesh_shape shape = MESH_SHAPE(0);
    if (is_there) {
        shape = layout_local_shape(x->to->shape, m->size, m->coordinate, x->to->placements);
    }
    struct mesh_tensor *out = tensor_new(shape, local->dtype);
    if (!out || shape_numel(x->to->shape) == 0) {
        return out;
    }
    count_all(x);
    if (is_there) {
        keep(x, out->data, local->data);
    }
    if (swap(x, local, out) < 0) {
        tensor_unref(out);
        return NULL;
    }
    return out;
}

struct mesh_tensor *exchange_run(const struct exchange_end *from, const struct exchange_end *to,
                                 const struct mesh_tensor *local)
{
    struct exchange x = { .from = from, .to = to, .item = dtype_size(local->dtype) };
    x.over = from->mesh == to->mesh ? from->mesh : mesh_of_both(from->mesh, to->mesh);
    if (!x.over || !x.over->is_member) {
        return x.over ? tensor_new(MESH_SHAPE(0), local->dtype) : NULL;
    }
    struct mesh_tensor *out = find_places(&x) == 0 ? run(&x, local) : NULL;
    mem_free(x.from_place);
    mem_free(x.sent);
    return out;
}

/* How many elements of its new part the rank at a coordinate has already. */
static int64_t kept(mesh_shape shape, const int *size, const int *c, const mesh_placements *from,
                    const mesh_placements *to)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++) {
        struct places a = places_of(shape.dim[d], d, size, c, from), b = places_of(shape.dim[d], d, size, c, to);
        n *= places_common(&a, &b);
    }
    return n;
}

int64_t exchange_elements(mesh_shape shape, int mesh_ndim, const int *mesh_size, const mesh_placements *from,
                          const mesh_placements *to)
{
    int c[MESH_MAX_MESH_NDIM] = { 0 };
    int64_t most = 0;
    do {
        int64_t all = shape_numel(layout_local_shape(shape, mesh_size, c, to));
        most = MAX(most, all - kept(shape, mesh_size, c, from, to));
    } while (next_coordinate(mesh_ndim, mesh_size, c));
    return most;
}
