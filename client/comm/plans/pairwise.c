/* client/comm/plans/pairwise.c - reductions in pairs: part i is summed by rank i, one partner a round, then passed round.
 *
 *     reduce_scatter   size - 1 rounds, (size - 1) x total elements sent by all ranks together
 *     all_reduce       the same, then an all_gather by pairs: 2 (size - 1) rounds, 2 (size - 1) x count
 *
 * Rank r adds to its own part those of its partners in the order of the rounds (r ^ 1, r ^ 2, ... for a power of two, r - 1,
 * r - 2, ... otherwise): a function of ranks only.  Nothing is sent that was changed, so input stays what it was.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan.h"

/* Rounds in which every partner's share of part `rank` is added to `mine`. */
static void reduce_parts(struct plan *p, const struct plan_parts *parts, enum plan_buffer from, struct plan_slice mine)
{
    for (int i = 1; i < p->size; i++) {
        int to, sender;
        plan_partners(p->rank, p->size, i, &to, &sender);
        plan_round(p);
        plan_exchange(p, to, plan_part(from, parts, to),
                      (struct plan_transfer){ .peer = sender, .action = PLAN_REDUCE, .receive = mine });
    }
}

int make_reduce_scatter_pairwise(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_given(&parts, q->size, q->count, q->in_counts);
    if (r < 0) {
        return r;
    }
    struct plan_slice own = plan_part(PLAN_IN, &parts, q->rank);
    struct plan_slice mine = plan_slice(PLAN_OUT, 0, own.count);
    plan_round(p);
    plan_local(p, PLAN_COPY, mine, own);
    reduce_parts(p, &parts, PLAN_IN, mine);
    plan_round(p);
    plan_local(p, PLAN_FINISH, mine, (struct plan_slice){ .buffer = PLAN_NOTHING });
    plan_parts_fini(&parts);
    return 0;
}

uint64_t sent_by_reduce_scatter_pairwise(const struct plan_request *q)
{
    uint64_t total = 0;
    for (int i = 0; i < q->size; i++) {
        total += q->in_counts != NULL ? q->in_counts[i] : q->count;
    }
    return (uint64_t)(q->size - 1) * total;
}

int make_all_reduce_pairwise(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_split(&parts, q->size, q->count);
    if (r < 0) {
        return r;
    }
    struct plan_slice mine = plan_part(PLAN_OUT, &parts, q->rank);
    reduce_parts(p, &parts, PLAN_OUT, mine);
    plan_round(p);
    plan_local(p, PLAN_FINISH, mine, (struct plan_slice){ .buffer = PLAN_NOTHING });
    for (int i = 1; i < q->size; i++) {
        int to, sender;
        plan_partners(q->rank, q->size, i, &to, &sender);
        plan_round(p);
        plan_exchange(p, to, mine,
                      (struct plan_transfer){ .peer = sender, .receive = plan_part(PLAN_OUT, &parts, sender) });
    }
    plan_parts_fini(&parts);
    return 0;
}

uint64_t sent_by_all_reduce_pairwise(const struct plan_request *q)
{
    return 2 * (uint64_t)(q->size - 1) * q->count;
}
