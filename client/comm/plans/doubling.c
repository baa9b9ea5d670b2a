/* client/comm/plans/doubling.c - recursive doubling: everybody has the whole sum after log2(size) exchanges.
 *
 * With T = the largest power of two <= size and rest = size - T, the first 2 x rest ranks fold in pairs first (even r
 * gives its vector to r + 1) and unfold at the end.  The T active ranks exchange whole vectors with the neighbour at
 * distance 1, 2, 4, ...:
 *
 *     rounds   log2 T, +2 when rest > 0
 *     sent     T log2 T x count + 2 rest x count, by all ranks together
 *
 * Both partners add the same two vectors, so all ranks compute the same bits.  For short vectors, where rounds are what costs.
 * Source: Thakur, Rabenseifner, Gropp 2005, section 4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan.h"

static int power_below(int size)
{
    int t = 1;
    while (2 * t <= size) {
        t *= 2;
    }
    return t;
}

static int active_index(int rank, int rest) /* -1: folded away */
{
    if (rank < 2 * rest) {
        return rank % 2 == 0 ? -1 : rank / 2;
    }
    return rank - rest;
}

static int active_rank(int index, int rest)
{
    return index < rest ? 2 * index + 1 : index + rest;
}

/* One round of the fold (even to odd) or the unfold (odd to even). */
static void fold(struct plan *p, struct plan_slice vector, struct plan_slice into, int giver_parity, int rest)
{
    if (p->rank >= 2 * rest) {
        return;
    }
    int peer = p->rank % 2 == 0 ? p->rank + 1 : p->rank - 1;
    if (p->rank % 2 == giver_parity) {
        plan_transfer(p, (struct plan_transfer){ .peer = peer, .send = vector });
    } else {
        plan_transfer(p, (struct plan_transfer){ .peer = peer, .receive = into });
    }
}

void plan_doubling(struct plan *p, struct plan_slice vector, size_t spare)
{
    int active = power_below(p->size), rest = p->size - active;
    int index = active_index(p->rank, rest);
    struct plan_slice other = plan_slice(PLAN_SCRATCH, spare, vector.count);
    bool has_other = false; /* `other` waits to be added */

    p->is_redundant = true;
    if (rest > 0) {
        plan_round(p);
        fold(p, vector, other, 0, rest);
        has_other = p->rank < 2 * rest && p->rank % 2 == 1;
    }
    for (int distance = 1; distance < active; distance *= 2) {
        plan_round(p);
        if (has_other) {
            plan_local(p, PLAN_COMBINE, vector, other);
        }
        has_other = index >= 0;
        if (has_other) {
            int peer = active_rank(index ^ distance, rest);
            plan_transfer(p, (struct plan_transfer){ .peer = peer, .send = vector, .receive = other });
        }
    }
    plan_round(p);
    if (has_other) {
        plan_local(p, PLAN_COMBINE, vector, other);
    }
    if (index >= 0) {
        plan_local(p, PLAN_FINISH, vector, (struct plan_slice){ .buffer = PLAN_NOTHING });
    }
    if (rest > 0) {
        fold(p, vector, vector, 1, rest);
        plan_round(p);
    }
}

uint64_t plan_doubling_sent(int size, uint64_t count)
{
    int active = power_below(size), rest = size - active;
    uint64_t vectors = 2 * (uint64_t)rest;
    for (int distance = 1; distance < active; distance *= 2) {
        vectors += (uint64_t)active;
    }
    return vectors * count;
}

int make_all_reduce_doubling(struct plan *p, const struct plan_request *q)
{
    p->scratch_count = q->count;
    plan_doubling(p, plan_slice(PLAN_OUT, 0, q->count), 0);
    return 0;
}

uint64_t sent_by_doubling(const struct plan_request *q)
{
    return plan_doubling_sent(q->size, q->count);
}

/* The whole input summed in scratch, of which each rank keeps its part: more bytes than need be, far fewer rounds. */
int make_reduce_scatter_doubling(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_given(&parts, q->size, q->count, q->in_counts);
    if (r < 0) {
        return r;
    }
    size_t total = plan_parts_total(&parts);
    struct plan_slice mine = plan_part(PLAN_SCRATCH, &parts, q->rank);
    p->scratch_count = 2 * total;
    plan_round(p);
    plan_local(p, PLAN_COPY, plan_slice(PLAN_SCRATCH, 0, total), plan_slice(PLAN_IN, 0, total));
    plan_doubling(p, plan_slice(PLAN_SCRATCH, 0, total), total);
    plan_round(p);
    plan_local(p, PLAN_COPY, plan_slice(PLAN_OUT, 0, mine.count), mine);
    plan_parts_fini(&parts);
    return 0;
}

uint64_t sent_by_reduce_scatter_doubling(const struct plan_request *q)
{
    uint64_t total = 0;
    for (int i = 0; i < q->size; i++) {
        total += q->in_counts != NULL ? q->in_counts[i] : q->count;
    }
    return plan_doubling_sent(q->size, total);
}
