/* client/comm/p2p_lane.c - moving the bytes of messages: what one pass does with the stream of each peer.
 *
 *      header --> is_settled: target (a receive), keeping (a copy), or neither (dropped) --> payload --> next header
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/p2p.h"
#include "comm/record.h"

#define CALL_BYTES ((size_t)512 << 10)

void messages_push(struct messages *all, struct message *m)
{
    m->next = NULL;
    if (all->tail != NULL) {
        all->tail->next = m;
    } else {
        all->head = m;
    }
    all->tail = m;
}

void messages_remove(struct messages *all, struct message *m)
{
    struct message **at = &all->head, *before = NULL;
    while (*at != NULL && *at != m) {
        before = *at;
        at = &before->next;
    }
    if (*at == m) {
        *at = m->next;
        all->tail = all->tail == m ? before : all->tail;
    }
}

bool p2p_fits(const struct message *m, int peer, uint32_t tag)
{
    return (m->peer == MESH_ANY_SOURCE || m->peer == peer) && (m->tag == MESH_ANY_TAG || (uint32_t)m->tag == tag);
}

struct message *p2p_take_waiting(struct p2p *p, int peer, uint32_t tag)
{
    struct message *m = p->receives.head;
    while (m != NULL && !p2p_fits(m, peer, tag)) {
        m = m->next;
    }
    if (m != NULL) {
        messages_remove(&p->receives, m);
    }
    return m;
}

void p2p_over(struct p2p *p, struct message *m)
{
    p->n_open--;
    record_over(p->group->comm->recorder, m->work.record, -1, (int)m->work.error.status);
    atomic_store_explicit(&m->work.state, WORK_DONE, memory_order_release); /* m is its waiter's from here on */
    pthread_cond_broadcast(&p->changed);
}

/* What came is not what the receive has room for: its error, else 0. */
static int check_fit(const struct p2p *p, const struct message *m, const struct frame_header *h, int peer)
{
    if (h->dtype == (uint8_t)m->dtype && (m->is_exact ? h->count == m->count : h->count <= m->count)) {
        return 0;
    }
    const mesh_group *g = p->group;
    return err_set_about(
        MESH_EMISMATCH, g->world_ranks[peer],
        "rank %d waits for %s%s[%zu] of tag %u in group %s, rank %d sends %s[%llu]: the message is dropped",
        g->session->rank, m->is_exact ? "" : "up to ", dtype_name(m->dtype), m->count, (unsigned)h->tag, g->name,
        g->world_ranks[peer], dtype_name((mesh_dtype)h->dtype), (unsigned long long)h->count);
}

static void tell(const struct message *m, const struct frame_header *h, int peer)
{
    if (m->ret_got != NULL) {
        *m->ret_got = (mesh_message){ .peer = peer, .tag = (int)h->tag, .count = (size_t)h->count };
    }
}

/* The receive m gets a message: false, and it is over, when it does not fit. */
static bool accept_for(struct p2p *p, struct message *m, const struct frame_header *h, int peer)
{
    tell(m, h, peer);
    if (check_fit(p, m, h, peer) == 0) {
        return true;
    }
    m->work.error = *err_last();
    p2p_over(p, m);
    return false;
}

/* Kept messages --------------------------------------------------------------------------------------------------- */

static bool has_room(const struct lane *l, uint64_t length)
{
    return l->n_kept < P2P_MAX_KEPT && length <= P2P_MAX_KEPT_BYTES && l->kept_bytes + length <= P2P_MAX_KEPT_BYTES;
}

int p2p_keep(struct p2p *p, int peer, const struct frame_header *h, struct kept **ret_kept)
{
    struct lane *l = &p->lanes[peer];
    if (!has_room(l, h->length)) {
        return MESH_ETOOLARGE;
    }
    struct kept *k = mem_alloc(sizeof *k + (size_t)h->length);
    if (k == NULL) {
        return MESH_ENOMEM;
    }
    k->next = NULL;
    k->header = *h;
    k->arrival = ++p->n_arrivals;
    l->kept_bytes += (size_t)h->length;
    l->n_kept++;
    *ret_kept = k;
    return 0;
}

void p2p_link_kept(struct lane *l, struct kept *k)
{
    if (l->kept_tail != NULL) {
        l->kept_tail->next = k;
    } else {
        l->kept_head = k;
    }
    l->kept_tail = k;
}

static void drop_kept(struct lane *l, struct kept *k)
{
    l->kept_bytes -= (size_t)k->header.length;
    l->n_kept--;
    (void)mem_free(k);
}

static void unlink_kept(struct lane *l, struct kept *k)
{
    struct kept **at = &l->kept_head, *before = NULL;
    while (*at != k) {
        before = *at;
        at = &before->next;
    }
    *at = k->next;
    l->kept_tail = l->kept_tail == k ? before : l->kept_tail;
}

static void give(struct p2p *p, int peer, struct kept *k, struct message *m)
{
    if (accept_for(p, m, &k->header, peer)) {
        memcpy(m->buffer, k->payload, k->header.length > 0 ? (size_t)k->header.length : 0);
        p2p_over(p, m);
    }
    drop_kept(&p->lanes[peer], k);
}

void p2p_deliver_kept(struct p2p *p, struct message *m)
{
    struct kept *first = NULL;
    int from = -1;
    for (int peer = 0; peer < p->group->size; peer++) {
        struct kept *k = p->lanes[peer].kept_head;
        while (k != NULL && !p2p_fits(m, peer, k->header.tag)) {
            k = k->next;
        }
        if (k != NULL && (first == NULL || k->arrival < first->arrival)) {
            first = k;
            from = peer;
        }
    }
    if (first == NULL) {
        messages_push(&p->receives, m);
        return;
    }
    unlink_kept(&p->lanes[from], first);
    give(p, from, first, m);
}

/* Receiving -------------------------------------------------------------------------------------------------------- */

bool p2p_wants_read(const struct p2p *p, int peer)
{
    const struct lane *l = &p->lanes[peer];
    if (l->lost_ms != 0) {
        return false;
    }
    if (l->n_header == sizeof l->bytes) {
        return l->is_settled;
    }
    for (const struct message *m = p->receives.head; m != NULL; m = m->next) {
        if (m->peer == MESH_ANY_SOURCE || m->peer == peer) {
            return true;
        }
    }
    return false;
}

static int check_header(const struct p2p *p, const struct lane *l, int peer)
{
    const struct frame_header *h = &l->header;
    size_t element = dtype_size((mesh_dtype)h->dtype);
    bool is_ours = h->kind == FRAME_P2P && h->group == p->streams->id &&
                   h->generation == p->group->session->generation && h->sequence == l->n_received + 1;
    if (is_ours && element > 0 && h->count <= MEMORY_MAX_BYTES && h->length == h->count * element &&
        h->tag <= INT32_MAX) {
        return 0;
    }
    return err_set_about(MESH_EPROTO, p->group->world_ranks[peer], "rank %d sends what is no message into group %s",
                         p->group->world_ranks[peer], p->group->name);
}

/* Where the payload of the header that is here goes; false: nowhere yet. */
static bool settle(struct p2p *p, struct lane *l, int peer)
{
    struct message *m = p2p_take_waiting(p, peer, l->header.tag);
    if (m != NULL) {
        l->target = accept_for(p, m, &l->header, peer) ? m : NULL;
    } else if (p2p_keep(p, peer, &l->header, &l->keeping) < 0) {
        return false;
    }
    l->is_settled = true;
    return true;
}

static void payload_done(struct p2p *p, struct lane *l, int peer)
{
    struct message *target = l->target, *waiting;
    struct kept *k = l->keeping;
    l->target = NULL;
    l->keeping = NULL;
    l->is_settled = false;
    l->n_header = l->n_payload = 0;
    l->n_received++;
    if (target != NULL) {
        p2p_over(p, target);
    } else if (k != NULL) {
        waiting = p2p_take_waiting(p, peer, k->header.tag); /* begun while it came */
        if (waiting != NULL) {
            give(p, peer, k, waiting);
        } else {
            p2p_link_kept(l, k);
        }
    }
}

static uint8_t *payload_target(struct p2p *p, const struct lane *l, size_t *len)
{
    if (l->target != NULL) {
        return l->target->buffer + l->n_payload;
    }
    if (l->keeping != NULL) {
        return l->keeping->payload + l->n_payload;
    }
    *len = MIN(*len, (size_t)65536);
    p->dropped = p->dropped != NULL ? p->dropped : mem_alloc(65536);
    return p->dropped;
}

/* As link_receive(): bytes moved, 0: nothing there (or no memory to drop it into), negative: over. */
static int64_t receive(struct lane *l, uint8_t *to, size_t len)
{
    struct iovec part = { .iov_base = to, .iov_len = len };
    return to == NULL ? 0 : link_receive(l->link, &part, 1);
}

/* One step; bytes moved, 0: blocked, negative: a status. */
static int64_t receive_step(struct p2p *p, struct lane *l, int peer)
{
    int64_t moved = 0;
    if (l->n_header < sizeof l->bytes) {
        moved = receive(l, l->bytes + l->n_header, sizeof l->bytes - l->n_header);
        if (moved <= 0) {
            return moved;
        }
        l->n_header += (size_t)moved;
        if (l->n_header < sizeof l->bytes) {
            return moved;
        }
        int r = frame_decode(l->bytes, &l->header);
        r = r < 0 ? r : check_header(p, l, peer);
        if (r < 0) {
            return r;
        }
    }
    if (!l->is_settled && !settle(p, l, peer)) {
        return moved;
    }
    size_t left = (size_t)l->header.length - l->n_payload;
    if (left > 0) {
        left = MIN(left, CALL_BYTES);
        uint8_t *to = payload_target(p, l, &left);
        int64_t n = receive(l, to, left);
        if (n < 0) {
            return n;
        }
        l->n_payload += (size_t)n;
        moved += n;
    }
    if (l->n_payload == l->header.length) {
        payload_done(p, l, peer);
        moved++; /* also without a byte: what follows is looked at */
    }
    return moved;
}

/* Sending ---------------------------------------------------------------------------------------------------------- */

static int64_t send_step(struct p2p *p, struct lane *l)
{
    struct message *m = l->sends.head;
    struct iovec parts[2];
    int n = 0;
    size_t of_payload = m->n_moved < FRAME_HEADER_BYTES ? 0 : m->n_moved - FRAME_HEADER_BYTES;
    if (m->n_moved < FRAME_HEADER_BYTES) {
        parts[n++] = (struct iovec){ .iov_base = m->header + m->n_moved, .iov_len = FRAME_HEADER_BYTES - m->n_moved };
    }
    if (m->bytes > of_payload) {
        parts[n++] =
            (struct iovec){ .iov_base = m->buffer + of_payload, .iov_len = MIN(m->bytes - of_payload, CALL_BYTES) };
    }
    int64_t moved = link_send(l->link, parts, n);
    if (moved <= 0) {
        return moved;
    }
    m->n_moved += (size_t)moved;
    if (m->n_moved == FRAME_HEADER_BYTES + m->bytes) {
        messages_remove(&l->sends, m);
        atomic_fetch_add_explicit(&p->group->comm->bytes[MESH_COMM_SEND], m->bytes, memory_order_relaxed);
        p2p_over(p, m);
    }
    return moved;
}

/* The pass --------------------------------------------------------------------------------------------------------- */

static bool is_asked_for(const struct p2p *p, int peer)
{
    const struct message *m = p->receives.head;
    while (m != NULL && m->peer != peer) {
        m = m->next;
    }
    return m != NULL;
}

/* The stream to peer, asked for when something is to be sent to it or received just from it. */
static struct link *find_link(struct p2p *p, int peer)
{
    struct lane *l = &p->lanes[peer];
    bool is_needed = l->sends.head != NULL || is_asked_for(p, peer) || p->group->comm->net != NULL;
    if (l->link == NULL) {
        l->link = is_needed ? group_find_link(p->streams, peer)
                            : atomic_load_explicit(&p->streams->links[peer], memory_order_acquire);
    }
    if (l->link == NULL && l->sends.head != NULL) {
        group_knock(p->streams, peer);
    }
    return l->link;
}

/* True: something moved. */
static bool step_lane(struct p2p *p, int peer)
{
    struct lane *l = &p->lanes[peer];
    bool has_moved = false;
    bool waits =
        l->sends.head != NULL || p2p_wants_read(p, peer) || (l->n_header == sizeof l->bytes && p->receives.head);
    if (peer == p->group->rank || l->lost_ms != 0 || !waits || find_link(p, peer) == NULL) {
        return false;
    }
    int64_t sent = l->sends.head != NULL ? send_step(p, l) : 0, received = 0;
    if (p2p_wants_read(p, peer) || (l->n_header == sizeof l->bytes && !l->is_settled)) {
        received = receive_step(p, l, peer);
    }
    has_moved = sent > 0 || received > 0;
    if (received < 0 || (sent < 0 && !has_moved)) {
        int r = (int)(received < 0 ? received : sent);
        l->lost_ms = clock_now_ms();
        if (r != MESH_EPEER) {
            p2p_fail(p);
        }
    }
    return has_moved;
}

bool p2p_pass(struct p2p *p)
{
    bool has_moved = false;
    for (int peer = 0; peer < p->group->size && p->n_open > 0; peer++) {
        has_moved = step_lane(p, peer) || has_moved;
    }
    return has_moved;
}
