/* daemon/rendezvous.h - the forming of generations of one job: who waits to join, who is missing, when it is complete.
 *
 * One generation forms at a time.  It is complete when `size` candidates wait and no rank of the generation before is
 * alive; then all are answered at once.  While an older generation runs, only places whose rank has left or died may be
 * taken.  A rendezvous has one outcome: the first deadline of a candidate fails it for all who wait, and the next one
 * has the next number.
 * Who started the ranks tells of each process that ended: a rank that has, and neither waits nor lives, will not come,
 * and fails the rendezvous at once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_RENDEZVOUS_H
#define DAEMON_RENDEZVOUS_H

#include "daemon/liveness.h"

#define SECRET_BYTES 32

struct candidate {
    struct member member;
    int64_t begin_ms, deadline_ms;
};

struct ended_rank { /* its process; whether it had joined or not */
    uint32_t rank, pid;
    char words[64]; /* "was killed by signal 9 (Killed)", "exited with code 3" */
};

struct rendezvous {
    char job[MAX_NAME_BYTES + 1];
    uint32_t size;
    uint32_t forming;              /* the generation that forms now or next; the first is 1 */
    uint32_t running;              /* the one that formed last; 0: none yet */
    struct member *table;          /* [size] of `running`, by rank */
    uint8_t secret[SECRET_BYTES];  /* of `running` */
    VEC(struct candidate) waiting; /* by arrival */
    int64_t word_ms;               /* while somebody waits: when it is said who is missing */
    VEC(struct ended_rank) ended;  /* by end */
};

struct join_call {
    struct ticket who;
    uint32_t size; /* 0: as created */
    int32_t rank;  /* -1: any */
    uint32_t slot, pid;
    const char *host;
    char *const *address; /* [n_addresses], copied */
    size_t n_addresses;
    uint32_t generation; /* 0: whichever forms */
    int64_t now_ms, deadline_ms;
};

void rendezvous_init(struct rendezvous *v, const char *job, uint32_t size);
void rendezvous_fini(struct rendezvous *v);

/* Puts the caller among the candidates, or refuses: MESH_EMISMATCH (size), MESH_EEXIST (rank taken by another
 * candidate), MESH_ESTALE (generation over, or its rank alive), MESH_ESTATE (joined already), MESH_EINVAL. */
int rendezvous_join(struct rendezvous *v, const struct join_call *c, const struct liveness *l);
/* Forms the generation if it is complete: answers all, begins their lives.  secret [SECRET_BYTES].  true: it formed. */
bool rendezvous_form(struct rendezvous *v, struct liveness *l, const uint8_t *secret, int64_t now_ms,
                     struct actions *ret);
bool rendezvous_is_complete(const struct rendezvous *v, const struct liveness *l);

/* The client no longer waits; false: it did not.  *ret_who is whom to answer, if anyone listens. */
bool rendezvous_withdraw(struct rendezvous *v, uint64_t client, struct ticket *ret_who);
void rendezvous_tick(struct rendezvous *v, int64_t now_ms, const struct liveness *l, struct actions *ret);
/* Remembers it; MESH_EINVAL: there is no such rank. */
int rendezvous_rank_ended(struct rendezvous *v, const struct ended_rank *e);
/* Fails it when somebody waits for a rank that will not come: MESH_EPEER names it, and the job's watcher hears of
 * it. */
void rendezvous_give_up(struct rendezvous *v, const struct liveness *l, struct actions *ret);
int64_t rendezvous_next_deadline(const struct rendezvous *v);
void rendezvous_stop(struct rendezvous *v, const char *why, struct actions *ret);

/* The ranks nobody waits for yet, into rank [size]; returns how many.  Candidates without a wish count as the
 * lowest. */
size_t rendezvous_missing(const struct rendezvous *v, uint32_t *rank);

#endif
