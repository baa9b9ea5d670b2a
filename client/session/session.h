/* client/session/session.h - one rank's membership in one job: identity, peers, news about them, the control thread.
 *
 * A session belongs to the thread that joined; others attach.  It knows nothing of groups: comm registers what must wake
 * up when news arrives, and hangs its own state (and that of higher layers) into the extension slots.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include <mesh/group.h>
#include <pthread.h>
#include <stdatomic.h>

#include "session/control.h"
#include "wire/loop.h"

enum session_slot { SESSION_SLOT_COMM, SESSION_SLOT_DTENSOR, SESSION_SLOT_NN, N_SESSION_SLOTS };

enum peer_state { PEER_ALIVE, PEER_LEFT, PEER_DEAD };

struct peer_news {
    _Atomic enum peer_state state;
    char sentence[200]; /* written before state is stored with release; "rank 2 (node1, pid 4711) died" */
};

struct group_news { /* a report about one group: mismatch, timeout */
    uint64_t   group;
    mesh_error error;
};

struct mesh_session {
    struct control  *control;
    int              rank, world_size, local_rank, local_world_size;
    uint32_t         generation;
    uint8_t          secret[SESSION_SECRET_BYTES];
    char             job[128];
    int64_t          timeout_ms; /* of every wait after joining */
    struct peer     *peers;      /* [world_size] */
    struct local_world *world;   /* NULL: ranks are processes */

    /* News.  `epoch` counts it, so that a waiting call looks again only when it changed. */
    _Atomic uint64_t  epoch;
    struct peer_news *news;      /* [world_size] */
    _Atomic bool      is_aborted; /* abort_error stands (written before, release) */
    mesh_error        abort_error;
    pthread_mutex_t   lock;      /* guards what follows */
    struct group_news *group_news;
    size_t            n_group_news;
    int              *wake_fds;  /* eventfds written at every change of epoch */
    size_t            n_wake_fds;
    struct loop      *loop;      /* the control thread's; started by session_loop() */

    struct { void *state; void (*free)(void *state); } slot[N_SESSION_SLOTS];
};

/* This thread's session, or NULL; session_require() sets MESH_ESTATE "mesh_init() has not been called" as well. */
struct mesh_session *session_current(void);
struct mesh_session *session_require(void);
void                 session_set_current(struct mesh_session *s); /* also err_set_rank() */

/* Makes a session that has not joined yet.  control follows; then session_join(). */
struct mesh_session *session_new(int64_t timeout_ms);
int                  session_join(struct mesh_session *s, const struct join_request *request);
void                 session_free(struct mesh_session *s); /* leaves nothing running: slots freed in reverse, loop stopped */

/* The control thread's loop, started at first use; NULL: error set. */
struct loop *session_loop(struct mesh_session *s);

/* News from the control plane (any thread). */
void session_peer_news(struct mesh_session *s, int rank, enum peer_state state, const char *sentence);
void session_abort(struct mesh_session *s, const mesh_error *why); /* the first one stands: final for the session */
void session_group_news(struct mesh_session *s, uint64_t group, const mesh_error *error);

/* What a waiting call on a group must know: 0, or the status with the sentence set. */
int session_check(struct mesh_session *s, uint64_t group, const int *world_ranks, int n);

int  session_add_wake_fd(struct mesh_session *s, int fd);
void session_remove_wake_fd(struct mesh_session *s, int fd);

/* "rank 2 (node1, pid 4711)" into buf; returns buf. */
const char *session_peer_name(const struct mesh_session *s, int rank, char *buf, size_t cap);
int64_t     session_timeout(const struct mesh_session *s, int64_t timeout_ms); /* 0: the session's */

#endif
