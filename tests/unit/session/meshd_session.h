/* tests/unit/session/meshd_session.h - one session joined, as rank 1 of 4, through a fake meshd.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef UNIT_SESSION_MESHD_SESSION_H
#define UNIT_SESSION_MESHD_SESSION_H

#include <stdio.h>

#include "fake_meshd.h"
#include "ranks.h"

static struct fake_meshd *fake;
static struct mesh_session *session;

/* What the fake noticed: written on its loop, read after an answer that came later. */
static Mesh__V1__Join seen_join;
static char seen_text[256];
static _Atomic int n_left;

static const int all[] = { 0, 1, 2, 3 };

/* Hello, join as rank 1 of 4, leave; the rest is `other`'s, or is not answered. */
static fake_fn other;

static inline void serve(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    switch (m->body_case) {
    case MESH__V1__CLIENT_MESSAGE__BODY_HELLO:
        fake_hello(f, m->request, 1);
        break;
    case MESH__V1__CLIENT_MESSAGE__BODY_JOIN:
        seen_join = *m->join;
        snprintf(seen_text, sizeof seen_text, "%s %s %zu %s", m->join->job, m->join->host, m->join->n_address,
                 m->join->address[0]);
        fake_joined(f, m->request, 1, 4);
        break;
    case MESH__V1__CLIENT_MESSAGE__BODY_LEAVE:
        atomic_fetch_add(&n_left, 1);
        fake_answer(f, m->request, 0, "");
        break;
    default:
        if (other != NULL) {
            other(f, m);
        }
        break;
    }
}

static inline int join_job(void)
{
    const char *const addresses[] = { "tcp:127.0.0.1:7", NULL };
    return session_join(
        session, &(struct join_request){
                     .job = "train", .world_size = 4, .rank = -1, .addresses = addresses, .timeout_ms = LONG_MS });
}

/* limit_ms: the session's time limit, which also bounds how long an answer may take. */
static inline void connect_and_join(fake_fn fn, int64_t limit_ms)
{
    other = fn;
    fake = fake_start(serve);
    session = session_new(limit_ms);
    session_set_current(session);
    session->control = control_meshd_new(session, fake_address(fake));
    ck_assert_ptr_nonnull(session->control);
    ck_assert_int_eq(join_job(), 0);
}

static inline void end(void)
{
    session_free(session);
    fake_stop(fake);
}

#endif
