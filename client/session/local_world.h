/* client/session/local_world.h - a world inside this process, as its own files see it.
 *
 *      local_world ---- lock, changed      every change of the world wakes all who wait in it; each looks again
 *        |- member[rank]                   its session, while it is joined: news is delivered straight into it
 *        |- store, meetings                pure bookkeeping (local_store.c, meeting.c)
 *      local_control (one per rank) -----> the world, this rank's session
 *
 * Locks are taken in the order world, session.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_LOCAL_WORLD_H
#define SESSION_LOCAL_WORLD_H

#include <pthread.h>

#include "session/control.h"
#include "session/local_store.h"
#include "session/meeting.h"
#include "session/session.h"

enum member_state { MEMBER_ABSENT, MEMBER_JOINED, MEMBER_LEFT, MEMBER_DEAD };

struct local_member {
    enum member_state state;
    struct mesh_session *session; /* while joined */
    int n_addresses;
    char *address[SESSION_MAX_ADDRESSES];
};

struct local_world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int size, n_joined, n_controls;
    char job[128];
    uint8_t secret[SESSION_SECRET_BYTES];
    struct local_member *member; /* [size] */
    int *all_ranks;              /* [size] 0, 1, ... */
    struct local_store store;
    struct meetings meetings;
};

struct local_control {
    struct control base;
    struct local_world *world;
    int rank;
};

struct local_control *local_enter(struct control *c); /* takes the world's lock */
int local_exit(struct local_control *l, int r);       /* drops it; returns r */
void local_changed(struct local_world *w);            /* wakes everybody who waits */

/* 0: look again; MESH_ETIMEDOUT without a sentence: the caller knows what was missing; other: the session was aborted. */
int local_wait(struct local_control *l, int64_t deadline_ms);
int local_check_usable(struct local_control *l);                                    /* joined, not left, not aborted */
void local_describe_gone(int rank, enum member_state state, char *buf, size_t cap); /* "rank 2 (local, pid 7) died" */

/* local_calls.c */
int local_agree(struct control *c, const char *key, const int *ranks, int n, const char *descriptor,
                int64_t timeout_ms);
int local_barrier(struct control *c, const char *name, const int *ranks, int n, int64_t timeout_ms);
int local_set(struct control *c, struct bytes key, struct bytes value);
int local_get(struct control *c, struct bytes key, int64_t timeout_ms, struct buf *ret_value);
int local_add(struct control *c, struct bytes key, int64_t delta, int64_t *ret_value);
int local_compare_set(struct control *c, const struct store_swap *swap, struct buf *ret_value);
int local_wait_for_keys(struct control *c, const struct bytes *keys, size_t n, int64_t timeout_ms);
int local_delete(struct control *c, struct bytes key);

#endif
