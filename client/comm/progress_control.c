/* client/comm/progress_control.c - the control thread moves the works that nobody waits for.
 *
 *      control_request() --post--> begin --> drive: passes until blocked --> watch the streams, tick --.
 *                                             ^                                                        |
 *                                             '------------ a stream is ready, or a tick --------------'
 *
 * It lets go (and drops its reference) as soon as the queue is empty, a caller waits, or the group is closed.  Ticks look at
 * deadlines and news; a tick of 0 ms stands for "more to do at once" between turns of the loop.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/error.h"
#include "comm/progress.h"

#define TICK_MS    20
#define MAX_PASSES 32 /* in one turn, so that other groups and connections get theirs */

struct watches {
    struct loop *loop;
    struct loop_timer *ticker;
    struct loop_watch *at[]; /* [size] */
};

static void drive(void *group);

static void drive_cb(bool readable, bool writable, void *group)
{
    (void)readable, (void)writable;
    drive(group);
}

static void stop_watches(mesh_group *g)
{
    struct watches *w = g->watches;
    w->ticker = loop_timer_stop(w->ticker);
    for (int i = 0; i < g->size; i++) {
        w->at[i] = loop_watch_stop(w->at[i]);
    }
}

/* Watches what the call at the head waits for; true: something is ready already. */
static bool watch_streams(mesh_group *g)
{
    struct watches *w = g->watches;
    struct exec_wait wait;
    bool is_ready = false;
    for (size_t i = 0; i < exec_n_waits(&g->exec) && !is_ready; i++) {
        if (!exec_wait_at(&g->exec, i, &wait) || wait.link == NULL || wait.peer == g->lost.peer) {
            continue;
        }
        is_ready = link_arm(wait.link, wait.want_read, wait.want_write);
        short events = link_poll_events(wait.link, wait.want_read, wait.want_write);
        if (!is_ready) { /* one that cannot be watched is looked at by the ticks */
            w->at[wait.peer] = loop_watch_start(w->loop, wait.link->fd, events & POLLIN, events & POLLOUT, drive_cb, g);
        }
    }
    return is_ready;
}

static void let_go(mesh_group *g)
{
    stop_watches(g);
    g->watches = mem_free(g->watches);
    group_unref(g);
}

/* Becomes the owner, if there is something to do that nobody else does. */
static bool take(mesh_group *g)
{
    pthread_mutex_lock(&g->lock);
    bool is_mine = g->head != NULL && g->owner == OWNER_NOBODY && g->n_waiters == 0 && !atomic_load(&g->is_closed);
    if (is_mine) {
        g->owner = OWNER_CONTROL;
    } else {
        g->is_control_asked = false; /* whoever has it asks again when it leaves works behind */
    }
    pthread_mutex_unlock(&g->lock);
    return is_mine;
}

/* False: nothing is left to do here. */
static bool give_back(mesh_group *g)
{
    pthread_mutex_lock(&g->lock);
    g->owner = OWNER_NOBODY;
    bool stays = g->head != NULL && g->n_waiters == 0 && !atomic_load(&g->is_closed);
    if (!stays) {
        g->is_control_asked = false;
    }
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return stays;
}

static void drive(void *group)
{
    mesh_group *g = group;
    stop_watches(g);
    if (!take(g)) {
        let_go(g);
        return;
    }
    enum pass pass = PASS_PROGRESSED;
    for (int i = 0; i < MAX_PASSES && pass == PASS_PROGRESSED; i++) {
        pass = progress_pass(g);
    }
    progress_look_at_clock(g);
    bool is_busy = pass == PASS_PROGRESSED || watch_streams(g);
    if (!is_busy) {
        progress_record_waits(g);
    }
    g->watches->ticker = loop_timer_start(g->watches->loop, is_busy ? 0 : TICK_MS, TICK_MS, drive, g);
    if (!give_back(g)) {
        let_go(g);
    }
}

static void begin(void *group)
{
    mesh_group *g = group;
    struct watches *w = mem_zalloc(sizeof *w + (size_t)g->size * sizeof w->at[0]);
    if (w == NULL) { /* the works wait for their waiter */
        pthread_mutex_lock(&g->lock);
        g->is_control_asked = false;
        pthread_mutex_unlock(&g->lock);
        group_unref(g);
        return;
    }
    w->loop = g->session->loop;
    g->watches = w;
    drive(g);
}

void control_request(mesh_group *g)
{
    pthread_mutex_lock(&g->lock);
    bool is_needed = !g->is_control_asked && !atomic_load(&g->is_closed);
    g->is_control_asked = g->is_control_asked || is_needed;
    pthread_mutex_unlock(&g->lock);
    if (!is_needed) {
        return;
    }
    struct loop *loop = session_loop(g->session);
    (void)group_ref(g);
    if (loop == NULL || loop_post(loop, begin, g) < 0) {
        pthread_mutex_lock(&g->lock);
        g->is_control_asked = false;
        pthread_mutex_unlock(&g->lock);
        group_unref(g);
    }
}

static void nudge(void *group)
{
    mesh_group *g = group;
    if (g->watches != NULL) {
        drive(g);
    }
    group_unref(g);
}

void control_nudge(mesh_group *g)
{
    pthread_mutex_lock(&g->lock);
    bool is_held = g->is_control_asked;
    pthread_mutex_unlock(&g->lock);
    if (is_held) {
        (void)group_ref(g);
        if (loop_post(g->session->loop, nudge, g) < 0) {
            group_unref(g);
        }
    }
}
