/* client/comm/plan.h - a collective as data: rounds of transfers with peers, over slices of three buffers.
 *
 *   round 0   locals (copies on this rank), then all transfers of the round at once
 *   round 1   ...                            a round begins when every transfer of the one before is over
 *
 * A plan is a pure function of (collective, algorithm, rank, size, counts), made alike on all ranks, so that every send has
 * its receive in the round of the same number.  Buffers: IN is never written; OUT is the result (and the input as well
 * in all_reduce and broadcast, which replace one buffer); SCRATCH is the executor's, scratch_count elements long.
 * Offsets and counts are in elements.  A slice of no elements still sends its frame's header: that is how calls with
 * nothing to move are checked and ordered like any other.
 *
 * Within a round no transfer writes what another one reads or writes, at most one reduces, and a peer occurs at most once
 * (what goes to a peer and what comes from it are one transfer).  plan_check.c proves all of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_PLAN_H
#define COMM_PLAN_H

#include <mesh/debug.h>

#include "base/vec.h"

enum plan_buffer { PLAN_NOTHING, PLAN_IN, PLAN_OUT, PLAN_SCRATCH, N_PLAN_BUFFERS };

struct plan_slice {
    enum plan_buffer buffer; /* PLAN_NOTHING: there is no such side */
    size_t offset, count;
};

enum plan_action { PLAN_STORE, PLAN_REDUCE };

struct plan_transfer {
    int peer; /* group rank */
    enum plan_action action;
    struct plan_slice send, receive;
};

enum plan_local_kind {
    PLAN_COPY,    /* to = from */
    PLAN_COMBINE, /* to = to op from */
    PLAN_FOLD,    /* to = the vectors of all ranks, which stand in `from` one behind the other, reduced and finished */
    PLAN_FINISH,  /* to is fully reduced: divide when the op is avg */
};

struct plan_local {
    enum plan_local_kind kind;
    struct plan_slice to, from;
};

struct plan_round {
    size_t first_local, n_locals, first_transfer, n_transfers;
};

enum plan_algorithm {
    PLAN_NONE,
#define PLAN(id, kind, name, make, sent) PLAN_##id,
#include "comm/plans/plans.def"
#undef PLAN
    N_PLAN_ALGORITHMS
};

/* What a plan is made from.  Counts as in struct collective_call. */
struct plan_request {
    mesh_comm_kind kind;
    enum plan_algorithm algorithm;
    int rank, size, root;
    size_t count;
    const size_t *in_counts, *out_counts; /* [size] or NULL: every part has `count` elements */
};

struct plan {
    enum plan_algorithm algorithm;
    int rank, size;
    VEC(struct plan_round) rounds;
    VEC(struct plan_transfer) transfers;
    VEC(struct plan_local) locals;
    size_t scratch_count;
    size_t max_transfers; /* of one round */
    bool is_redundant;    /* several ranks compute the same result instead of receiving it */
    bool is_failed;       /* while it is made: out of memory */
};

struct plan *plan_new(const struct plan_request *q); /* NULL: error set */
struct plan *plan_free(struct plan *p);              /* returns NULL */

const char *plan_name(enum plan_algorithm a); /* "ring" */
mesh_comm_kind plan_kind(enum plan_algorithm a);
uint64_t plan_elements_sent(const struct plan_request *q); /* by all ranks together, as the plan's formula says */

/* For plan makers: a failed push marks the plan and later ones do nothing; plan_new() looks once at the end. */
void plan_round(struct plan *p); /* opens the next round; what follows goes into it */
void plan_local(struct plan *p, enum plan_local_kind kind, struct plan_slice to, struct plan_slice from);
void plan_transfer(struct plan *p, struct plan_transfer t);
/* Sends to one peer and receives from another, or both from the same. */
void plan_exchange(struct plan *p, int to, struct plan_slice send, struct plan_transfer receive);
struct plan_slice plan_slice(enum plan_buffer b, size_t offset, size_t count);

/* Parts of a vector, one per rank: part i is [offset[i], offset[i + 1]). */
struct plan_parts {
    size_t *offset; /* [size + 1] */
    int size;
};

int plan_parts_given(struct plan_parts *ret, int size, size_t count, const size_t *counts);
int plan_parts_split(struct plan_parts *ret, int size, size_t count); /* of equal length but for the last ones */
void plan_parts_fini(struct plan_parts *p);
size_t plan_parts_total(const struct plan_parts *p);
struct plan_slice plan_part(enum plan_buffer b, const struct plan_parts *p, int i);

/* Recursive doubling over [offset, offset + count) of a buffer, for any number of ranks (plans/doubling.c): needs as much
 * scratch again at `spare`. */
void plan_doubling(struct plan *p, struct plan_slice vector, size_t spare);
uint64_t plan_doubling_sent(int size, uint64_t count);
/* The partner of `rank` in round i of size - 1: everyone meets everyone once.  Whom to send to, whom to receive from. */
void plan_partners(int rank, int size, int i, int *ret_to, int *ret_from);

/* The makers, one per row of plans.def. */
#define PLAN(id, kind, name, make, sent)                                                                               \
    int make(struct plan *p, const struct plan_request *q);                                                            \
    uint64_t sent(const struct plan_request *q);
#include "comm/plans/plans.def"
#undef PLAN

#endif
