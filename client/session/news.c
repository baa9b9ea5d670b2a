/* client/session/news.c - what a session has heard: who died or left, which group failed, whether it was aborted.
 *
 * News is written by the control thread (or by another rank's thread, in a world of threads) and read by calls that wait.
 * A record is written before its flag is stored with release, and is never written again: the first news about a peer, a
 * group, or the session stands.  Then `epoch` grows, and every registered eventfd wakes its sleeper.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/news.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "base/log.h"

/* The lock is held. */
static void wake(struct mesh_session *s)
{
    atomic_fetch_add_explicit(&s->epoch, 1, memory_order_acq_rel);
    for (size_t i = 0; i < s->wake_fds.n; i++) {
        uint64_t one = 1;
        ssize_t written = write(s->wake_fds.at[i], &one, sizeof one);
        (void)written; /* a full counter wakes its sleeper just as well */
    }
}

int session_add_wake_fd(struct mesh_session *s, int fd)
{
    pthread_mutex_lock(&s->lock);
    int *slot = VEC_PUSH(&s->wake_fds);
    if (slot != NULL) {
        *slot = fd;
    }
    pthread_mutex_unlock(&s->lock);
    return slot != NULL ? 0 : err_no_memory(sizeof *slot, "a wake-up descriptor");
}

void session_remove_wake_fd(struct mesh_session *s, int fd)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->wake_fds.n; i++) {
        if (s->wake_fds.at[i] == fd) {
            VEC_REMOVE(&s->wake_fds, i);
            break;
        }
    }
    pthread_mutex_unlock(&s->lock);
}

const char *session_peer_name(const struct mesh_session *s, int rank, char *buf, size_t cap)
{
    if (s->peers == NULL || rank < 0 || rank >= s->world_size) {
        snprintf(buf, cap, "rank %d", rank);
    } else {
        snprintf(buf, cap, "rank %d (%s, pid %d)", rank, s->peers[rank].host, s->peers[rank].pid);
    }
    return buf;
}

/* How many ranks from here on follow each other. */
static int run_length(const int *ranks, int n)
{
    int length = 1;
    while (length < n && ranks[length] == ranks[length - 1] + 1) {
        length++;
    }
    return length;
}

const char *session_rank_list(const int *ranks, int n, char *buf, size_t cap)
{
    const size_t reserve = sizeof " ... (2147483647 in all)";
    size_t len = (size_t)snprintf(buf, cap, n == 1 ? "rank" : "ranks");
    for (int i = 0; i < n;) {
        char piece[32];
        int length = run_length(ranks + i, n - i);
        if (length < 3) {
            length = 1;
            snprintf(piece, sizeof piece, " %d", ranks[i]);
        } else {
            snprintf(piece, sizeof piece, " %d-%d", ranks[i], ranks[i + length - 1]);
        }
        if (len + strlen(piece) + reserve > cap) {
            snprintf(buf + len, cap > len ? cap - len : 0, " ... (%d in all)", n);
            break;
        }
        len += (size_t)snprintf(buf + len, cap - len, "%s", piece);
        i += length;
    }
    return buf;
}

static void describe_peer(const struct mesh_session *s, int rank, enum peer_state state, char *buf, size_t cap)
{
    char name[120];
    session_peer_name(s, rank, name, sizeof name);
    snprintf(buf, cap, "%s %s", name, state == PEER_DEAD ? "died" : "left the job");
}

static void keep_for_later(struct mesh_session *s, int rank, enum peer_state state, const char *sentence)
{
    struct early_news *e = VEC_PUSH(&s->early_news);
    if (e == NULL) {
        log_warn("session", "no memory for the news that rank %d is gone, calls that need it will time out", rank);
        return;
    }
    *e = (struct early_news){ .rank = rank, .state = state };
    snprintf(e->sentence, sizeof e->sentence, "%s", sentence != NULL ? sentence : "");
}

void session_peer_news(struct mesh_session *s, int rank, enum peer_state state, const char *sentence)
{
    PRE(state == PEER_LEFT || state == PEER_DEAD);
    pthread_mutex_lock(&s->lock);
    if (s->news == NULL) {
        keep_for_later(s, rank, state, sentence);
    } else if (rank >= 0 && rank < s->world_size) {
        struct peer_news *news = &s->news[rank];
        if (atomic_load_explicit(&news->state, memory_order_relaxed) == PEER_ALIVE) {
            if (sentence != NULL && sentence[0] != 0) {
                snprintf(news->sentence, sizeof news->sentence, "%s", sentence);
            } else {
                describe_peer(s, rank, state, news->sentence, sizeof news->sentence);
            }
            atomic_store_explicit(&news->state, state, memory_order_release);
            if (state == PEER_DEAD && atomic_load_explicit(&s->first_dead, memory_order_relaxed) == 0) {
                atomic_store_explicit(&s->first_dead, rank + 1, memory_order_release);
            }
            wake(s);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

void news_replay(struct mesh_session *s)
{
    for (size_t i = 0; i < s->early_news.n; i++) {
        const struct early_news *e = &s->early_news.at[i];
        session_peer_news(s, e->rank, e->state, e->sentence);
    }
    VEC_FINI(&s->early_news);
}

void news_fini(struct mesh_session *s)
{
    VEC_FINI(&s->early_news);
    VEC_FINI(&s->group_news);
    VEC_FINI(&s->wake_fds);
    s->news = mem_free(s->news);
}

/* The lock is held. */
static void abort_locked(struct mesh_session *s, const mesh_error *why)
{
    if (!atomic_load_explicit(&s->is_aborted, memory_order_relaxed)) {
        s->abort_error = *why;
        atomic_store_explicit(&s->is_aborted, true, memory_order_release);
        wake(s);
    }
}

void session_abort(struct mesh_session *s, const mesh_error *why)
{
    pthread_mutex_lock(&s->lock);
    abort_locked(s, why);
    pthread_mutex_unlock(&s->lock);
}

/* The lock is held. */
static const struct group_news *find_group_news(const struct mesh_session *s, uint64_t group)
{
    for (size_t i = 0; i < s->group_news.n; i++) {
        if (s->group_news.at[i].group == group) {
            return &s->group_news.at[i];
        }
    }
    return NULL;
}

void session_group_news(struct mesh_session *s, uint64_t group, const mesh_error *error)
{
    pthread_mutex_lock(&s->lock);
    if (find_group_news(s, group) == NULL) {
        struct group_news *news = VEC_PUSH(&s->group_news);
        if (news != NULL) {
            *news = (struct group_news){ .group = group, .error = *error };
            wake(s);
        } else {
            abort_locked(s, error); /* no memory to remember it: better to stop everything than to hang */
        }
    }
    pthread_mutex_unlock(&s->lock);
}

void session_report_news(struct mesh_session *s, int reporter, int culprit, int status, uint64_t group,
                         const char *sentence)
{
    mesh_error e = { .status = (mesh_status)status, .rank = culprit >= 0 ? culprit : reporter, .where = "" };
    if (status != MESH_EABORTED) {
        snprintf(e.message, sizeof e.message, "%s", sentence);
        session_group_news(s, group, &e);
        return;
    }
    if (e.rank >= 0) {
        snprintf(e.message, sizeof e.message, "rank %d failed: %s", e.rank, sentence);
    } else {
        snprintf(e.message, sizeof e.message, "%s", sentence);
    }
    session_abort(s, &e);
}

static int check_group(struct mesh_session *s, uint64_t group)
{
    mesh_error e = { .status = MESH_OK };
    pthread_mutex_lock(&s->lock);
    const struct group_news *news = find_group_news(s, group);
    if (news != NULL) {
        e = news->error;
    }
    pthread_mutex_unlock(&s->lock);
    return e.status == 0 ? 0 : err_set_about(e.status, e.rank, "%s", e.message);
}

static int check_members(struct mesh_session *s, const int *world_ranks, int n, enum peer_state state)
{
    for (int i = 0; i < n; i++) {
        const struct peer_news *news = &s->news[world_ranks[i]];
        if (atomic_load_explicit(&news->state, memory_order_acquire) == state) {
            return err_set_about(MESH_EPEER, world_ranks[i], "%s", news->sentence);
        }
    }
    return 0;
}

static int check_first_dead(struct mesh_session *s, const int *world_ranks, int n)
{
    int first = atomic_load_explicit(&s->first_dead, memory_order_acquire) - 1;
    for (int i = 0; i < n && first >= 0; i++) {
        if (world_ranks[i] == first) {
            return err_set_about(MESH_EPEER, first, "%s", s->news[first].sentence);
        }
    }
    return 0;
}

int session_check(struct mesh_session *s, uint64_t group, const int *world_ranks, int n)
{
    if (atomic_load_explicit(&s->is_aborted, memory_order_acquire)) {
        return err_set_about(s->abort_error.status, s->abort_error.rank, "%s", s->abort_error.message);
    }
    int r = check_group(s, group);
    if (r == 0) {
        r = check_first_dead(s, world_ranks, n); /* the cause; others that died may be a consequence */
    }
    if (r == 0) {
        r = check_members(s, world_ranks, n, PEER_DEAD); /* who left may be a consequence, too */
    }
    return r == 0 ? check_members(s, world_ranks, n, PEER_LEFT) : r;
}
