/* client/comm/plans/broadcast.c - the root's vector to all: by itself, down a tree, or dealt out in parts and passed round.
 *
 *     flat      1 round: the root sends to everybody         tree   ceil(log2 size) rounds, binomial
 *     scatter   2 rounds: part i to the rank at distance i from the root, then everybody passes its part to the others
 *     sent      (size - 1) x count elements by all ranks together, all three
 *
 * Source: van de Geijn 1994 (scatter and all_gather).
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan.h"

static uint64_t sent_once_each(const struct plan_request *q)
{
    return (uint64_t)(q->size - 1) * q->count;
}

int make_broadcast_flat(struct plan *p, const struct plan_request *q)
{
    struct plan_slice whole = plan_slice(PLAN_OUT, 0, q->count);
    plan_round(p);
    if (q->rank != q->root) {
        plan_transfer(p, (struct plan_transfer){ .peer = q->root, .receive = whole });
        return 0;
    }
    for (int i = 1; i < q->size; i++) {
        plan_transfer(p, (struct plan_transfer){ .peer = (q->rank + i) % q->size, .send = whole });
    }
    return 0;
}

uint64_t sent_by_flat(const struct plan_request *q)
{
    return sent_once_each(q);
}

/* v: the distance from the root.  In the round of distance d the ranks v < d, which have it, send to v + d. */
int make_broadcast_tree(struct plan *p, const struct plan_request *q)
{
    struct plan_slice whole = plan_slice(PLAN_OUT, 0, q->count);
    int v = (q->rank - q->root + q->size) % q->size;
    plan_round(p);
    for (int d = 1; d < q->size; d *= 2) {
        if (v < d && v + d < q->size) {
            plan_transfer(p, (struct plan_transfer){ .peer = (q->rank + d) % q->size, .send = whole });
        } else if (v >= d && v < 2 * d) {
            plan_transfer(p, (struct plan_transfer){ .peer = (q->rank - d + q->size) % q->size, .receive = whole });
        }
        plan_round(p);
    }
    return 0;
}

uint64_t sent_by_tree(const struct plan_request *q)
{
    return sent_once_each(q);
}

static void deal_out(struct plan *p, const struct plan_request *q, const struct plan_parts *parts)
{
    plan_round(p);
    for (int i = 1; i < q->size; i++) {
        plan_transfer(p,
                      (struct plan_transfer){ .peer = (q->rank + i) % q->size, .send = plan_part(PLAN_OUT, parts, i) });
    }
    plan_round(p);
    for (int i = 1; i < q->size; i++) {
        plan_transfer(p,
                      (struct plan_transfer){ .peer = (q->rank + i) % q->size, .send = plan_part(PLAN_OUT, parts, 0) });
    }
}

static void pass_round(struct plan *p, const struct plan_request *q, const struct plan_parts *parts, int v)
{
    struct plan_slice mine = plan_part(PLAN_OUT, parts, v);
    plan_round(p);
    plan_transfer(p, (struct plan_transfer){ .peer = q->root, .receive = mine });
    plan_round(p);
    for (int i = 1; i < q->size; i++) {
        int w = (v + i) % q->size;
        struct plan_slice theirs = plan_part(PLAN_OUT, parts, w);
        plan_transfer(p, (struct plan_transfer){ .peer = (q->root + w) % q->size,
                                                 .send = w == 0 ? (struct plan_slice){ .buffer = PLAN_NOTHING } : mine,
                                                 .receive = theirs });
    }
}

int make_broadcast_scatter(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_split(&parts, q->size, q->count);
    if (r < 0) {
        return r;
    }
    int v = (q->rank - q->root + q->size) % q->size;
    if (v == 0) {
        deal_out(p, q, &parts);
    } else {
        pass_round(p, q, &parts, v);
    }
    plan_parts_fini(&parts);
    return 0;
}

uint64_t sent_by_scatter(const struct plan_request *q)
{
    return sent_once_each(q);
}
