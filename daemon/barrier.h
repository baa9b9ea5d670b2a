/* daemon/barrier.h - named barriers: who arrived and who is missing.
 *
 * A barrier is its name with its members; the same name among other members is another barrier.  When all are there, all
 * are answered and the barrier is forgotten, so the next call under the name is the next round.  It has one outcome for
 * all: the first deadline of a waiting rank, or the death of a member, fails it for everyone who waits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_BARRIER_H
#define DAEMON_BARRIER_H

#include "daemon/liveness.h"
#include "daemon/members.h"

struct barrier {
    char name[MAX_NAME_BYTES + 1];
    struct members members;
    struct ticket *arrived; /* [members.n]; client 0: not yet */
    size_t n_arrived;
    int64_t begin_ms, deadline_ms;
};

struct barriers {
    VEC(struct barrier *) open;
};

struct barrier_call {
    struct ticket who;
    uint32_t rank;
    const char *name;
    const uint32_t *member; /* [n_members]; none: all ranks */
    size_t n_members;
    int64_t now_ms, deadline_ms;
};

int barrier_arrive(struct barriers *b, const struct barrier_call *c, const struct liveness *l, struct actions *ret);
/* The rank is no longer alive: every barrier it belongs to fails. */
void barrier_rank_gone(struct barriers *b, uint32_t rank, const char *fate, struct actions *ret);
void barrier_tick(struct barriers *b, int64_t now_ms, struct actions *ret);
int64_t barrier_next_deadline(const struct barriers *b);                     /* INT64_MAX: none */
void barrier_stop(struct barriers *b, const char *why, struct actions *ret); /* MESH_EABORTED to all that wait */
void barrier_fini(struct barriers *b);

#endif
