/* daemon/snapshot.h - what is known of all ranks of a job at this moment, for diagnose().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SNAPSHOT_H
#define DAEMON_SNAPSHOT_H

#include "daemon/diagnose.h"
#include "daemon/server.h"

#define ELSEWHERE_BYTES  160
#define DEFAULT_AFTER_MS 1000

struct snapshot {
    struct diagnose_input input;        /* points into the rest, and into the job */
    struct diagnose_rank *rank;         /* [n] */
    struct recorder_image **image;      /* [n], NULL: none to be had */
    char (*elsewhere)[ELSEWHERE_BYTES]; /* [n] */
    uint32_t n;                         /* 0: no generation runs */
};

/* One rank: its recorder is read into image (of the result it is NULL when there is none), what it waits for at meshd
 * into elsewhere [ELSEWHERE_BYTES]. */
struct diagnose_rank snapshot_look(const struct server *s, const struct job *job, uint32_t rank,
                                   struct recorder_image *image, char *elsewhere);

int snapshot_take(const struct server *s, struct job *job, int64_t after_ms, struct snapshot *ret_snapshot);
void snapshot_fini(struct snapshot *p);

/* Once per generation of a job: the verdict goes to the log. */
void snapshot_log_verdict(const struct server *s, struct job *job);

/* Whom the call that `r` reports really waits for: the rank that r blames may wait itself.  false: nobody can say. */
bool snapshot_find_cause(const struct server *s, struct job *job, const struct report *r, uint32_t reporter,
                         struct blame *ret_blame);

#endif
