/* client/comm/group_state.h - the inside of a group: its queue of works, its streams, who drives it.
 *
 * Works run one at a time, in the order in which they were begun (their frames are ordered).  Whoever moves the work at
 * the head is the *owner*:
 *
 *                 a caller waits                        works left, nobody waits
 *      NOBODY  ------------------>  CALLER   NOBODY  ---------------------------->  CONTROL (the control thread,
 *              <------------------                   <----------------------------  one short step at a time)
 *
 * `lock` guards the queue and the owner; the executor, links and `seen_...` belong to the owner without a lock.  A
 * caller that comes while CONTROL owns waits for the end of that step; CONTROL does not begin one while a caller waits.
 * A caller that leaves works behind asks for CONTROL (control_request), so none is ever forgotten.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_GROUP_STATE_H
#define COMM_GROUP_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/comm.h"
#include "comm/exec.h"
#include "comm/work.h"

enum owner { OWNER_NOBODY, OWNER_CALLER, OWNER_CONTROL };

#define GROUP_N_PLANS 16

struct kept_plan {
    struct plan_request request; /* counts point into the memory of this slot */
    struct plan *plan;           /* NULL: free */
    size_t *counts;              /* [2 x size] or NULL */
    uint64_t used_at;            /* sequence number of the last call that took it */
    int n_users;                 /* works that hold it */
    bool is_kept;                /* in the slots of the group; else made for one call */
};

struct lost { /* a stream ended: the control plane has LOST_GRACE_MS to say who is the cause */
    int peer; /* group rank; -1: none */
    int64_t since_ms;
    bool has_left; /* not the stream, only the news that the peer left: bytes of it may still come */
    char why[200];
};

#define LOST_GRACE_MS 300

struct watches; /* progress_control.c */
struct p2p;     /* p2p.h */

struct mesh_group {
    atomic_int references; /* the session's list, works, the control thread, handshakes */
    struct mesh_session *session;
    struct comm *comm;
    mesh_group *next, **link_in_list;
    char name[64];
    bool is_lent; /* made by the library, which frees it */
    uint64_t id;
    int *world_ranks; /* [size] */
    int size, rank;
    int place; /* in the recorder; -1: none */

    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* the owner let go */
    enum owner owner;
    int n_waiters;
    _Atomic bool is_closed;
    struct mesh_work *head, *tail;
    uint64_t n_calls;         /* sequence number of the last call */
    _Atomic bool is_poisoned; /* stored after poison, which then stands: may be read without the lock */
    mesh_error poison;
    struct kept_plan plans[GROUP_N_PLANS];
    int wake_fd;           /* -1: nobody has slept yet */
    bool is_control_asked; /* the control thread holds a reference and will look */

    /* The owner's. */
    struct exec exec;
    struct mesh_work *current;      /* the head, begun */
    uint64_t seen_epoch, seen_call; /* news looked at, for the call of this number */
    uint64_t mourning_call;         /* for the call of this number a member's death was noticed, */
    int64_t mourning_since_ms;      /* then */
    uint64_t told_late_call;        /* late.c: the call of this number has been told about */
    int64_t next_late_ms;
    struct lost lost;
    struct pollfd *polls; /* [size + 1] */
    int64_t next_look_ms; /* at streams that the call does not read now */
    bool *has_knocked;    /* [size] */

    _Atomic(struct link *) *links;  /* [size]; set once, by the control thread or by the owner (sim) */
    _Atomic bool *is_requested;     /* [size] */
    _Atomic uint64_t checked_epoch; /* starters have looked at the news up to here */

    struct watches *watches; /* the control thread's */
    struct p2p *p2p; /* p2p.h; NULL: this group is the streams of another one's messages, or has no member here */
};

mesh_group *group_ref(mesh_group *g);
void group_unref(mesh_group *g);
int group_index_of(const mesh_group *g, int world_rank); /* -1: not in it */
void group_wake(mesh_group *g);                          /* who sleeps in poll() looks again */
/* A stream to group rank `peer` is ready; false: there is one already. */
bool group_attach(mesh_group *g, int peer, struct link *link);
/* A stream from group rank `peer` arrived: attached, or a knock (see group_knock); takes the link. */
void group_take_stream(mesh_group *g, int peer, struct link *link);
struct link *group_find_link(void *group, int peer); /* exec's find_link */
/* Of two ranks the one that stands later in the group opens the stream, when it needs it.  The other one, which has
 * needed it for a while, connects once to ask for it: the stream itself is dropped, and the later rank dials. */
void group_knock(mesh_group *g, int peer);

/* work.c: the eventfd is there to sleep on; false: it is new, what came before would not wake us.  The owner only. */
bool group_has_wake_fd(mesh_group *g);

/* plan_cache.c: the plan of a call, made at most once for the same request.  Under the group's lock. */
int group_take_plan(mesh_group *g, const struct call *c, struct kept_plan **ret_plan);
void group_return_plan(struct kept_plan *p);
void group_free_plans(mesh_group *g);

#endif
