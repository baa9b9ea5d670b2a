/* client/comm/failure.c - what ends works before their time: news, lost streams, deadlines; and what others are told.
 *
 *   news of an abort           MESH_EABORTED   every pending call; the session is over
 *   news about the group       its status      every pending call of the group; the group is poisoned
 *   news of a member's death   MESH_EPEER      the same, naming who died: once nothing of it is left to be read, and this call
 *                                              waits for it, or LOST_GRACE_MS later: a rank that died may have done its part
 *   a member left, or its      MESH_EPEER      after LOST_GRACE_MS: the control plane may know the true cause, and what was sent
 *   stream ended                               before may still be on its way
 *   the deadline               MESH_ETIMEDOUT  naming whom this rank waited for
 *   a frame of another call    MESH_EMISMATCH  both calls, in words (verify.c)
 *
 * What only this rank knows it reports, and the control plane tells the others.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/progress.h"

static enum peer_state state_of(const mesh_group *g, int peer)
{
    return atomic_load_explicit(&g->session->news[g->world_ranks[peer]].state, memory_order_acquire);
}

const char *describe_head(const mesh_group *g, char *buf, size_t cap)
{
    char call[100];
    snprintf(buf, cap, "%s (seq %" PRIu64 " of group %s)", call_text(&g->current->header, call, sizeof call),
             g->current->header.sequence, g->name);
    return buf;
}

/* News that ends calls at once: an abort, a report about the group, a death: of the member that died first, for the
 * others may have ended because of it.  call: the words of whoever needs it. */
static int check_news(const mesh_group *g, const char *call)
{
    int r = session_check(g->session, g->id, NULL, 0);
    int first = atomic_load_explicit(&g->session->first_dead, memory_order_acquire) - 1;
    int dead = -1;
    for (int i = 0; r == 0 && i < g->size; i++) {
        if (i != g->rank && state_of(g, i) == PEER_DEAD && (dead < 0 || g->world_ranks[i] == first)) {
            dead = g->world_ranks[i];
        }
    }
    return dead < 0 ? r : err_set_about(MESH_EPEER, dead, "%s, which %s needs", g->session->news[dead].sentence, call);
}

void group_poison(mesh_group *g, const mesh_error *why)
{
    pthread_mutex_lock(&g->lock);
    if (!atomic_load(&g->is_poisoned)) {
        g->poison = *why;
        atomic_store_explicit(&g->is_poisoned, true, memory_order_release);
    }
    pthread_mutex_unlock(&g->lock);
}

static int poisoned(mesh_group *g)
{
    return err_set_about(MESH_EPOISONED, g->poison.rank, "group %s failed earlier: %s", g->name, g->poison.message);
}

/* News for the call at the head. */
static int check_call(const mesh_group *g)
{
    char call[160];
    return check_news(g, describe_head(g, call, sizeof call));
}

/* News for a call that is not there yet. */
static int check_next(mesh_group *g, const struct frame_header *header)
{
    char call[160], text[100];
    pthread_mutex_lock(&g->lock);
    uint64_t next = g->n_calls + 1;
    pthread_mutex_unlock(&g->lock);
    if (header != NULL) {
        snprintf(call, sizeof call, "%s (seq %" PRIu64 " of group %s)", call_text(header, text, sizeof text), next,
                 g->name);
    } else {
        snprintf(call, sizeof call, "seq %" PRIu64 " of group %s", next, g->name);
    }
    return check_news(g, call);
}

int failure_of_start(mesh_group *g, const struct frame_header *header)
{
    struct mesh_session *s = g->session;
    uint64_t epoch = atomic_load_explicit(&s->epoch, memory_order_acquire);
    bool is_news = epoch != atomic_load_explicit(&g->checked_epoch, memory_order_relaxed);
    if (atomic_load_explicit(&s->is_aborted, memory_order_acquire)) {
        return check_next(g, header);
    }
    if (atomic_load_explicit(&g->is_poisoned, memory_order_acquire)) {
        return poisoned(g);
    }
    int r = is_news ? check_next(g, header) : 0;
    if (r < 0) {
        group_poison(g, err_last());
        return r;
    }
    atomic_store_explicit(&g->checked_epoch, epoch, memory_order_relaxed);
    return 0;
}

void fail_all(mesh_group *g)
{
    mesh_error why = *err_last();
    group_poison(g, &why);
    for (bool is_left = true; is_left;) {
        pthread_mutex_lock(&g->lock);
        is_left = g->head != NULL;
        pthread_mutex_unlock(&g->lock);
        if (is_left) {
            progress_finish(g, &why);
        }
    }
    g->lost.peer = -1;
    (void)err_restore(&why);
}

void report(mesh_group *g, enum report_kind kind, int culprit)
{
    const mesh_error *e = err_last();
    mesh_error why = *e;
    struct report r = {
        .kind = kind,
        .status = kind == REPORT_ABORT ? MESH_EABORTED : (int)e->status,
        .group = g->id,
        .sequence = g->current != NULL ? g->current->header.sequence : g->n_calls,
        .culprit = culprit >= 0 ? g->world_ranks[culprit] : -1,
        .sentence = why.message,
    };
    /* Asked before the recorder says that this call is over: then it is seen to wait. */
    g->session->control->ops->report(g->session->control, &r, why.status == MESH_ETIMEDOUT ? &why : NULL);
    (void)err_restore(&why);
}

void note_lost(mesh_group *g)
{
    int peer = g->exec.lost_peer;
    bool is_broken = g->exec.transfers != NULL && atomic_load(&g->links[peer])->kind == LINK_BROKEN;
    if (g->lost.peer >= 0 && !g->lost.has_left) {
        return;
    }
    g->lost = (struct lost){ .peer = peer, .since_ms = clock_now_ms() };
    if (is_broken) {
        snprintf(g->lost.why, sizeof g->lost.why, "%.199s", err_last()->message);
    }
    if (state_of(g, peer) == PEER_LEFT) {
        fail_lost(g);
    }
}

void fail_lost(mesh_group *g)
{
    int peer = g->lost.peer, rank = g->world_ranks[peer];
    char call[160], name[100];
    if (check_call(g) < 0) { /* the cause, which came together with the end of the stream */
        fail_all(g);
        return;
    }
    describe_head(g, call, sizeof call);
    session_peer_name(g->session, rank, name, sizeof name);
    if (state_of(g, peer) == PEER_LEFT) {
        (void)err_set_about(MESH_EPEER, rank, "%s, which %s needs", g->session->news[rank].sentence, call);
    } else if (g->lost.why[0] != 0) {
        (void)err_set_about(MESH_EPEER, rank, "%s: %s", call, g->lost.why);
    } else {
        (void)err_set_about(MESH_EPEER, rank, "%s ended its stream during %s", name, call);
    }
    report(g, REPORT_TIMEOUT, peer);
    fail_all(g);
}

int name_waited(const mesh_group *g, char *buf, size_t cap)
{
    int ranks[64], n = 0, first = -1;
    struct exec_wait wait;
    for (int pass = 0; pass < 2 && n == 0; pass++) { /* whom this rank hears from; else whom it cannot send to */
        for (size_t i = 0; i < exec_n_waits(&g->exec) && n < (int)ARRAY_SIZE(ranks); i++) {
            if (exec_wait_at(&g->exec, i, &wait) && (wait.want_read || pass == 1)) {
                first = n == 0 ? wait.peer : first;
                ranks[n++] = g->world_ranks[wait.peer];
            }
        }
    }
    if (n == 1) {
        session_peer_name(g->session, ranks[0], buf, cap);
    } else {
        session_rank_list(ranks, n, buf, cap);
    }
    return first;
}

void fail_timed_out(mesh_group *g)
{
    char call[130], names[100];
    if (check_call(g) < 0) {
        fail_all(g);
        return;
    }
    int first = name_waited(g, names, sizeof names);
    (void)err_set_about(MESH_ETIMEDOUT, first >= 0 ? g->world_ranks[first] : g->session->rank,
                        "%s: no answer of %s within %" PRId64 " ms", describe_head(g, call, sizeof call), names,
                        clock_now_ms() - g->current->begun_ms);
    report(g, REPORT_TIMEOUT, first);
    fail_all(g);
}

/* A member that left, and from which this call waits for something: the clock runs for it. */
static void note_left(mesh_group *g)
{
    struct exec_wait wait;
    for (size_t i = 0; i < exec_n_waits(&g->exec) && g->lost.peer < 0; i++) {
        if (exec_wait_at(&g->exec, i, &wait) && state_of(g, wait.peer) == PEER_LEFT) {
            g->lost = (struct lost){ .peer = wait.peer, .since_ms = clock_now_ms(), .has_left = true };
        }
    }
}

static bool waits_for_dead(const mesh_group *g)
{
    struct exec_wait wait;
    if (g->lost.peer >= 0 && state_of(g, g->lost.peer) == PEER_DEAD) {
        return true;
    }
    for (size_t i = 0; i < exec_n_waits(&g->exec); i++) {
        if (exec_wait_at(&g->exec, i, &wait) && state_of(g, wait.peer) == PEER_DEAD) {
            return true;
        }
    }
    return false;
}

/* What is known is a death (its sentence is the last error), and the call may get along without that rank.  At first
 * its streams are looked at once more: what it sent arrived before the news did. */
static bool may_still_end(mesh_group *g)
{
    const mesh_error why = *err_last();
    bool is_death = why.status == MESH_EPEER && session_check(g->session, g->id, NULL, 0) == 0;
    (void)err_restore(&why);
    int64_t now_ms = clock_now_ms();
    if (is_death && g->mourning_call != g->current->header.sequence) {
        g->mourning_call = g->current->header.sequence;
        g->mourning_since_ms = now_ms;
        return true;
    }
    return is_death && !waits_for_dead(g) && now_ms - g->mourning_since_ms < LOST_GRACE_MS;
}

bool look_at_news(mesh_group *g)
{
    uint64_t epoch = atomic_load_explicit(&g->session->epoch, memory_order_acquire);
    if (g->current == NULL || (epoch == g->seen_epoch && g->seen_call == g->current->header.sequence)) {
        return false;
    }
    g->seen_epoch = epoch;
    g->seen_call = g->current->header.sequence;
    if (epoch == 0) {
        return false; /* no news ever */
    }
    const mesh_error before = *err_last();
    if (check_call(g) == 0) {
        note_left(g);
        return false;
    }
    if (!may_still_end(g)) {
        fail_all(g);
        return true;
    }
    g->seen_call = 0;           /* it is looked at again at each pass */
    (void)err_restore(&before); /* a call that ends well leaves no error */
    return false;
}
