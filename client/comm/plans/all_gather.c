/* client/comm/plans/all_gather.c - everybody learns everybody's part: in one direct exchange, or by Bruck's doubling.
 *
 *     direct   1 round of size - 1 transfers        bruck   ceil(log2 size) rounds
 *     sent     (size - 1) x total elements by all ranks together, both
 *
 * Bruck: rank r keeps the parts r, r + 1, ... in scratch, in that order; with d parts known it sends the first min(d, size -
 * d) to r - d and learns as many from r + d.  Two copies turn the rotated order into the right one.
 * Source: Bruck et al. 1997.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan.h"

#include "base/util.h"

static uint64_t total_of(const struct plan_request *q)
{
    uint64_t total = 0;
    for (int i = 0; i < q->size; i++) {
        total += q->out_counts != NULL ? q->out_counts[i] : q->count;
    }
    return total;
}

int make_all_gather_direct(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_given(&parts, q->size, q->count, q->out_counts);
    if (r < 0) {
        return r;
    }
    struct plan_slice own = plan_part(PLAN_OUT, &parts, q->rank);
    struct plan_slice in = plan_slice(PLAN_IN, 0, own.count);
    plan_round(p);
    plan_local(p, PLAN_COPY, own, in);
    for (int i = 1; i < q->size; i++) {
        int peer = (q->rank + i) % q->size;
        plan_transfer(p,
                      (struct plan_transfer){ .peer = peer, .send = in, .receive = plan_part(PLAN_OUT, &parts, peer) });
    }
    plan_parts_fini(&parts);
    return 0;
}

uint64_t sent_by_all_gather_direct(const struct plan_request *q)
{
    return (uint64_t)(q->size - 1) * total_of(q);
}

/* Where part (rank + i) begins in scratch. */
static size_t rotated(const struct plan_parts *parts, int rank, int i)
{
    int k = rank + i;
    size_t before = parts->offset[rank];
    return k <= parts->size ? parts->offset[k] - before
                            : plan_parts_total(parts) - before + parts->offset[k - parts->size];
}

int make_all_gather_bruck(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_given(&parts, q->size, q->count, q->out_counts);
    if (r < 0) {
        return r;
    }
    size_t total = plan_parts_total(&parts), before = parts.offset[q->rank];
    p->scratch_count = total;
    plan_round(p);
    plan_local(p, PLAN_COPY, plan_slice(PLAN_SCRATCH, 0, rotated(&parts, q->rank, 1)),
               plan_slice(PLAN_IN, 0, rotated(&parts, q->rank, 1)));
    for (int d = 1; d < q->size; d *= 2) {
        int n = MIN(d, q->size - d);
        size_t known = rotated(&parts, q->rank, d), after = rotated(&parts, q->rank, d + n);
        plan_exchange(p, (q->rank - d + q->size) % q->size, plan_slice(PLAN_SCRATCH, 0, rotated(&parts, q->rank, n)),
                      (struct plan_transfer){ .peer = (q->rank + d) % q->size,
                                              .receive = plan_slice(PLAN_SCRATCH, known, after - known) });
        plan_round(p);
    }
    plan_local(p, PLAN_COPY, plan_slice(PLAN_OUT, before, total - before), plan_slice(PLAN_SCRATCH, 0, total - before));
    plan_local(p, PLAN_COPY, plan_slice(PLAN_OUT, 0, before), plan_slice(PLAN_SCRATCH, total - before, before));
    plan_parts_fini(&parts);
    return 0;
}

uint64_t sent_by_bruck(const struct plan_request *q)
{
    return (uint64_t)(q->size - 1) * total_of(q);
}
