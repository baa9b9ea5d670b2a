/* client/comm/p2p_wait.c - waiting for messages: the driver, the clock, and how messages end before their time.
 *
 *   the group failed, or news of it   its status      every message of the group
 *   a stream that is needed ended     MESH_EPEER      after LOST_GRACE_MS: the control plane may know the true cause
 *   the deadline                      MESH_ETIMEDOUT  naming the message
 *
 * Each of these poisons the group: bytes of a message may be half on their way.
 * SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/p2p.h"
#include "comm/progress.h"
#include "session/waiting.h"

#define SPIN_US     50
#define NAP_MS      100
#define CLOCK_EVERY 16
#define LOOK_MS     20
#define CLOSE_MS    5000

/* Ending ----------------------------------------------------------------------------------------------------------- */

static void fail_list(struct p2p *p, struct messages *all, const mesh_error *why)
{
    while (all->head != NULL) {
        struct message *m = all->head;
        messages_remove(all, m);
        m->work.error = *why;
        p2p_over(p, m);
    }
}

void p2p_fail(struct p2p *p)
{
    mesh_error why = *err_last();
    p->is_over = true;
    group_poison(p->group, &why);
    fail_list(p, &p->receives, &why);
    for (int i = 0; i < p->group->size; i++) {
        struct lane *l = &p->lanes[i];
        fail_list(p, &l->sends, &why);
        if (l->target != NULL) {
            struct message *m = l->target;
            l->target = NULL; /* the rest of it is dropped */
            m->work.error = why;
            p2p_over(p, m);
        }
    }
    (void)err_restore(&why);
}

/* The control plane tells the other ranks. */
static void report_failure(struct p2p *p, int culprit)
{
    mesh_error why = *err_last();
    struct mesh_session *s = p->group->session;
    struct report r = { .kind = REPORT_TIMEOUT,
                        .status = (int)why.status,
                        .group = p->group->id,
                        .culprit = culprit >= 0 ? p->group->world_ranks[culprit] : -1,
                        .sentence = why.message };
    s->control->ops->report(s->control, &r, why.status == MESH_ETIMEDOUT ? &why : NULL);
    (void)err_restore(&why);
}

/* "the send of f32[16] to rank 2 (node1, pid 4711), tag 5, group world" */
static const char *describe(const struct p2p *p, const struct message *m, char *buf, size_t cap)
{
    char peer[100] = "any rank", tag[24] = "any tag";
    if (m->peer != MESH_ANY_SOURCE) {
        session_peer_name(p->group->session, p->group->world_ranks[m->peer], peer, sizeof peer);
    }
    if (m->tag != MESH_ANY_TAG) {
        snprintf(tag, sizeof tag, "tag %d", m->tag);
    }
    snprintf(buf, cap, "the %s of %s[%zu] %s %s, %s, group %s", m->is_send ? "send" : "receive", dtype_name(m->dtype),
             m->count, m->is_send ? "to" : "from", peer, tag, p->group->name);
    return buf;
}

static void message_timed_out(struct p2p *p, const struct message *m, int peer)
{
    char text[160];
    const struct lane *l = peer >= 0 ? &p->lanes[peer] : NULL;
    bool is_full = l != NULL && l->n_header == sizeof l->bytes && !l->is_settled;
    (void)err_set_about(MESH_ETIMEDOUT, peer >= 0 ? p->group->world_ranks[peer] : p->group->session->rank,
                        "%s is not over after %lld ms%s", describe(p, m, text, sizeof text),
                        (long long)(clock_now_ms() - m->work.begun_ms),
                        is_full ? ": too many messages of other tags stand before it, receive them first" : "");
    report_failure(p, peer);
    p2p_fail(p);
}

static enum peer_state state_of(const struct p2p *p, int peer)
{
    return atomic_load_explicit(&p->group->session->news[p->group->world_ranks[peer]].state, memory_order_acquire);
}

/* The stream with peer is over, or will never come. */
static bool is_lost(struct p2p *p, int peer, int64_t now_ms)
{
    struct lane *l = &p->lanes[peer];
    if (l->lost_ms == 0 && l->link == NULL && state_of(p, peer) == PEER_LEFT) {
        l->lost_ms = now_ms;
    }
    return l->lost_ms != 0 && now_ms - l->lost_ms >= LOST_GRACE_MS;
}

static bool are_all_lost(struct p2p *p, int64_t now_ms)
{
    for (int i = 0; i < p->group->size; i++) {
        if (i != p->group->rank && !is_lost(p, i, now_ms)) {
            return false;
        }
    }
    return p->group->size > 1;
}

static void message_lost(struct p2p *p, const struct message *m, int peer)
{
    char text[160], name[100];
    int rank = p->group->world_ranks[peer];
    session_peer_name(p->group->session, rank, name, sizeof name);
    (void)err_set_about(MESH_EPEER, rank, "%s has %s, before %s", name,
                        state_of(p, peer) == PEER_LEFT ? "left the job" : "ended its stream",
                        describe(p, m, text, sizeof text));
    report_failure(p, peer);
    p2p_fail(p);
}

/* One message that is not over; true: it has ended all of them. */
static bool look_at(struct p2p *p, const struct message *m, int peer, int64_t now_ms)
{
    if (peer >= 0 && peer != p->group->rank && is_lost(p, peer, now_ms)) {
        message_lost(p, m, peer);
        return true;
    }
    if (peer < 0 && are_all_lost(p, now_ms)) {
        message_lost(p, m, p->group->rank == 0 ? 1 : 0);
        return true;
    }
    if (now_ms >= m->work.deadline_ms) {
        message_timed_out(p, m, peer);
        return true;
    }
    return false;
}

/* A death is told with the message that it ends. */
static void name_message(const struct p2p *p)
{
    const mesh_error why = *err_last();
    char text[160];
    bool is_death = why.status == MESH_EPEER && p->receives.head != NULL;
    for (int i = 0; is_death && i < p->group->size; i++) {
        if (p->group->world_ranks[i] == why.rank && state_of(p, i) == PEER_DEAD) {
            (void)err_set_about(why.status, why.rank, "%s, before %s", p->group->session->news[why.rank].sentence,
                                describe(p, p->receives.head, text, sizeof text));
        }
    }
}

static bool has_news(struct p2p *p)
{
    if (failure_of_start(p->group, NULL) == 0) {
        return false;
    }
    if (err_last()->status == MESH_EPOISONED) { /* the reason itself, which stands since is_poisoned does */
        mesh_error why = p->group->poison;
        (void)err_restore(&why);
    }
    name_message(p);
    p2p_fail(p);
    return true;
}

void p2p_look_at_clock(struct p2p *p)
{
    int64_t now_ms = clock_now_ms();
    if (p->n_open == 0 || now_ms < p->next_look_ms || has_news(p)) {
        return;
    }
    p->next_look_ms = now_ms + LOOK_MS;
    for (const struct message *m = p->receives.head; m != NULL; m = m->next) {
        if (look_at(p, m, m->peer, now_ms)) {
            return;
        }
    }
    for (int i = 0; i < p->group->size; i++) {
        const struct lane *l = &p->lanes[i];
        const struct message *m = l->sends.head != NULL ? l->sends.head : l->target;
        if ((m != NULL && look_at(p, m, i, now_ms)) ||
            (l->target != NULL && l->target != m && look_at(p, l->target, i, now_ms))) {
            return;
        }
    }
}

void p2p_close(struct p2p *p)
{
    int64_t deadline_ms = deadline_in(CLOSE_MS);
    pthread_mutex_lock(&p->lock);
    if (p->n_open > 0) {
        (void)err_set(MESH_EABORTED, "group %s was freed with messages in flight", p->group->name);
        p2p_fail(p);
    }
    p->is_over = true;
    while (p->has_driver && deadline_left(deadline_ms) > 0) {
        pthread_mutex_unlock(&p->lock);
        group_wake(p->streams);
        pthread_mutex_lock(&p->lock);
        (void)condition_wait(&p->changed, &p->lock, deadline_in(NAP_MS));
    }
    pthread_mutex_unlock(&p->lock);
}

/* Driving ---------------------------------------------------------------------------------------------------------- */

/* The lock is let go of while it sleeps. */
static void sleep_in_poll(struct p2p *p, int64_t deadline_ms)
{
    mesh_group *g = p->streams;
    nfds_t n = 0;
    bool is_ready = !group_has_wake_fd(g);
    for (int i = 0; i < g->size && !is_ready; i++) {
        const struct lane *l = &p->lanes[i];
        bool want_read = p2p_wants_read(p, i), want_write = l->sends.head != NULL;
        if (l->link != NULL && l->lost_ms == 0 && (want_read || want_write)) {
            is_ready = link_arm(l->link, want_read, want_write);
            g->polls[n++] =
                (struct pollfd){ .fd = l->link->fd, .events = link_poll_events(l->link, want_read, want_write) };
        }
    }
    if (is_ready) {
        return;
    }
    g->polls[n++] = (struct pollfd){ .fd = g->wake_fd, .events = POLLIN };
    int nap_ms = (int)MIN(NAP_MS, deadline_left(deadline_ms) + 1);
    pthread_mutex_unlock(&p->lock);
    (void)poll(g->polls, n, nap_ms);
    uint64_t count;
    ssize_t drained = read(g->wake_fd, &count, sizeof count);
    (void)drained;
    pthread_mutex_lock(&p->lock);
}

/* The lock is let go of between looks, so that others can begin messages. */
static void drive(struct p2p *p, struct message *m, int64_t deadline_ms)
{
    unsigned n_idle = 0;
    int64_t idle_since_us = 0;
    while (!work_is_done(&m->work)) {
        bool has_moved = p2p_pass(p);
        if (has_moved || work_is_done(&m->work)) {
            n_idle = 0;
            idle_since_us = 0;
        } else if (++n_idle % CLOCK_EVERY == 0) {
            int64_t now_us = clock_now_us();
            p2p_look_at_clock(p);
            if (now_us / 1000 >= deadline_ms) {
                return;
            }
            idle_since_us = idle_since_us == 0 ? now_us : idle_since_us;
            if (now_us - idle_since_us >= SPIN_US && !work_is_done(&m->work)) {
                sleep_in_poll(p, MIN(deadline_ms, m->work.deadline_ms));
            }
        }
        pthread_mutex_unlock(&p->lock);
        if (!has_moved && p->group->comm->is_crowded) {
            sched_yield();
        }
        pthread_mutex_lock(&p->lock);
    }
}

static void wait_locked(struct p2p *p, struct message *m, int64_t deadline_ms)
{
    while (!work_is_done(&m->work) && deadline_left(deadline_ms) > 0) {
        if (p->has_driver) {
            (void)condition_wait(&p->changed, &p->lock, MIN(deadline_ms, deadline_in(NAP_MS)));
            continue;
        }
        p->has_driver = true;
        drive(p, m, deadline_ms);
        p->has_driver = false;
        pthread_cond_broadcast(&p->changed);
    }
}

int p2p_wait(struct message *m, int64_t deadline_ms, bool *ret_is_done)
{
    struct p2p *p = m->work.group->p2p;
    pthread_mutex_lock(&p->lock);
    wait_locked(p, m, deadline_ms);
    if (p->n_open > 0 && !p->has_driver) {
        p2p_request_control(p);
    }
    bool is_done = work_is_done(&m->work);
    char text[160];
    int r = is_done ? work_result(&m->work)
                    : err_set(MESH_ETIMEDOUT, "%s still goes on", describe(p, m, text, sizeof text));
    pthread_mutex_unlock(&p->lock);
    if (ret_is_done != NULL) {
        *ret_is_done = is_done;
    }
    return r;
}

void p2p_push(struct p2p *p)
{
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < 2 && p2p_pass(p); i++) {
    }
    if (p->n_open > 0 && !p->has_driver) {
        p2p_request_control(p);
    }
    pthread_mutex_unlock(&p->lock);
}
