/* tests/unit/session/ranks.h - N ranks as threads, each with a session over one local world.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef UNIT_SESSION_RANKS_H
#define UNIT_SESSION_RANKS_H

#include <check.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "session/session.h"

#define MAX_TEST_RANKS 9
#define LONG_MS        20000 /* nothing in these tests takes that long, unless something is broken */

struct rank {
    struct local_world *world;
    struct mesh_session *session;
    int rank, size;
    void (*fn)(struct rank *me);
    int64_t join_timeout_ms; /* 0: LONG_MS */
    int joined;              /* what session_join() returned */
    bool crashes;            /* ends without leaving */
};

static inline void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L }, NULL);
}

static inline struct control *control_of(struct rank *me)
{
    return me->session->control;
}

static inline int join(struct rank *me)
{
    const char *const addresses[] = { "unix:/somewhere", "tcp:127.0.0.1:4711", NULL };
    const struct join_request request = { .job = "test",
                                          .rank = -1,
                                          .addresses = addresses,
                                          .timeout_ms = me->join_timeout_ms != 0 ? me->join_timeout_ms : LONG_MS };
    me->session = session_new(LONG_MS);
    me->session->control = control_local_new(me->session, me->world, me->rank);
    session_set_current(me->session);
    return session_join(me->session, &request);
}

static inline void *run_rank(void *arg)
{
    struct rank *me = arg;
    me->joined = join(me);
    if (me->joined == 0 && me->fn != NULL) {
        me->fn(me);
    }
    if (!me->crashes && me->joined == 0) {
        ck_assert_int_eq(control_of(me)->ops->leave(control_of(me), LONG_MS), 0);
    }
    session_free(me->session);
    ck_assert_ptr_null(session_current());
    return NULL;
}

/* Runs rank[n] at the same time; the world is size ranks wide. */
static inline void run_some(struct rank *rank, int n, int size)
{
    pthread_t thread[MAX_TEST_RANKS];
    struct local_world *world = local_world_new(size);
    ck_assert_ptr_nonnull(world);
    for (int i = 0; i < n; i++) {
        rank[i].world = world;
        rank[i].rank = i;
        rank[i].size = size;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_rank, &rank[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    local_world_free(world);
}

static inline void run_ranks(int size, void (*fn)(struct rank *me))
{
    struct rank rank[MAX_TEST_RANKS] = { { .world = NULL } };
    for (int i = 0; i < size; i++) {
        rank[i].fn = fn;
    }
    run_some(rank, size, size);
    for (int i = 0; i < size; i++) {
        ck_assert_int_eq(rank[i].joined, 0);
    }
}

static inline void assert_sentence_has(const char *part)
{
    ck_assert_msg(strstr(mesh_last_error()->message, part) != NULL, "\"%s\" is not in \"%s\"", part,
                  mesh_last_error()->message);
}

#endif
