/* client/comm/p2p.c - mesh_send(), mesh_recv() and what belongs to them: checked, begun, waited for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/p2p.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/error.h"
#include "comm/progress.h"
#include "comm/record.h"
#include "core/scope.h"
#include "session/waiting.h"

struct p2p *p2p_new(mesh_group *g, mesh_group *streams)
{
    struct p2p *p = mem_zalloc(sizeof *p + (size_t)g->size * sizeof p->lanes[0]);
    if (p == NULL) {
        (void)err_no_memory(sizeof *p, "the messages of a group");
        return NULL;
    }
    p->group = g;
    p->streams = group_ref(streams);
    CHECK(pthread_mutex_init(&p->lock, NULL) == 0);
    condition_init(&p->changed);
    return p;
}

static void free_lane(struct lane *l)
{
    while (l->kept_head != NULL) {
        struct kept *k = l->kept_head;
        l->kept_head = k->next;
        (void)mem_free(k);
    }
    (void)mem_free(l->keeping);
}

void p2p_free(struct p2p *p)
{
    if (p == NULL) {
        return;
    }
    for (int i = 0; i < p->group->size; i++) {
        free_lane(&p->lanes[i]);
    }
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    group_unref(p->streams);
    (void)mem_free(p->dropped);
    (void)mem_free(p);
}

/* Checking --------------------------------------------------------------------------------------------------------- */

static int check_peer(const mesh_group *g, const mesh_transfer *t)
{
    bool is_send = t->direction == MESH_SEND;
    if ((t->peer < 0 || t->peer >= g->size) && (is_send || t->peer != MESH_ANY_SOURCE)) {
        return err_set(MESH_EINVAL, "%s rank %d, which is not in group %s of %d ranks", is_send ? "to" : "from",
                       t->peer, g->name, g->size);
    }
    if (t->tag < 0 && (is_send || t->tag != MESH_ANY_TAG)) {
        return err_set(MESH_EINVAL, "tag %d: a tag is 0 or more%s", t->tag, is_send ? "" : ", or MESH_ANY_TAG");
    }
    return 0;
}

static int check(mesh_group *g, const mesh_transfer *t)
{
    int r = work_check_group(g);
    if (r < 0) {
        return r;
    }
    if (t->direction != MESH_SEND && t->direction != MESH_RECV) {
        return err_set(MESH_EINVAL, "direction %d is neither MESH_SEND nor MESH_RECV", (int)t->direction);
    }
    if (!dtype_is_valid((int)t->dtype)) {
        return err_set(MESH_EINVAL, "%d is not a dtype", (int)t->dtype);
    }
    if (t->count > MEMORY_MAX_BYTES / dtype_size(t->dtype)) {
        return err_set(MESH_ETOOLARGE, "%zu elements of %s do not fit into memory", t->count, dtype_name(t->dtype));
    }
    if (t->buf == NULL && t->count > 0) {
        return err_set(MESH_EINVAL, "the buffer is NULL, but for %zu elements", t->count);
    }
    r = check_peer(g, t);
    return r < 0 ? r : failure_of_start(g, NULL);
}

/* Beginning -------------------------------------------------------------------------------------------------------- */

static void message_init(struct message *m, mesh_group *g, const mesh_transfer *t)
{
    *m = (struct message){ .is_send = t->direction == MESH_SEND,
                           .peer = t->peer,
                           .tag = t->tag,
                           .dtype = t->dtype,
                           .count = t->count,
                           .bytes = t->count * dtype_size(t->dtype),
                           .buffer = t->buf };
    m->work.group = g;
    m->work.is_message = true;
    m->work.begun_ms = clock_now_ms();
    m->work.deadline_ms = m->work.begun_ms + g->session->timeout_ms;
    atomic_init(&m->work.state, WORK_QUEUED);
}

static void fill_header(struct message *m, struct p2p *p)
{
    const struct frame_header h = { .length = m->bytes,
                                    .kind = FRAME_P2P,
                                    .version = FRAME_VERSION,
                                    .generation = p->group->session->generation,
                                    .group = p->streams->id,
                                    .sequence = ++p->lanes[m->peer].n_sent,
                                    .collective = MESH_COMM_SEND,
                                    .dtype = (uint8_t)m->dtype,
                                    .root = -1,
                                    .count = m->count,
                                    .tag = (uint32_t)m->tag };
    frame_encode(m->header, &h);
}

/* To this rank itself: into the receive that waits for it, else into a copy. */
static void send_to_self(struct p2p *p, struct message *m)
{
    struct lane *l = &p->lanes[m->peer];
    struct frame_header h;
    struct kept *k = NULL;
    CHECK(frame_decode(m->header, &h) == 0);
    int r = p2p_keep(p, m->peer, &h, &k);
    if (r == 0) {
        memcpy(k->payload, m->bytes > 0 ? (const void *)m->buffer : (const void *)m->header, m->bytes);
        struct message *waiting = p2p_take_waiting(p, m->peer, h.tag);
        p2p_link_kept(l, k);
        if (waiting != NULL) {
            p2p_deliver_kept(p, waiting);
        }
    } else {
        (void)err_set((mesh_status)r,
                      "a message of %zu bytes to this rank itself does not fit beside the %zu bytes that wait "
                      "to be received",
                      m->bytes, l->kept_bytes);
        m->work.error = *err_last();
    }
    p2p_over(p, m);
}

/* A message has no number in its group; its peer stands in for the root, its tag for the digest of splits. */
static void record_begin(struct message *m, mesh_group *g)
{
    struct recorder *r = g->comm->recorder;
    m->work.record = record_call(r, &(struct record){ .group = g->id,
                                                      .place = -1,
                                                      .words = { .kind = m->is_send ? MESH_COMM_SEND : MESH_COMM_RECV,
                                                                 .dtype = (uint8_t)m->dtype,
                                                                 .root = m->peer,
                                                                 .splits = (uint32_t)m->tag,
                                                                 .count = m->count },
                                                      .queued_ns = clock_now_ns(),
                                                      .is_running = true });
    if (m->peer >= 0 && m->peer != g->rank) {
        record_waiting(r, m->work.record, &(uint32_t){ (uint32_t)g->world_ranks[m->peer] }, 1);
    }
}

/* m ends in every case; its error says how. */
static void begin(struct message *m)
{
    mesh_group *g = m->work.group;
    struct p2p *p = g->p2p;
    if (g->size > 1) {
        comm_count(g->comm, m->is_send ? MESH_COMM_SEND : MESH_COMM_RECV);
    }
    record_begin(m, g);
    pthread_mutex_lock(&p->lock);
    p->n_open++;
    if (p->is_over) {
        (void)failure_of_start(g, NULL);
        m->work.error = *err_last();
        p2p_over(p, m);
    } else if (!m->is_send) {
        p2p_deliver_kept(p, m);
    } else {
        fill_header(m, p);
        if (m->peer == g->rank) {
            send_to_self(p, m);
        } else {
            messages_push(&p->lanes[m->peer].sends, m);
        }
    }
    bool is_asleep = p->has_driver; /* and does not look at the stream of this one */
    pthread_mutex_unlock(&p->lock);
    if (is_asleep) {
        group_wake(p->streams);
    }
}

static int run(mesh_group *g, const mesh_transfer *t, mesh_message *ret_got)
{
    struct message m;
    int r = check(g, t);
    if (r < 0) {
        return r;
    }
    message_init(&m, g, t);
    m.ret_got = ret_got;
    m.is_exact = ret_got == NULL;
    begin(&m);
    return p2p_wait(&m, DEADLINE_NEVER, NULL);
}

static mesh_work *start(mesh_group *g, const mesh_transfer *t, mesh_message *ret_got)
{
    if (scope_current() == NULL) {
        (void)err_set(MESH_ESTATE, "no scope is open on this thread to own the work handle: call mesh_init() first, or "
                                   "mesh_attach() on a further thread");
        return NULL;
    }
    if (check(g, t) < 0) {
        return NULL;
    }
    struct message *m = mem_new(struct message);
    if (m == NULL) {
        (void)err_no_memory(sizeof *m, "a work handle");
        return NULL;
    }
    message_init(m, g, t);
    m->ret_got = ret_got;
    m->is_exact = ret_got == NULL;
    (void)group_ref(g);
    work_object_init(&m->work);
    begin(m);
    p2p_push(g->p2p);
    return &m->work;
}

/* The public functions --------------------------------------------------------------------------------------------- */

static void *writable(const void *buf)
{
    return (void *)(uintptr_t)buf; /* a send only reads it */
}

#define TRANSFER(...) (&(mesh_transfer){ __VA_ARGS__ })

int mesh_send(const void *buf, size_t count, mesh_dtype t, int peer, int tag, mesh_group *g)
{
    err_enter(__func__);
    return run(g, TRANSFER(MESH_SEND, writable(buf), count, t, peer, tag), NULL);
}

mesh_work *mesh_send_async(const void *buf, size_t count, mesh_dtype t, int peer, int tag, mesh_group *g)
{
    err_enter(__func__);
    return start(g, TRANSFER(MESH_SEND, writable(buf), count, t, peer, tag), NULL);
}

int mesh_recv(void *buf, size_t count, mesh_dtype t, int peer, int tag, mesh_group *g)
{
    err_enter(__func__);
    return run(g, TRANSFER(MESH_RECV, buf, count, t, peer, tag), NULL);
}

mesh_work *mesh_recv_async(void *buf, size_t count, mesh_dtype t, int peer, int tag, mesh_group *g)
{
    err_enter(__func__);
    return start(g, TRANSFER(MESH_RECV, buf, count, t, peer, tag), NULL);
}

static int no_message(void)
{
    return err_set(MESH_EINVAL, "the message is NULL: it says whom to receive from, and then what came");
}

int mesh_recv_message(void *buf, mesh_dtype t, mesh_message *m, mesh_group *g)
{
    err_enter(__func__);
    return m != NULL ? run(g, TRANSFER(MESH_RECV, buf, m->count, t, m->peer, m->tag), m) : no_message();
}

mesh_work *mesh_recv_message_async(void *buf, mesh_dtype t, mesh_message *m, mesh_group *g)
{
    err_enter(__func__);
    if (m == NULL) {
        (void)no_message();
        return NULL;
    }
    return start(g, TRANSFER(MESH_RECV, buf, m->count, t, m->peer, m->tag), m);
}

/* A batch ---------------------------------------------------------------------------------------------------------- */

struct batched {
    struct message message;
    mesh_message got;
};

/* Receives first, so that what is sent finds its buffer. */
static void begin_all(struct batched *all, const mesh_transfer *transfers, int n, mesh_group *g)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++) {
            if ((transfers[i].direction == MESH_SEND) == (pass == 1)) {
                message_init(&all[i].message, g, &transfers[i]);
                all[i].got = (mesh_message){ transfers[i].peer, transfers[i].tag, transfers[i].count };
                all[i].message.ret_got = &all[i].got;
                begin(&all[i].message);
            }
        }
    }
}

int mesh_batch_send_recv(mesh_transfer *transfers, int n, mesh_group *g)
{
    err_enter(__func__);
    int r = n < 0 || (n > 0 && transfers == NULL) ? err_set(MESH_EINVAL, "a batch of %d transfers", n) : 0;
    for (int i = 0; i < n && r == 0; i++) {
        r = check(g, &transfers[i]);
        r = r < 0 ? err_wrap(r, "number %d of the batch", i) : 0;
    }
    if (r < 0 || n == 0) {
        return r;
    }
    struct batched *all = mem_new_array(struct batched, (size_t)n);
    if (all == NULL) {
        return err_no_memory((size_t)n * sizeof *all, "a batch of messages");
    }
    begin_all(all, transfers, n, g);
    mesh_error first = { .status = MESH_OK };
    for (int i = 0; i < n; i++) {
        int one = p2p_wait(&all[i].message, DEADLINE_NEVER, NULL);
        if (one < 0 && r == 0) {
            r = one;
            first = *err_last();
        }
        if (transfers[i].direction == MESH_RECV) {
            transfers[i].peer = all[i].got.peer;
            transfers[i].tag = all[i].got.tag;
            transfers[i].count = all[i].got.count;
        }
    }
    (void)mem_free(all);
    return r < 0 ? err_restore(&first) : 0;
}
