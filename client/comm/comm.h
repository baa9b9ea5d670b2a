/* client/comm/comm.h - what comm keeps for a session: its groups, its listener, streams on their way, counters.
 *
 * One `struct comm` hangs in the session's slot SESSION_SLOT_COMM.  `lock` guards the lists; groups have locks of their own
 * (order: comm, then group).  A world of threads shares a sim_net and has no listener.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include <pthread.h>

#include "base/map.h"
#include "comm/collective.h"
#include "comm/group.h"
#include "comm/link.h"

#define N_COMM_KINDS (MESH_COMM_BARRIER + 1)

struct arrived { /* a stream whose group does not exist here yet */
    uint64_t group;
    int from; /* world rank */
    struct link *link;
};

#define COMM_MAX_ARRIVED 256

struct accepting; /* accept.h */
struct recorder;  /* record.h */

struct comm {
    struct mesh_session *session;
    struct sim_net *net;         /* borrowed; NULL: sockets */
    enum link_kind policy;       /* LINK_AUTO, LINK_TCP, LINK_UNIX, or LINK_SIM */
    struct accepting *accepting; /* NULL: no sockets */
    struct recorder *recorder;   /* of this rank's calls; NULL: none */
    mesh_group *world;
    bool is_crowded;                 /* fewer cores than ranks on this host: yield instead of spinning */
    int n_inits;                     /* of a world of threads: mesh_init() inside is counted, not done */
    bool is_simulated;               /* this rank is a thread of mesh_world_run() */
    pthread_t joined_by;             /* ends the session; others attach to it */
    struct local_world *owned_world; /* of a world of one: freed after the session */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t ended; /* a group is gone */
    int n_alive;          /* groups, also those that only a work or the control thread still holds */
    mesh_group *groups;   /* all of this session, linked by `next` */
    struct map n_made;    /* how many groups of just these ranks were made: ranks -> count */
    struct arrived arrived[COMM_MAX_ARRIVED];
    size_t n_arrived;

    _Atomic uint64_t count[N_COMM_KINDS], bytes[N_COMM_KINDS];
};

struct comm *comm_of(struct mesh_session *s);
/* Before the session joins; hangs itself into the session.  net NULL: sockets, by policy. */
int comm_new(struct mesh_session *s, struct sim_net *net, enum link_kind policy);
/* After the session joined: the world group, and from now on streams are accepted. */
int comm_start(struct mesh_session *s);
void comm_count(struct comm *c, mesh_comm_kind kind);

/* A stream that proved itself (control thread); takes the link. */
void comm_deliver(struct comm *c, uint64_t group, int from, struct link *link);

#endif
