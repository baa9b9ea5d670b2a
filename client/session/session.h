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

#include "base/vec.h"
#include "session/control.h"
#include "wire/loop.h"

enum session_slot { SESSION_SLOT_COMM, SESSION_SLOT_DTENSOR, SESSION_SLOT_NN, SESSION_SLOT_AUTOGRAD, N_SESSION_SLOTS };

enum peer_state { PEER_ALIVE, PEER_LEFT, PEER_DEAD };

struct peer_news {
    _Atomic enum peer_state state;
    char sentence[200]; /* written before state is stored with release; "rank 2 (node1, pid 4711) died" */
};

struct group_news { /* a report about one group: mismatch, timeout */
    uint64_t group;
    mesh_error error;
};

struct early_news { /* heard before the table of peers was there; told again when it is */
    int rank;
    enum peer_state state;
    char sentence[200];
};

struct mesh_session {
    struct control *control;
    int rank, world_size, local_rank, local_world_size;
    uint32_t generation;
    uint8_t secret[SESSION_SECRET_BYTES];
    char job[128];
    char recorder[SESSION_PATH_BYTES]; /* file of this rank's recorder; "": none */
    int64_t timeout_ms;                /* of every wait after joining */
    struct peer *peers;                /* [world_size] */
    struct local_world *world;         /* NULL: ranks are processes; set by control_local_new(), its maker's to free */

    /* News.  `epoch` counts it, so that a waiting call looks again only when it changed. */
    _Atomic uint64_t epoch;
    struct peer_news *news;  /* [world_size] */
    _Atomic int first_dead;  /* 1 + the rank that died first; 0: none: later ones may have ended because of it */
    _Atomic bool is_aborted; /* abort_error stands (written before, release) */
    mesh_error abort_error;
    pthread_mutex_t lock;              /* guards what follows */
    VEC(struct group_news) group_news; /* one per group: the first stands */
    VEC(struct early_news) early_news;
    VEC(int) wake_fds; /* eventfds written at every change of epoch */
    struct loop *loop; /* the control thread's; started by session_loop() */

    struct {
        void *state;
        void (*free)(void *state);
    } slot[N_SESSION_SLOTS];
};

/* This thread's session, or NULL; session_require() sets MESH_ESTATE "mesh_init() has not been called" as well. */
struct mesh_session *session_current(void);
struct mesh_session *session_require(void);
void session_set_current(struct mesh_session *s); /* also err_set_rank() */

/* Makes a session that has not joined yet (timeout_ms 0: SESSION_TIMEOUT_MS).  The control follows, which the session then
 * owns: s->control = control_..._new(s, ...); then session_join(). */
#define SESSION_TIMEOUT_MS 300000
struct mesh_session *session_new(int64_t timeout_ms);
int session_join(struct mesh_session *s, const struct join_request *request);
/* Leaves nothing running: slots freed in reverse, then the control (the others hear that this rank died, unless
 * control->ops->leave() came before), then the loop is stopped.  NULL is fine; not on the loop's thread. */
void session_free(struct mesh_session *s);

/* The control thread's loop, started at first use; NULL: error set. */
struct loop *session_loop(struct mesh_session *s);

/* News from the control plane (any thread).  sentence NULL: "rank 2 (node1, pid 4711) died", or "... left the job". */
void session_peer_news(struct mesh_session *s, int rank, enum peer_state state, const char *sentence);
void session_abort(struct mesh_session *s, const mesh_error *why); /* the first one stands: final for the session */
void session_group_news(struct mesh_session *s, uint64_t group,
                        const mesh_error *error); /* the first of a group stands */
/* What another rank reported, as the right one of the two above: MESH_EABORTED ends the session, with the sentence "rank 2
 * failed: ..."; any other status is about the group.  culprit -1: the reporter; reporter -1: the control plane itself. */
void session_report_news(struct mesh_session *s, int reporter, int culprit, int status, uint64_t group,
                         const char *sentence);

/* What a waiting call on a group must know: 0, or the status with the sentence set.  In this order: the session was
 * aborted; there is news about this group; a member died or left (MESH_EPEER, mesh_error.rank is that member's).
 * Ask only after a look at the call's own streams found nothing: who left may have sent all its bytes before. */
int session_check(struct mesh_session *s, uint64_t group, const int *world_ranks, int n);

int session_add_wake_fd(struct mesh_session *s, int fd);
void session_remove_wake_fd(struct mesh_session *s, int fd);

/* "rank 2 (node1, pid 4711)" into buf; returns buf. */
const char *session_peer_name(const struct mesh_session *s, int rank, char *buf, size_t cap);
/* "rank 3", "ranks 0-2 5", "ranks 0 2 4 ... (900 in all)" into buf; returns buf. */
const char *session_rank_list(const int *ranks, int n, char *buf, size_t cap);
int64_t session_timeout(const struct mesh_session *s, int64_t timeout_ms); /* 0: the session's */

#endif
