/* daemon/liveness.h - which ranks of the running generation are alive, and who must be told when one is not.
 *
 *      JOINED --leave--> LEFT        the others are told RANK_LEFT
 *         '------end of connection--> DEAD     the others are told RANK_DIED
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_LIVENESS_H
#define DAEMON_LIVENESS_H

#include <stddef.h>

#include "base/map.h"
#include "daemon/actions.h"
#include "daemon/ranks.h"

enum life { LIFE_JOINED, LIFE_LEFT, LIFE_DEAD };

struct life_of {
    enum life state;
    int64_t last_ms; /* its last message */
    uint32_t n_reports;
    char end[64]; /* how its process ended: "was killed by signal 9 (Killed)"; "" not known */
};

struct liveness {
    const struct member *table; /* [n], borrowed from the rendezvous */
    struct life_of *of;         /* [n] */
    uint32_t n, n_alive, n_dead;
    struct map rank_of;    /* client -> rank + 1 as a pointer */
    char first_death[200]; /* "rank 2 (node1, pid 4711) died"; "" none */
    uint64_t watcher;      /* a client that is no rank and is told as well: who created the job; 0: nobody */
};

int liveness_begin(struct liveness *l, const struct member *table, uint32_t n, int64_t now_ms);
void liveness_fini(struct liveness *l);

int liveness_rank_of(const struct liveness *l, uint64_t client);      /* -1: no rank of this generation */
uint64_t liveness_client_of(const struct liveness *l, uint32_t rank); /* 0: no such rank */
bool liveness_is_alive(const struct liveness *l, uint32_t rank);
void liveness_seen(struct liveness *l, uint64_t client, int64_t now_ms);

/* The client's rank left (died: without saying so); tells the others.  Returns the rank, -1 if it is none or was
 * gone. */
int liveness_gone(struct liveness *l, uint64_t client, bool died, struct actions *ret);
/* How the process ended that is this rank, for its fate; of another process: nothing. */
void liveness_process_ended(struct liveness *l, uint32_t rank, uint32_t pid, const char *how);
/* "rank 2 (node1, pid 4711) died", or how, of a rank that is not alive; returns buf. */
const char *liveness_fate(const struct liveness *l, uint32_t rank, char *buf, size_t cap);

struct report {
    int status;
    int32_t culprit; /* -1: the reporter */
    uint64_t group, sequence;
    const char *sentence;
};
/* Passes it on to all other living ranks; who asked for an answer gets the same. */
int liveness_report(struct liveness *l, struct ticket who, const struct report *r, struct actions *ret);
/* Tells every living rank that the job ends. */
void liveness_end(struct liveness *l, int status, const char *why, struct actions *ret);

#endif
