/* daemon/jobs.h - all jobs of this daemon: each is a rendezvous, lives, a store, barriers, agreements and records.
 *
 * This is the pure whole: no sockets, time as an argument, everything that follows from a call in `ret`.  A job is over
 * when none of its ranks lives or waits and it was ended, or no connection is attached to it any more (a job that was
 * created waits until keep_until_ms for its first ranks, as its creator need not stay); a short record of it stays.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_JOBS_H
#define DAEMON_JOBS_H

#include <sys/types.h>

#include "daemon/agree.h"
#include "daemon/barrier.h"
#include "daemon/records.h"
#include "daemon/rendezvous.h"
#include "daemon/store.h"

struct blame {           /* who holds up the calls of a group, as far as the recorders show */
    uint32_t generation; /* 0: nobody was found yet */
    uint64_t group;
    int32_t culprit; /* -1: all that wait, in a circle */
    char words[160]; /* "rank 2 (node1, pid 4711): its process is stopped; ..." */
};

struct job {
    struct rendezvous rendezvous; /* .job: the name */
    struct liveness liveness;
    struct store store;
    struct barriers barriers;
    struct agreements agreements;
    struct records records;
    uid_t uid;
    uint64_t number; /* from 1, never again in this daemon */
    int64_t created_ms;
    size_t n_attached;     /* connections that created or joined it */
    int64_t keep_until_ms; /* not forgotten before, unless it ran; 0: at once */
    bool is_ended;
    char reason[256];   /* why it was ended */
    uint32_t judged;    /* the generation whose verdict was logged; 0: none */
    struct blame blame; /* the last one that was told */
};

enum job_state { JOB_WAITING, JOB_RUNNING, JOB_DEGRADED, JOB_DONE, JOB_FAILED };

struct finished_job {
    char name[MAX_NAME_BYTES + 1];
    uid_t uid;
    uint32_t size, generation;
    enum job_state state;
    char reason[256];
    int64_t ended_ms;
};

struct jobs {
    VEC(struct job *) list;                          /* by creation */
    struct finished_job finished[MAX_FINISHED_JOBS]; /* ring: the newest is at (n_finished - 1) % MAX */
    uint64_t n_finished;
    uint64_t n_named; /* by us */
    uint64_t n_created;
    size_t max_per_uid;
};

void jobs_init(struct jobs *j, size_t max_per_uid);
void jobs_fini(struct jobs *j);

/* name "": one is made up.  MESH_EEXIST, MESH_ETOOLARGE (too many of this uid), MESH_EINVAL. */
int jobs_create(struct jobs *j, const char *name, uint32_t size, uid_t uid, int64_t now_ms, struct job **ret_job);
/* MESH_ENOTFOUND, or MESH_EAUTH when it is another user's (uid 0 may touch all). */
int jobs_find(const struct jobs *j, const char *name, uid_t uid, struct job **ret_job);
/* true: it was over; it is freed and remembered as finished.  Who still waits for its store is answered. */
bool jobs_drop_if_over(struct jobs *j, struct job *job, int64_t now_ms, struct actions *ret);

const char *job_state_name(enum job_state s);
enum job_state job_state(const struct job *job, const char **ret_reason);

/* secret [SECRET_BYTES] is for the generation that may form by this; NULL: none forms. */
int job_join(struct job *job, const struct join_call *c, const uint8_t *secret, struct actions *ret);
/* The process of a rank has ended, as who started it says. */
int job_rank_ended(struct job *job, const struct ended_rank *e, struct actions *ret);
/* By a rank, or by who waits to become one; others get MESH_ESTATE. */
int job_leave(struct job *job, uint64_t client, const uint8_t *secret, int64_t now_ms, struct actions *ret);
/* The connection is gone: a rank of it has died. */
void job_client_gone(struct job *job, uint64_t client, const uint8_t *secret, int64_t now_ms, struct actions *ret);
void job_end(struct job *job, const char *reason, struct actions *ret);
void job_tick(struct job *job, int64_t now_ms, struct actions *ret);
void job_stop(struct job *job, const char *why, struct actions *ret); /* answers everyone who waits */
int64_t job_next_deadline(const struct job *job);

#endif
