/* client/session/control_local.c - the control plane of a world inside this process: ranks are threads, or there is
 * one.
 *
 * A rank joins, and then waits until all have; one that is freed without having left has died.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/local_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/util.h"
#include "session/waiting.h"

/* The world -------------------------------------------------------------------------------------------------------- */

static int fill_world(struct local_world *w)
{
    w->member = mem_zalloc((size_t)w->size * sizeof *w->member);
    w->all_ranks = mem_new_array(int, (size_t)w->size);
    if (w->member == NULL || w->all_ranks == NULL) {
        return err_no_memory((size_t)w->size * sizeof *w->member, "a world of threads");
    }
    for (int i = 0; i < w->size; i++) {
        w->all_ranks[i] = i;
    }
    return rng_secret(w->secret, sizeof w->secret);
}

struct local_world *local_world_new(int size)
{
    PRE(size > 0);
    struct local_world *w = mem_new(struct local_world);
    if (w == NULL) {
        err_no_memory(sizeof *w, "a world of threads");
        return NULL;
    }
    w->size = size;
    CHECK(pthread_mutex_init(&w->lock, NULL) == 0);
    condition_init(&w->changed);
    if (fill_world(w) < 0) {
        local_world_free(w);
        return NULL;
    }
    return w;
}

static void forget_addresses(struct local_member *m)
{
    while (m->n_addresses > 0) {
        mem_free(m->address[--m->n_addresses]);
    }
}

void local_world_free(struct local_world *w)
{
    if (w == NULL) {
        return;
    }
    PRE(w->n_controls == 0);
    for (int i = 0; w->member != NULL && i < w->size; i++) {
        forget_addresses(&w->member[i]);
    }
    local_store_fini(&w->store);
    meetings_fini(&w->meetings);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    mem_free(w->all_ranks);
    mem_free(w->member);
    mem_free(w);
}

struct local_control *local_enter(struct control *c)
{
    struct local_control *l = container_of(c, struct local_control, base);
    pthread_mutex_lock(&l->world->lock);
    return l;
}

int local_exit(struct local_control *l, int r)
{
    pthread_mutex_unlock(&l->world->lock);
    return r;
}

void local_changed(struct local_world *w)
{
    pthread_cond_broadcast(&w->changed);
}

int local_wait(struct local_control *l, int64_t deadline_ms)
{
    if (atomic_load_explicit(&l->base.session->is_aborted, memory_order_acquire)) {
        return session_check(l->base.session, 0, NULL, 0);
    }
    return condition_wait(&l->world->changed, &l->world->lock, deadline_ms) ? 0 : MESH_ETIMEDOUT;
}

int local_check_usable(struct local_control *l)
{
    if (atomic_load_explicit(&l->base.session->is_aborted, memory_order_acquire)) {
        return session_check(l->base.session, 0, NULL, 0);
    }
    return l->world->member[l->rank].state == MEMBER_JOINED
               ? 0
               : err_set(MESH_ESTATE, "rank %d has not joined its job, or has left it", l->rank);
}

/* Joining and leaving ---------------------------------------------------------------------------------------------- */

static int check_join(const struct local_control *l, const struct join_request *request)
{
    const struct local_world *w = l->world;
    if (request->world_size != 0 && request->world_size != w->size) {
        return err_set(MESH_EMISMATCH, "join: rank %d asks for %d ranks, but the job has %d", l->rank,
                       request->world_size, w->size);
    }
    if (request->rank >= 0 && request->rank != l->rank) {
        return err_set(MESH_EINVAL, "join: this is rank %d of the job, it cannot be rank %d", l->rank, request->rank);
    }
    if (w->member[l->rank].state != MEMBER_ABSENT) {
        return err_set(MESH_ESTATE, "join: rank %d has joined already", l->rank);
    }
    return 0;
}

static int take_addresses(struct local_member *m, const char *const *addresses)
{
    for (; addresses != NULL && *addresses != NULL; addresses++) {
        if (m->n_addresses == SESSION_MAX_ADDRESSES) {
            return err_set(MESH_ETOOLARGE, "join: a rank may have %d addresses", SESSION_MAX_ADDRESSES);
        }
        m->address[m->n_addresses] = mem_strdup(*addresses);
        if (m->address[m->n_addresses] == NULL) {
            return err_no_memory(strlen(*addresses) + 1, "an address");
        }
        m->n_addresses++;
    }
    return 0;
}

static int join_timed_out(struct local_world *w, int64_t timeout_ms)
{
    char missing[120] = "ranks";
    int *rank = mem_new_array(int, (size_t)w->size);
    int n = 0;
    for (int i = 0; rank != NULL && i < w->size; i++) {
        if (w->member[i].state == MEMBER_ABSENT) {
            rank[n++] = i;
        }
    }
    if (rank != NULL) {
        session_rank_list(rank, n, missing, sizeof missing);
    }
    mem_free(rank);
    return err_set(MESH_ETIMEDOUT, "join: %s did not come within %" PRId64 " ms (%d of %d are there)", missing,
                   timeout_ms, w->n_joined, w->size);
}

static int copy_peer(const struct local_member *m, int rank, struct peer *peer)
{
    *peer = (struct peer){ .host = "local", .pid = (int)getpid(), .local_rank = rank };
    for (int i = 0; i < m->n_addresses; i++) {
        peer->address[i] = mem_strdup(m->address[i]);
        if (peer->address[i] == NULL) {
            return err_no_memory(strlen(m->address[i]) + 1, "an address");
        }
        peer->n_addresses++;
    }
    return 0;
}

static void free_peers(struct peer *peers, int n)
{
    for (int i = 0; peers != NULL && i < n; i++) {
        for (int k = 0; k < peers[i].n_addresses; k++) {
            mem_free(peers[i].address[k]);
        }
    }
    mem_free(peers);
}

static int copy_peers(const struct local_world *w, struct peer **ret_peers)
{
    struct peer *peers = mem_zalloc((size_t)w->size * sizeof *peers);
    if (peers == NULL) {
        return err_no_memory((size_t)w->size * sizeof *peers, "the table of ranks");
    }
    for (int i = 0; i < w->size; i++) {
        int r = copy_peer(&w->member[i], i, &peers[i]);
        if (r < 0) {
            free_peers(peers, w->size);
            return r;
        }
    }
    *ret_peers = peers;
    return 0;
}

static int fill_reply(const struct local_control *l, struct join_reply *ret_reply)
{
    const struct local_world *w = l->world;
    struct join_reply reply = {
        .rank = l->rank, .world_size = w->size, .local_rank = l->rank, .local_world_size = w->size, .generation = 1
    };
    int r = copy_peers(w, &reply.peers);
    if (r < 0) {
        return r;
    }
    memcpy(reply.job, w->job, sizeof reply.job);
    memcpy(reply.secret, w->secret, sizeof reply.secret);
    *ret_reply = reply;
    return 0;
}

static void tell_others(struct local_world *w, int rank, enum peer_state state, const char *sentence)
{
    for (int i = 0; i < w->size; i++) {
        if (i != rank && w->member[i].state == MEMBER_JOINED) {
            session_peer_news(w->member[i].session, rank, state, sentence);
        }
    }
}

void local_describe_gone(int rank, enum member_state state, char *buf, size_t cap)
{
    snprintf(buf, cap, "rank %d (local, pid %d) %s", rank, (int)getpid(),
             state == MEMBER_DEAD ? "died" : "left the job");
}

/* This rank is joined no longer: everybody who waits for it must know. */
static void go(struct local_control *l, enum member_state state)
{
    struct local_world *w = l->world;
    char sentence[120];
    local_describe_gone(l->rank, state, sentence, sizeof sentence);
    w->member[l->rank].state = state;
    w->member[l->rank].session = NULL;
    tell_others(w, l->rank, state == MEMBER_DEAD ? PEER_DEAD : PEER_LEFT, sentence);
    meetings_lose(&w->meetings, l->rank, sentence);
    local_changed(w);
}

/* Waits until all have joined; who came and went since then had joined as well. */
static int wait_for_all(struct local_control *l, int64_t timeout_ms)
{
    struct local_world *w = l->world;
    int64_t deadline_ms = deadline_in(timeout_ms);
    int r = 0;
    while (r == 0 && w->n_joined < w->size) {
        r = local_wait(l, deadline_ms);
    }
    return r == MESH_ETIMEDOUT ? join_timed_out(w, timeout_ms) : r;
}

/* A rank that gives up before the world is complete makes room for another try. */
static void withdraw(struct local_control *l)
{
    struct local_member *m = &l->world->member[l->rank];
    if (l->world->n_joined < l->world->size) {
        forget_addresses(m);
        m->state = MEMBER_ABSENT;
        m->session = NULL;
        l->world->n_joined--;
    } else {
        go(l, MEMBER_DEAD);
    }
}

static int local_join(struct control *c, const struct join_request *request, struct join_reply *ret_reply)
{
    struct local_control *l = local_enter(c);
    struct local_world *w = l->world;
    struct local_member *m = &w->member[l->rank];
    int r = check_join(l, request);
    if (r < 0) {
        return local_exit(l, r);
    }
    r = take_addresses(m, request->addresses);
    if (r < 0) {
        forget_addresses(m);
        return local_exit(l, r);
    }
    snprintf(w->job, sizeof w->job, "%s", request->job != NULL ? request->job : "local");
    m->state = MEMBER_JOINED;
    m->session = c->session;
    w->n_joined++;
    local_changed(w);
    r = wait_for_all(l, request->timeout_ms);
    if (r == 0) {
        r = fill_reply(l, ret_reply);
    }
    if (r < 0) {
        withdraw(l);
    }
    return local_exit(l, r);
}

static int local_leave(struct control *c, int64_t timeout_ms)
{
    (void)timeout_ms; /* nothing to wait for */
    struct local_control *l = local_enter(c);
    if (l->world->member[l->rank].state == MEMBER_JOINED) {
        go(l, MEMBER_LEFT);
    }
    return local_exit(l, 0);
}

static void local_report(struct control *c, const struct report *report, mesh_error *inout_told)
{
    (void)inout_told; /* they hear what this rank says */
    struct local_control *l = local_enter(c);
    struct local_world *w = l->world;
    int status = report->kind == REPORT_ABORT ? MESH_EABORTED : report->status;
    for (int i = 0; i < w->size; i++) {
        if (i != l->rank && w->member[i].state == MEMBER_JOINED) {
            session_report_news(w->member[i].session, l->rank, report->culprit, status, report->group,
                                report->sentence);
        }
    }
    local_changed(w);
    local_exit(l, 0);
}

static void local_record_group(struct control *c, uint64_t group, const char *name, const int *ranks, int n)
{
    (void)c, (void)group, (void)name, (void)ranks, (void)n; /* nobody looks into a world of threads from outside */
}

static void local_free(struct control *c)
{
    struct local_control *l = local_enter(c);
    if (l->world->member[l->rank].state == MEMBER_JOINED) {
        go(l, MEMBER_DEAD);
    }
    l->world->n_controls--;
    local_exit(l, 0);
    mem_free(l);
}

static const struct control_ops local_ops = {
    .join = local_join,
    .leave = local_leave,
    .report = local_report,
    .record_group = local_record_group,
    .agree = local_agree,
    .barrier = local_barrier,
    .store_set = local_set,
    .store_get = local_get,
    .store_add = local_add,
    .store_compare_set = local_compare_set,
    .store_wait = local_wait_for_keys,
    .store_delete = local_delete,
    .free = local_free,
};

struct control *control_local_new(struct mesh_session *s, struct local_world *w, int rank)
{
    PRE(rank >= 0 && rank < w->size);
    struct local_control *l = mem_new(struct local_control);
    if (l == NULL) {
        err_no_memory(sizeof *l, "the control of a session");
        return NULL;
    }
    *l = (struct local_control){ .base = { .ops = &local_ops, .session = s }, .world = w, .rank = rank };
    s->world = w;
    pthread_mutex_lock(&w->lock);
    w->n_controls++;
    pthread_mutex_unlock(&w->lock);
    return &l->base;
}
