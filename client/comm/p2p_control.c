/* client/comm/p2p_control.c - the control thread moves the messages that nobody waits for.
 *
 *      p2p_request_control() --post--> begin --> drive: passes until blocked --> watch the streams, tick --.
 *                                                ^                                                         |
 *                                                '------------ a stream is ready, or a tick ---------------'
 *
 * It lets go (and drops its reference to the group) as soon as no message is open or a caller waits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/error.h"
#include "comm/p2p.h"

#define TICK_MS    20
#define MAX_PASSES 32

static void drive(void *p2p);

static void drive_cb(bool readable, bool writable, void *p2p)
{
    (void)readable, (void)writable;
    drive(p2p);
}

static void stop_watches(struct p2p *p)
{
    p->ticker = loop_timer_stop(p->ticker);
    for (int i = 0; i < p->group->size; i++) {
        p->watches[i] = loop_watch_stop(p->watches[i]);
    }
}

/* True: something is ready already. */
static bool watch_streams(struct p2p *p)
{
    for (int i = 0; i < p->group->size; i++) {
        const struct lane *l = &p->lanes[i];
        bool want_read = p2p_wants_read(p, i), want_write = l->sends.head != NULL;
        if (l->link == NULL || l->lost_ms != 0 || (!want_read && !want_write)) {
            continue;
        }
        if (link_arm(l->link, want_read, want_write)) {
            return true;
        }
        short events = link_poll_events(l->link, want_read, want_write);
        p->watches[i] = loop_watch_start(p->loop, l->link->fd, events & POLLIN, events & POLLOUT, drive_cb, p);
    }
    return false;
}

static void let_go(struct p2p *p)
{
    p->watches = mem_free(p->watches);
    group_unref(p->group);
}

static void drive(void *p2p)
{
    struct p2p *p = p2p;
    stop_watches(p);
    pthread_mutex_lock(&p->lock);
    bool is_mine = p->n_open > 0 && !p->has_driver, is_busy = true;
    for (int i = 0; i < MAX_PASSES && is_mine && is_busy; i++) {
        is_busy = p2p_pass(p);
    }
    if (is_mine) {
        p2p_look_at_clock(p);
        is_mine = p->n_open > 0;
    }
    if (is_mine) {
        is_busy = is_busy || watch_streams(p);
        p->ticker = loop_timer_start(p->loop, is_busy ? 0 : TICK_MS, TICK_MS, drive, p);
    } else {
        p->is_control_asked = false; /* whoever leaves messages open asks again */
    }
    pthread_mutex_unlock(&p->lock);
    if (!is_mine) {
        let_go(p);
    }
}

static void begin(void *p2p)
{
    struct p2p *p = p2p;
    p->watches = mem_zalloc((size_t)p->group->size * sizeof(struct loop_watch *));
    if (p->watches == NULL) { /* the messages wait for their waiter */
        pthread_mutex_lock(&p->lock);
        p->is_control_asked = false;
        pthread_mutex_unlock(&p->lock);
        group_unref(p->group);
        return;
    }
    p->loop = p->group->session->loop;
    drive(p);
}

void p2p_request_control(struct p2p *p)
{
    if (p->is_control_asked) {
        return;
    }
    struct loop *loop = session_loop(p->group->session);
    (void)group_ref(p->group);
    p->is_control_asked = loop != NULL && loop_post(loop, begin, p) == 0;
    if (!p->is_control_asked) {
        group_unref(p->group);
    }
}
