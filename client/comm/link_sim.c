/* client/comm/link_sim.c - links between threads of one process: a ring of bytes in memory for each direction.
 *
 *      end 0  --- ring[0] --->  end 1        head: bytes ever written    tail: bytes ever read
 *             <-- ring[1] ----               one writer and one reader a ring, no locks
 *
 * Sleeping: an end raises its flag in the ring it waits for, looks once more, then polls its eventfd; who moves bytes and
 * finds the flag raised lowers it and writes the eventfd.  All of these are sequentially consistent, so that one of the two
 * sees the other.  The fd of an end is made when it first sleeps.
 *
 * The pair is freed when both ends are closed; an end that nobody asked for counts as closed when the net goes.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/util.h"
#include "base/vec.h"
#include "comm/link.h"

#define RING_BYTES ((size_t)256 << 10)

struct ring {
    _Atomic uint64_t head __attribute__((aligned(64)));
    _Atomic uint64_t tail __attribute__((aligned(64)));
    _Atomic bool is_closed; /* by its writer */
    _Atomic bool reader_sleeps, writer_sleeps;
    uint8_t *bytes; /* [RING_BYTES] */
};

struct sim_pair;

struct sim_link {
    struct link base;
    struct sim_pair *pair;
    int end;
    _Atomic int fd; /* -1: has never slept */
};

struct sim_pair {
    struct sim_link end[2];
    struct ring ring[2]; /* ring[e]: written by end e */
    _Atomic int n_users;
    bool is_taken[2];
    uint64_t group;
    int rank[2]; /* lower first */
};

struct sim_net {
    pthread_mutex_t lock;
    VEC(struct sim_pair *) pairs; /* of which one end has not been asked for */
};

static void wake(struct sim_link *l)
{
    uint64_t one = 1;
    ssize_t written = write(atomic_load_explicit(&l->fd, memory_order_acquire), &one, sizeof one);
    (void)written;
}

static void wake_if(_Atomic bool *sleeps, struct sim_link *l)
{
    if (atomic_load(sleeps) && atomic_exchange(sleeps, false)) {
        wake(l);
    }
}

/* Copies between the ring at position `at` and the parts, at most n bytes; is_write: into the ring. */
static void copy_parts(struct ring *r, uint64_t at, const struct iovec *parts, size_t n, bool is_write)
{
    for (; n > 0; parts++) {
        uint8_t *p = parts->iov_base;
        size_t left = MIN(parts->iov_len, n);
        n -= left;
        while (left > 0) {
            size_t where = at % RING_BYTES, m = MIN(left, RING_BYTES - where);
            if (is_write) {
                memcpy(r->bytes + where, p, m);
            } else {
                memcpy(p, r->bytes + where, m);
            }
            p += m;
            at += m;
            left -= m;
        }
    }
}

static size_t parts_bytes(const struct iovec *parts, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        bytes += parts[i].iov_len;
    }
    return bytes;
}

static int64_t sim_send(struct link *l, const struct iovec *parts, int n)
{
    struct sim_link *s = container_of(l, struct sim_link, base);
    struct ring *r = &s->pair->ring[s->end], *back = &s->pair->ring[1 - s->end];
    if (fault_hits(FAULT_WRITE) || atomic_load_explicit(&back->is_closed, memory_order_acquire)) {
        return MESH_EPEER;
    }
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    size_t room = RING_BYTES - (size_t)(head - atomic_load_explicit(&r->tail, memory_order_acquire));
    size_t m = MIN(room, parts_bytes(parts, n));
    if (m > 0) {
        copy_parts(r, head, parts, m, true);
        atomic_store(&r->head, head + m);
        wake_if(&r->reader_sleeps, &s->pair->end[1 - s->end]);
    }
    return (int64_t)m;
}

/* Copies what is there, at most what the parts hold; the bytes stay in the ring. */
static int64_t look(struct ring *r, const struct iovec *parts, int n)
{
    bool is_closed = atomic_load_explicit(&r->is_closed, memory_order_acquire); /* before head: nothing comes after */
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    size_t there = (size_t)(atomic_load_explicit(&r->head, memory_order_acquire) - tail);
    size_t m = MIN(there, parts_bytes(parts, n));
    if (m == 0) {
        return is_closed ? MESH_EPEER : 0;
    }
    copy_parts(r, tail, parts, m, false);
    return (int64_t)m;
}

static int64_t sim_receive(struct link *l, const struct iovec *parts, int n)
{
    struct sim_link *s = container_of(l, struct sim_link, base);
    struct ring *r = &s->pair->ring[1 - s->end];
    if (fault_hits(FAULT_READ)) {
        return MESH_EPEER;
    }
    int64_t m = look(r, parts, n);
    if (m > 0) {
        atomic_store(&r->tail, atomic_load_explicit(&r->tail, memory_order_relaxed) + (uint64_t)m);
        wake_if(&r->writer_sleeps, &s->pair->end[1 - s->end]);
    }
    return m;
}

static int64_t sim_peek(struct link *l, void *bytes, size_t n)
{
    struct sim_link *s = container_of(l, struct sim_link, base);
    return look(&s->pair->ring[1 - s->end], &(struct iovec){ .iov_base = bytes, .iov_len = n }, 1);
}

static bool ensure_fd(struct sim_link *s)
{
    if (s->base.fd < 0) {
        s->base.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        atomic_store_explicit(&s->fd, s->base.fd, memory_order_release);
    }
    return s->base.fd >= 0;
}

static bool sim_arm(struct link *l, bool want_read, bool want_write)
{
    struct sim_link *s = container_of(l, struct sim_link, base);
    struct ring *out = &s->pair->ring[s->end], *in = &s->pair->ring[1 - s->end];
    uint64_t count;
    if (!ensure_fd(s)) {
        return true; /* no descriptors left: the caller goes on looking */
    }
    ssize_t drained = read(s->base.fd, &count, sizeof count);
    (void)drained;
    atomic_store(&in->reader_sleeps, want_read);
    atomic_store(&out->writer_sleeps, want_write);
    bool is_closed = atomic_load(&in->is_closed);
    bool can_read = atomic_load(&in->head) != atomic_load_explicit(&in->tail, memory_order_relaxed);
    bool can_write = atomic_load_explicit(&out->head, memory_order_relaxed) - atomic_load(&out->tail) < RING_BYTES;
    return is_closed || (want_read && can_read) || (want_write && can_write);
}

static void pair_unref(struct sim_pair *p, int n)
{
    if (atomic_fetch_sub_explicit(&p->n_users, n, memory_order_acq_rel) > n) {
        return;
    }
    for (int e = 0; e < 2; e++) {
        if (p->end[e].base.fd >= 0) {
            close(p->end[e].base.fd);
        }
        (void)mem_free(p->ring[e].bytes);
    }
    (void)mem_free(p);
}

static void sim_close(struct link *l)
{
    struct sim_link *s = container_of(l, struct sim_link, base), *other = &s->pair->end[1 - s->end];
    atomic_store(&s->pair->ring[s->end].is_closed, true);
    wake_if(&s->pair->ring[s->end].reader_sleeps, other);
    wake_if(&s->pair->ring[1 - s->end].writer_sleeps, other);
    pair_unref(s->pair, 1);
}

static const struct link_ops sim_ops = {
    .send = sim_send,
    .receive = sim_receive,
    .peek = sim_peek,
    .arm = sim_arm,
    .close = sim_close,
};

static struct sim_pair *pair_new(uint64_t group, int low, int high)
{
    struct sim_pair *p = mem_new(struct sim_pair);
    if (p == NULL) {
        return NULL;
    }
    atomic_init(&p->n_users, 2);
    p->group = group;
    p->rank[0] = low;
    p->rank[1] = high;
    for (int e = 0; e < 2; e++) {
        p->end[e] = (struct sim_link){ .base = { .ops = &sim_ops, .kind = LINK_SIM, .fd = -1 }, .pair = p, .end = e };
        atomic_init(&p->end[e].fd, -1);
        p->ring[e].bytes = mem_alloc(RING_BYTES);
    }
    if (p->ring[0].bytes == NULL || p->ring[1].bytes == NULL) {
        pair_unref(p, 2);
        return NULL;
    }
    return p;
}

struct sim_net *sim_net_new(void)
{
    struct sim_net *net = mem_new(struct sim_net);
    if (net == NULL) {
        (void)err_no_memory(sizeof *net, "a simulated network");
        return NULL;
    }
    CHECK(pthread_mutex_init(&net->lock, NULL) == 0);
    return net;
}

void sim_net_free(struct sim_net *net)
{
    if (net == NULL) {
        return;
    }
    for (size_t i = 0; i < net->pairs.n; i++) {
        pair_unref(net->pairs.at[i], 1);
    }
    VEC_FINI(&net->pairs);
    pthread_mutex_destroy(&net->lock);
    (void)mem_free(net);
}

/* The lock is held.  Takes an end that waits for its user, or makes the pair. */
static struct sim_pair *find_pair(struct sim_net *net, uint64_t group, int low, int high, int end)
{
    for (size_t i = 0; i < net->pairs.n; i++) {
        struct sim_pair *p = net->pairs.at[i];
        if (p->group == group && p->rank[0] == low && p->rank[1] == high && !p->is_taken[end]) {
            (void)VEC_REMOVE(&net->pairs, i); /* both are taken now */
            return p;
        }
    }
    struct sim_pair *p = pair_new(group, low, high);
    if (p == NULL) {
        return NULL;
    }
    struct sim_pair **slot = VEC_PUSH(&net->pairs);
    if (slot == NULL) {
        pair_unref(p, 2);
        return NULL;
    }
    *slot = p;
    return p;
}

struct link *sim_net_link(struct sim_net *net, uint64_t group, int rank, int peer)
{
    int end = rank < peer ? 0 : 1;
    pthread_mutex_lock(&net->lock);
    struct sim_pair *p = find_pair(net, group, MIN(rank, peer), MAX(rank, peer), end);
    if (p != NULL) {
        p->is_taken[end] = true;
    }
    pthread_mutex_unlock(&net->lock);
    if (p == NULL) {
        (void)err_no_memory(sizeof *p + 2 * RING_BYTES, "a link of the simulated network");
        return NULL;
    }
    return &p->end[end].base;
}
