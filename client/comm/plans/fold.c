/* client/comm/plans/fold.c - reductions whose parts travel unreduced and meet in scratch, one slot per rank, to be folded
 * there in the order of ranks.
 *
 *     reduce_scatter   1 round: part i of everybody to rank i             (size - 1) x total elements sent by all together
 *     all_reduce       the same, then everybody's part to everybody       2 (size - 1) x count
 *     reduce           the same, then everybody's part to the root        (size - 1) x count + what is not the root's part
 *     reduce flat      1 round: everybody's vector to the root            (size - 1) x count
 *
 * Every sum is taken in the order of ranks and rounded once, so this is how 16-bit floats are reduced; reduce takes it for
 * all dtypes.  Input is never written.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan.h"

/* The parts number `rank` of all ranks meet in scratch, in slots of its length, and `result` becomes their fold. */
static void meet(struct plan *p, const struct plan_parts *parts, enum plan_buffer from, struct plan_slice result)
{
    struct plan_slice own = plan_part(from, parts, p->rank);
    size_t slot = own.count;
    plan_round(p);
    plan_local(p, PLAN_COPY, plan_slice(PLAN_SCRATCH, (size_t)p->rank * slot, slot), own);
    for (int i = 1; i < p->size; i++) {
        int peer = (p->rank + i) % p->size;
        plan_transfer(p, (struct plan_transfer){ .peer = peer,
                                                 .send = plan_part(from, parts, peer),
                                                 .receive = plan_slice(PLAN_SCRATCH, (size_t)peer * slot, slot) });
    }
    plan_round(p);
    plan_local(p, PLAN_FOLD, result, plan_slice(PLAN_SCRATCH, 0, (size_t)p->size * slot));
}

int make_reduce_scatter_fold(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_given(&parts, q->size, q->count, q->in_counts);
    if (r < 0) {
        return r;
    }
    size_t mine = plan_part(PLAN_IN, &parts, q->rank).count;
    p->scratch_count = (size_t)q->size * mine;
    meet(p, &parts, PLAN_IN, plan_slice(PLAN_OUT, 0, mine));
    plan_parts_fini(&parts);
    return 0;
}

uint64_t sent_by_reduce_scatter_fold(const struct plan_request *q)
{
    uint64_t total = 0;
    for (int i = 0; i < q->size; i++) {
        total += q->in_counts != NULL ? q->in_counts[i] : q->count;
    }
    return (uint64_t)(q->size - 1) * total;
}

int make_all_reduce_fold(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_split(&parts, q->size, q->count);
    if (r < 0) {
        return r;
    }
    struct plan_slice mine = plan_part(PLAN_OUT, &parts, q->rank);
    p->scratch_count = (size_t)q->size * mine.count;
    meet(p, &parts, PLAN_OUT, mine);
    for (int i = 1; i < q->size; i++) {
        int peer = (q->rank + i) % q->size;
        plan_transfer(
            p, (struct plan_transfer){ .peer = peer, .send = mine, .receive = plan_part(PLAN_OUT, &parts, peer) });
    }
    plan_parts_fini(&parts);
    return 0;
}

uint64_t sent_by_all_reduce_fold(const struct plan_request *q)
{
    return 2 * (uint64_t)(q->size - 1) * q->count;
}

/* The others keep the fold of their part in scratch, behind the slots. */
int make_reduce_fold(struct plan *p, const struct plan_request *q)
{
    struct plan_parts parts;
    int r = plan_parts_split(&parts, q->size, q->count);
    if (r < 0) {
        return r;
    }
    bool is_root = q->rank == q->root;
    struct plan_slice mine = plan_part(PLAN_OUT, &parts, q->rank);
    size_t slots = (size_t)q->size * mine.count;
    struct plan_slice folded = is_root ? mine : plan_slice(PLAN_SCRATCH, slots, mine.count);
    p->scratch_count = slots + (is_root ? 0 : mine.count);
    meet(p, &parts, PLAN_IN, folded);
    if (!is_root) {
        plan_transfer(p, (struct plan_transfer){ .peer = q->root, .send = folded });
    }
    for (int i = 1; i < q->size && is_root; i++) {
        int peer = (q->rank + i) % q->size;
        plan_transfer(p, (struct plan_transfer){ .peer = peer, .receive = plan_part(PLAN_OUT, &parts, peer) });
    }
    plan_parts_fini(&parts);
    return 0;
}

uint64_t sent_by_reduce_fold(const struct plan_request *q)
{
    struct plan_parts parts;
    if (q->size == 1 || plan_parts_split(&parts, q->size, q->count) < 0) {
        return 0;
    }
    uint64_t of_root = plan_part(PLAN_OUT, &parts, q->root).count;
    plan_parts_fini(&parts);
    return (uint64_t)(q->size - 1) * q->count + q->count - of_root;
}

/* The root sends an empty frame to each: two ranks that both take themselves for the root must hear of it. */
int make_reduce_flat(struct plan *p, const struct plan_request *q)
{
    struct plan_slice in = plan_slice(PLAN_IN, 0, q->count);
    plan_round(p);
    if (q->rank != q->root) {
        plan_transfer(p,
                      (struct plan_transfer){ .peer = q->root, .send = in, .receive = plan_slice(PLAN_SCRATCH, 0, 0) });
        return 0;
    }
    p->scratch_count = (size_t)q->size * q->count;
    plan_local(p, PLAN_COPY, plan_slice(PLAN_SCRATCH, (size_t)q->rank * q->count, q->count), in);
    for (int i = 1; i < q->size; i++) {
        size_t peer = (size_t)((q->rank + i) % q->size);
        plan_transfer(p, (struct plan_transfer){ .peer = (int)peer,
                                                 .send = plan_slice(PLAN_IN, 0, 0),
                                                 .receive = plan_slice(PLAN_SCRATCH, peer * q->count, q->count) });
    }
    plan_round(p);
    plan_local(p, PLAN_FOLD, plan_slice(PLAN_OUT, 0, q->count), plan_slice(PLAN_SCRATCH, 0, p->scratch_count));
    return 0;
}

uint64_t sent_by_reduce_flat(const struct plan_request *q)
{
    return (uint64_t)(q->size - 1) * q->count;
}
