/* client/comm/plans/all_to_all.c - everybody has a part for everybody: one direct exchange.
 *
 *     rounds   1, of size - 1 transfers
 *     sent     size (size - 1) x count by all ranks together; with split sizes, what this rank's say
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan.h"

int make_all_to_all_direct(struct plan *p, const struct plan_request *q)
{
    struct plan_parts in, out;
    int r = plan_parts_given(&in, q->size, q->count, q->in_counts);
    if (r < 0) {
        return r;
    }
    r = plan_parts_given(&out, q->size, q->count, q->out_counts);
    if (r < 0) {
        plan_parts_fini(&in);
        return r;
    }
    plan_round(p);
    plan_local(p, PLAN_COPY, plan_part(PLAN_OUT, &out, q->rank), plan_part(PLAN_IN, &in, q->rank));
    for (int i = 1; i < q->size; i++) {
        int peer = (q->rank + i) % q->size;
        plan_transfer(p, (struct plan_transfer){ .peer = peer,
                                                 .send = plan_part(PLAN_IN, &in, peer),
                                                 .receive = plan_part(PLAN_OUT, &out, peer) });
    }
    plan_parts_fini(&in);
    plan_parts_fini(&out);
    return 0;
}

uint64_t sent_by_all_to_all(const struct plan_request *q)
{
    if (q->in_counts == NULL) {
        return (uint64_t)q->size * (uint64_t)(q->size - 1) * q->count;
    }
    uint64_t sent = 0;
    for (int i = 0; i < q->size; i++) {
        sent += i == q->rank ? 0 : q->in_counts[i];
    }
    return sent;
}
