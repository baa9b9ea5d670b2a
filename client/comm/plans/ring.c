/* client/comm/plans/ring.c - all_reduce round a ring: each part travels once to be summed, once more to be known.
 *
 *     rounds   2 (size - 1)
 *     sent     2 (size - 1) x count by all ranks together
 *
 * In round i of the first half rank r sends part r - i to r + 1 and adds part r - i - 1 from r - 1; it ends with part r + 1
 * whole.  Part k is summed in the order k, k + 1, ..., k - 1: a function of ranks only.
 * Source: Patarasuk & Yuan 2009.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan.h"

static int wrap(int rank, int size)
{
    return ((rank % size) + size) % size;
}

int make_all_reduce_ring(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_split(&parts, q->size, q->count);
    if (r < 0) {
        return r;
    }
    int next = wrap(q->rank + 1, q->size), previous = wrap(q->rank - 1, q->size), half = q->size - 1;
    for (int i = 0; i < 2 * half; i++) {
        bool is_gather = i >= half;
        int sent = wrap(is_gather ? q->rank + 1 - (i - half) : q->rank - i, q->size);
        int received = wrap(sent - 1, q->size);
        plan_round(p);
        if (i == half) {
            plan_local(p, PLAN_FINISH, plan_part(PLAN_OUT, &parts, sent),
                       (struct plan_slice){ .buffer = PLAN_NOTHING });
        }
        plan_exchange(p, next, plan_part(PLAN_OUT, &parts, sent),
                      (struct plan_transfer){ .peer = previous,
                                              .action = is_gather ? PLAN_STORE : PLAN_REDUCE,
                                              .receive = plan_part(PLAN_OUT, &parts, received) });
    }
    if (q->size == 1) {
        plan_round(p);
        plan_local(p, PLAN_FINISH, plan_part(PLAN_OUT, &parts, 0), (struct plan_slice){ .buffer = PLAN_NOTHING });
    }
    plan_parts_fini(&parts);
    return 0;
}

uint64_t sent_by_ring(const struct plan_request *q)
{
    return 2 * (uint64_t)(q->size - 1) * q->count;
}
