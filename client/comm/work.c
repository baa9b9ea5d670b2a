/* client/comm/work.c - one call from its start to the end of the wait for it; the waiting caller moves the bytes itself.
 *
 * With a core for every rank of the host the caller spins; with fewer it yields after each look that found nothing; after
 * SPIN_US without progress it sleeps in poll() on the streams of its call and the group's eventfd, never longer than
 * NAP_MS at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/work.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/choose.h"
#include "comm/p2p.h"
#include "comm/progress.h"
#include "comm/record.h"
#include "session/waiting.h"

#define SPIN_US     50
#define NAP_MS      100
#define CLOCK_EVERY 16 /* looks that found nothing between two looks at the clock */

bool work_is_done(const struct mesh_work *w)
{
    return atomic_load_explicit(&w->state, memory_order_acquire) == WORK_DONE;
}

/* Starting ---------------------------------------------------------------------------------------------------------- */

int work_check_group(const mesh_group *g)
{
    if (g == NULL) {
        return err_set(MESH_EINVAL, "the group is NULL: mesh_new_group() has failed, or mesh_init() was not called");
    }
    if (g->rank < 0) {
        return err_set(MESH_ENOTMEMBER, "rank %d is not in group %s", g->session->rank, g->name);
    }
    return 0;
}

/* The lock is held. */
static void record_start(struct mesh_work *w, mesh_group *g, int64_t now_ns)
{
    const struct frame_header *h = &w->header;
    w->is_recorded_running = g->head == NULL;
    w->record =
        record_call(g->comm->recorder, &(struct record){ .group = g->id,
                                                         .sequence = h->sequence,
                                                         .place = g->place,
                                                         .words = { h->collective, h->dtype, h->op, .root = h->root,
                                                                    .splits = h->tag, .count = h->count },
                                                         .queued_ns = now_ns,
                                                         .is_running = w->is_recorded_running });
}

static int enqueue(struct mesh_work *w, mesh_group *g, int64_t now_ns)
{
    int r = 0;
    pthread_mutex_lock(&g->lock);
    if (atomic_load(&g->is_closed)) {
        r = err_set(MESH_ESTATE, "group %s is being freed", g->name);
    } else {
        r = group_take_plan(g, &w->call, &w->plan);
    }
    if (r == 0) {
        w->header.sequence = ++g->n_calls;
        record_start(w, g, now_ns);
        if (g->tail != NULL) {
            g->tail->next = w;
        } else {
            g->head = w;
        }
        g->tail = w;
    }
    pthread_mutex_unlock(&g->lock);
    return r;
}

int work_start(struct mesh_work *w, mesh_group *g, const struct collective_call *call)
{
    int r = work_check_group(g);
    r = r < 0 ? r : call_prepare(&w->call, call, g->size, g->rank);
    if (r < 0) {
        return r;
    }
    uint64_t bytes = w->call.total * dtype_size(w->call.dtype);
    w->call.algorithm =
        w->call.algorithm != PLAN_NONE ? w->call.algorithm : plan_choose(w->call.kind, w->call.dtype, g->size, bytes);
    w->group = g;
    w->next = NULL;
    w->is_message = false;
    w->error.status = MESH_OK;
    w->header = (struct frame_header){ .generation = g->session->generation, .group = g->id };
    call_header(&w->call, &w->header);
    if ((r = failure_of_start(g, &w->header)) < 0) {
        return r;
    }
    int64_t now_ns = clock_now_ns();
    w->begun_ms = now_ns / 1000000;
    w->deadline_ms = w->begun_ms + (call->timeout_ms > 0 ? call->timeout_ms : g->session->timeout_ms);
    atomic_init(&w->state, WORK_QUEUED);
    if (g->size > 1) {
        comm_count(g->comm, w->call.kind);
    }
    return enqueue(w, g, now_ns);
}

/* Waiting ----------------------------------------------------------------------------------------------------------- */

bool group_has_wake_fd(mesh_group *g)
{
    if (g->wake_fd >= 0) {
        return true;
    }
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd >= 0 && session_add_wake_fd(g->session, fd) < 0) {
        close(fd);
        fd = -1;
    }
    pthread_mutex_lock(&g->lock);
    g->wake_fd = fd;
    pthread_mutex_unlock(&g->lock);
    return false; /* what came before it was there would not wake us: look once more */
}

static void sleep_in_poll(mesh_group *g, int64_t deadline_ms)
{
    struct exec_wait wait;
    nfds_t n = 0;
    bool is_ready = !group_has_wake_fd(g);
    for (size_t i = 0; i < exec_n_waits(&g->exec) && !is_ready; i++) {
        if (exec_wait_at(&g->exec, i, &wait) && wait.link != NULL && g->lost.peer != wait.peer) {
            is_ready = link_arm(wait.link, wait.want_read, wait.want_write);
            g->polls[n++] = (struct pollfd){ .fd = wait.link->fd,
                                             .events = link_poll_events(wait.link, wait.want_read, wait.want_write) };
        }
    }
    if (is_ready) {
        return;
    }
    progress_record_waits(g);
    int64_t nap_ms = MIN(NAP_MS, deadline_left(deadline_ms) + 1);
    g->polls[n++] = (struct pollfd){ .fd = g->wake_fd, .events = POLLIN };
    (void)poll(g->polls, n, (int)nap_ms);
    uint64_t count;
    ssize_t drained = read(g->wake_fd, &count, sizeof count);
    (void)drained;
}

static void relax(const mesh_group *g)
{
    if (g->comm->is_crowded) {
        sched_yield();
    } else {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
}

/* The owner: until the work is done, the deadline is over, or the group is closed. */
static void drive(mesh_group *g, struct mesh_work *w, int64_t deadline_ms)
{
    unsigned n_idle = 0;
    int64_t idle_since_us = 0;
    while (!work_is_done(w)) {
        if (progress_pass(g) == PASS_PROGRESSED) {
            n_idle = 0;
            idle_since_us = 0;
            continue;
        }
        if (++n_idle % CLOCK_EVERY != 0) {
            relax(g);
            continue;
        }
        int64_t now_us = clock_now_us();
        progress_look_at_clock(g);
        if (now_us / 1000 >= deadline_ms || atomic_load_explicit(&g->is_closed, memory_order_relaxed)) {
            return;
        }
        idle_since_us = idle_since_us == 0 ? now_us : idle_since_us;
        if (now_us - idle_since_us >= SPIN_US && !work_is_done(w)) {
            sleep_in_poll(g, MIN(deadline_ms, w->deadline_ms));
        } else {
            sched_yield(); /* with a core for each, two ranks may still have met on one: spinning keeps both there */
        }
    }
}

int work_result(const struct mesh_work *w)
{
    const mesh_error *e = &w->error;
    return e->status == MESH_OK ? 0 : err_set_about(e->status, e->rank, "%s", e->message);
}

/* Until the work is done or the deadline over, as the owner or behind one.  The lock is held. */
static void wait_locked(mesh_group *g, struct mesh_work *w, int64_t deadline_ms)
{
    while (!work_is_done(w) && deadline_left(deadline_ms) > 0) {
        if (g->owner != OWNER_NOBODY) {
            (void)condition_wait(&g->changed, &g->lock, MIN(deadline_ms, deadline_in(NAP_MS)));
            continue;
        }
        g->owner = OWNER_CALLER;
        pthread_mutex_unlock(&g->lock);
        drive(g, w, deadline_ms);
        pthread_mutex_lock(&g->lock);
        g->owner = OWNER_NOBODY;
        if (g->n_waiters > 1 || atomic_load(&g->is_closed)) {
            pthread_cond_broadcast(&g->changed);
        }
        if (atomic_load(&g->is_closed) && !work_is_done(w)) {
            (void)condition_wait(&g->changed, &g->lock, MIN(deadline_ms, deadline_in(NAP_MS)));
        }
    }
}

/* True: done; false: it goes on beyond the deadline. */
static bool wait_for(struct mesh_work *w, int64_t deadline_ms)
{
    mesh_group *g = w->group;
    pthread_mutex_lock(&g->lock);
    g->n_waiters++;
    wait_locked(g, w, deadline_ms);
    g->n_waiters--;
    bool leaves_works = g->head != NULL && g->n_waiters == 0;
    pthread_mutex_unlock(&g->lock);
    if (leaves_works) {
        control_request(g);
    }
    return work_is_done(w);
}

int work_wait(struct mesh_work *w, int64_t deadline_ms, bool *ret_is_done)
{
    if (w->is_message) {
        return p2p_wait(container_of(w, struct message, work), deadline_ms, ret_is_done);
    }
    bool is_done = work_is_done(w);
    if (!is_done) {
        is_done = wait_for(w, deadline_ms);
    }
    if (ret_is_done != NULL) {
        *ret_is_done = is_done;
    }
    if (is_done) {
        return work_result(w);
    }
    char text[100];
    return err_set(MESH_ETIMEDOUT, "%s (seq %llu of group %s) still goes on", call_text(&w->header, text, sizeof text),
                   (unsigned long long)w->header.sequence, w->group->name);
}
