/* client/comm/plans/barrier.c - nobody leaves before all have entered, by dissemination, or by way of rank 0.
 *
 *     rounds   ceil(log2 size): in the round of distance d rank r tells r + d and hears r - d
 *     rounds   monitored: 2; everybody tells rank 0, then rank 0, which knows at any time who is late, tells everybody
 *     sent     no elements; one frame header a round and rank
 *
 * Source: Hensgen, Finkel, Manber 1988.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan.h"

int make_barrier(struct plan *p, const struct plan_request *q)
{
    struct plan_slice nothing = plan_slice(PLAN_OUT, 0, 0);
    for (int d = 1; d < q->size; d *= 2) {
        plan_round(p);
        plan_exchange(p, (q->rank + d) % q->size, nothing,
                      (struct plan_transfer){ .peer = (q->rank - d + q->size) % q->size, .receive = nothing });
    }
    return 0;
}

uint64_t sent_by_barrier(const struct plan_request *q)
{
    (void)q;
    return 0;
}

int make_barrier_monitored(struct plan *p, const struct plan_request *q)
{
    struct plan_slice nothing = plan_slice(PLAN_OUT, 0, 0);
    for (int round = 0; round < 2; round++) {
        plan_round(p);
        for (int i = q->rank == 0 ? 1 : q->size; i < q->size; i++) {
            plan_transfer(p, round == 0 ? (struct plan_transfer){ .peer = i, .receive = nothing }
                                        : (struct plan_transfer){ .peer = i, .send = nothing });
        }
        if (q->rank != 0) {
            plan_transfer(p, round == 0 ? (struct plan_transfer){ .peer = 0, .send = nothing }
                                        : (struct plan_transfer){ .peer = 0, .receive = nothing });
        }
    }
    return 0;
}
