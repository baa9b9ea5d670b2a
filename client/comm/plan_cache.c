/* client/comm/plan_cache.c - the plans a group has made, kept for the next call of the same shape.
 *
 * A slot that no work holds may be used for another plan; the one not used for longest goes first.  When every slot is held
 * (many different calls in flight) the plan is made for the one call and freed with it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "comm/choose.h"
#include "comm/group_state.h"

static bool same_counts(const size_t *a, const size_t *b, int size)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return memcmp(a, b, (size_t)size * sizeof *a) == 0;
}

static bool same_request(const struct plan_request *a, const struct plan_request *b)
{
    return a->kind == b->kind && a->algorithm == b->algorithm && a->root == b->root && a->count == b->count &&
           same_counts(a->in_counts, b->in_counts, a->size) && same_counts(a->out_counts, b->out_counts, a->size);
}

static void clear(struct kept_plan *k)
{
    k->plan = plan_free(k->plan);
    k->counts = mem_free(k->counts);
}

/* Keeps copies of the counts, so that the request can be compared with later ones. */
static int fill(struct kept_plan *k, const struct plan_request *q)
{
    k->request = *q;
    k->n_users = 0;
    if (q->in_counts != NULL || q->out_counts != NULL) {
        size_t n = (size_t)q->size;
        k->counts = mem_new_array(size_t, 2 * n);
        if (k->counts == NULL) {
            return err_no_memory(2 * n * sizeof(size_t), "the split sizes of a collective");
        }
        if (q->in_counts != NULL) {
            memcpy(k->counts, q->in_counts, n * sizeof(size_t));
            k->request.in_counts = k->counts;
        }
        if (q->out_counts != NULL) {
            memcpy(k->counts + n, q->out_counts, n * sizeof(size_t));
            k->request.out_counts = k->counts + n;
        }
    }
    k->plan = plan_new(q);
    if (k->plan == NULL) {
        int r = err_last()->status;
        k->counts = mem_free(k->counts);
        return r;
    }
    return 0;
}

static struct kept_plan *oldest_free(mesh_group *g)
{
    struct kept_plan *oldest = NULL;
    for (int i = 0; i < GROUP_N_PLANS; i++) {
        struct kept_plan *k = &g->plans[i];
        if (k->n_users == 0 && (oldest == NULL || k->plan == NULL || k->used_at < oldest->used_at)) {
            oldest = k;
            if (k->plan == NULL) {
                break;
            }
        }
    }
    return oldest;
}

static struct kept_plan *find(mesh_group *g, const struct plan_request *q)
{
    for (int i = 0; i < GROUP_N_PLANS; i++) {
        struct kept_plan *k = &g->plans[i];
        if (k->plan != NULL && same_request(&k->request, q)) {
            return k;
        }
    }
    return NULL;
}

static int make(mesh_group *g, const struct plan_request *q, struct kept_plan **ret_plan)
{
    struct kept_plan *k = oldest_free(g);
    bool is_kept = k != NULL;
    if (is_kept) {
        clear(k);
    } else {
        k = mem_new(struct kept_plan);
        if (k == NULL) {
            return err_no_memory(sizeof *k, "the plan of a collective");
        }
    }
    int r = fill(k, q);
    if (r < 0) {
        (void)(is_kept ? NULL : mem_free(k));
        return r;
    }
    k->is_kept = is_kept;
    *ret_plan = k;
    return 0;
}

int group_take_plan(mesh_group *g, const struct call *c, struct kept_plan **ret_plan)
{
    struct plan_request q = {
        .kind = c->kind,
        .algorithm = c->algorithm,
        .rank = g->rank,
        .size = g->size,
        .root = c->root,
        .count = c->count,
        .in_counts = c->in_counts,
        .out_counts = c->out_counts,
    };
    struct kept_plan *k = find(g, &q);
    int r = k != NULL ? 0 : make(g, &q, &k);
    if (r < 0) {
        return r;
    }
    k->n_users++;
    k->used_at = g->n_calls;
    *ret_plan = k;
    return 0;
}

void group_return_plan(struct kept_plan *k)
{
    k->n_users--;
    if (!k->is_kept) {
        clear(k);
        (void)mem_free(k);
    }
}

void group_free_plans(mesh_group *g)
{
    for (int i = 0; i < GROUP_N_PLANS; i++) {
        clear(&g->plans[i]);
    }
}
