/* client/comm/progress.c - one pass over the work at the head of a group's queue: what the owner does, whoever it is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/progress.h"

#include "base/clock.h"
#include "base/error.h"
#include "comm/record.h"

/* Begins the work at the head; false: the queue is empty. */
static bool begin_next(mesh_group *g)
{
    pthread_mutex_lock(&g->lock);
    struct mesh_work *w = g->head;
    pthread_mutex_unlock(&g->lock);
    if (w == NULL) {
        return false;
    }
    g->current = w;
    if (!w->is_recorded_running) {
        record_running(g->comm->recorder, w->record, clock_now_ns());
    }
    g->next_look_ms = 0;
    int r = exec_begin(&g->exec, &w->call, w->plan->plan, &w->header);
    if (r < 0) { /* no memory on this rank: the others would wait for nothing */
        report(g, REPORT_ABORT, -1);
        fail_all(g);
    }
    return true;
}

/* The work at the head is over, with `error` or (NULL) well. */
void progress_finish(mesh_group *g, const mesh_error *error)
{
    pthread_mutex_lock(&g->lock);
    struct mesh_work *w = g->head;
    if (g->current == w) {
        atomic_fetch_add_explicit(&g->comm->bytes[w->call.kind], g->exec.payload_sent, memory_order_relaxed);
        exec_end(&g->exec);
        g->current = NULL;
    }
    g->head = w->next;
    if (g->head == NULL) {
        g->tail = NULL;
    }
    group_return_plan(w->plan);
    w->plan = NULL;
    if (error != NULL) {
        w->error = *error;
    }
    record_over(g->comm->recorder, w->record, g->place, (int)w->error.status);
    atomic_store_explicit(&w->state, WORK_DONE, memory_order_release); /* w is its waiter's from here on */
    if (g->n_waiters > 1) {
        pthread_cond_broadcast(&g->changed);
    }
    pthread_mutex_unlock(&g->lock);
}

void progress_record_waits(mesh_group *g)
{
    uint32_t ranks[RECORDER_MAX_WAITED];
    size_t n = 0;
    struct exec_wait wait;
    if (g->current == NULL) {
        return;
    }
    for (size_t i = 0; i < exec_n_waits(&g->exec) && n < RECORDER_MAX_WAITED; i++) {
        if (exec_wait_at(&g->exec, i, &wait)) {
            ranks[n++] = (uint32_t)g->world_ranks[wait.peer];
        }
    }
    record_waiting(g->comm->recorder, g->current->record, ranks, n);
}

enum pass progress_pass(mesh_group *g)
{
    if (g->current == NULL) {
        if (!begin_next(g)) {
            return PASS_IDLE;
        }
        if (g->current == NULL) {
            return PASS_PROGRESSED; /* it failed to begin */
        }
    }
    switch (exec_step(&g->exec)) {
    case EXEC_PROGRESSED:
        if (g->lost.has_left) {
            g->lost.peer = -1; /* what it sent before it left is still coming */
            g->lost.has_left = false;
            g->seen_call = 0;
        }
        return PASS_PROGRESSED;
    case EXEC_DONE:
        progress_finish(g, NULL);
        return PASS_PROGRESSED;
    case EXEC_LOST:
        note_lost(g);
        break;
    case EXEC_FAILED:
        report(g, g->exec.status == MESH_EMISMATCH ? REPORT_MISMATCH : REPORT_TIMEOUT, g->exec.lost_peer);
        fail_all(g);
        return PASS_PROGRESSED;
    case EXEC_BLOCKED:
        break;
    }
    return look_at_news(g) ? PASS_PROGRESSED : PASS_BLOCKED;
}

void progress_look_at_clock(mesh_group *g)
{
    if (g->current == NULL) {
        return;
    }
    int64_t now_ms = clock_now_ms();
    if (g->lost.peer >= 0 && now_ms - g->lost.since_ms >= LOST_GRACE_MS) {
        fail_lost(g);
    } else if (now_ms >= g->current->deadline_ms) {
        fail_timed_out(g);
    } else {
        tell_late(g, now_ms);
        look_around(g, now_ms);
    }
}
