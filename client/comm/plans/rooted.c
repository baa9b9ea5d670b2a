/* client/comm/plans/rooted.c - gather and scatter: parts of all ranks to the root, or from it, in one round.
 *
 *     rounds   1: the root exchanges one frame with each of the others
 *     sent     the parts that are not the root's
 *
 * In a gather the root sends an empty frame to each: two ranks that both take themselves for the root must hear of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan.h"

int make_gather(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_given(&parts, q->size, q->count, q->out_counts);
    if (r < 0) {
        return r;
    }
    struct plan_slice mine = plan_part(PLAN_OUT, &parts, q->rank), in = plan_slice(PLAN_IN, 0, mine.count);
    struct plan_slice empty = plan_slice(PLAN_IN, 0, 0);
    plan_round(p);
    if (q->rank != q->root) {
        plan_transfer(p,
                      (struct plan_transfer){ .peer = q->root, .send = in, .receive = plan_slice(PLAN_SCRATCH, 0, 0) });
    } else {
        plan_local(p, PLAN_COPY, mine, in);
        for (int i = 1; i < q->size; i++) {
            int peer = (q->rank + i) % q->size;
            plan_transfer(
                p, (struct plan_transfer){ .peer = peer, .send = empty, .receive = plan_part(PLAN_OUT, &parts, peer) });
        }
    }
    plan_parts_fini(&parts);
    return 0;
}

int make_scatter(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_given(&parts, q->size, q->count, q->in_counts);
    if (r < 0) {
        return r;
    }
    struct plan_slice mine = plan_part(PLAN_IN, &parts, q->rank), out = plan_slice(PLAN_OUT, 0, mine.count);
    plan_round(p);
    if (q->rank != q->root) {
        plan_transfer(p, (struct plan_transfer){ .peer = q->root, .receive = out });
    } else {
        plan_local(p, PLAN_COPY, out, mine);
        for (int i = 1; i < q->size; i++) {
            int peer = (q->rank + i) % q->size;
            plan_transfer(p, (struct plan_transfer){ .peer = peer, .send = plan_part(PLAN_IN, &parts, peer) });
        }
    }
    plan_parts_fini(&parts);
    return 0;
}

static uint64_t all_but_root(const struct plan_request *q, const size_t *counts)
{
    uint64_t total = 0;
    for (int i = 0; i < q->size; i++) {
        total += i == q->root ? 0 : counts != NULL ? counts[i] : q->count;
    }
    return total;
}

uint64_t sent_by_gather(const struct plan_request *q)
{
    return all_but_root(q, q->out_counts);
}

uint64_t sent_by_scatter_parts(const struct plan_request *q)
{
    return all_but_root(q, q->in_counts);
}
