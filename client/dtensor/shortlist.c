/* client/dtensor/shortlist.c - branch and bound over mesh dims.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/shortlist.h"

#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

#define MAX_BRANCHES 1000000

struct branch { /* the rules of the first `depth` mesh dims */
    int depth;
    uint8_t rule[MESH_MAX_MESH_NDIM];
    size_t at[OP_MAX_INPUTS]; /* the number of the input's layout so far */
};

struct search {
    const struct shortlist_query *q;
    double *least[OP_MAX_INPUTS]
                 [MESH_MAX_MESH_NDIM]; /* over what is left, by the number of the layout of mesh dims 0 to d */
    int n_branches;
    struct shortlist *list;
};

/* Of each run of n costs the least. */
static double *least_of_runs(const double *costs, size_t n_runs, size_t n)
{
    double *least = mem_new_array(double, n_runs);
    for (size_t k = 0; least != NULL && k < n_runs; k++) {
        least[k] = DBL_MAX;
        for (size_t i = 0; i < n; i++) {
            least[k] = costs[k * n + i] < least[k] ? costs[k * n + i] : least[k];
        }
    }
    return least;
}

static int find_least(struct search *s, int i)
{
    const int *n_kinds = s->q->n_kinds[i];
    const double *costs = s->q->costs[i];
    size_t n = 1;
    for (int d = 0; d < s->q->mesh_ndim; d++) {
        n *= (size_t)n_kinds[d];
    }
    for (int d = s->q->mesh_ndim - 1; d >= 0 && costs != NULL; d--) {
        size_t run = d + 1 < s->q->mesh_ndim ? (size_t)n_kinds[d + 1] : 1;
        n /= run;
        costs = s->least[i][d] = least_of_runs(costs, n, run);
        if (costs == NULL) {
            return err_no_memory(n * sizeof *costs, "the costs of an operator's layouts");
        }
    }
    return 0;
}

static void insert(struct shortlist *list, double cost, const uint8_t *rule)
{
    int at = list->n < SHORTLIST_MAX ? list->n++ : SHORTLIST_MAX - 1;
    for (; at > 0 && list->at[at - 1].cost > cost; at--) {
        list->at[at] = list->at[at - 1];
    }
    list->at[at].cost = cost;
    memcpy(list->at[at].rule, rule, sizeof list->at[at].rule);
}

/* One mesh dim further by rule k; the least that combinations from there cost. */
static double extend(const struct search *s, const struct branch *b, int k, struct branch *ret_next)
{
    const struct shortlist_query *q = s->q;
    double cost = 0;
    *ret_next = *b;
    ret_next->rule[b->depth] = (uint8_t)k;
    ret_next->depth++;
    for (int i = 0; i < q->n_in; i++) {
        if (q->costs[i] != NULL) {
            size_t at = b->at[i] * (size_t)q->n_kinds[i][b->depth] + q->kind_of[i][b->depth][k];
            ret_next->at[i] = at;
            cost += s->least[i][b->depth][at];
        }
    }
    return cost;
}

static void explore(struct search *s, const struct branch *b)
{
    for (int k = 0; k < s->q->n_rules[b->depth] && s->n_branches < MAX_BRANCHES; k++) {
        struct branch next;
        double cost = extend(s, b, k, &next);
        s->n_branches++;
        bool is_beaten = s->list->n == SHORTLIST_MAX && cost >= s->list->at[SHORTLIST_MAX - 1].cost;
        if (is_beaten || cost >= DBL_MAX) {
            continue;
        }
        if (next.depth == s->q->mesh_ndim) {
            insert(s->list, cost, next.rule);
        } else {
            explore(s, &next);
        }
    }
}

int shortlist_make(const struct shortlist_query *q, struct shortlist *ret_list)
{
    struct search s = { .q = q, .list = ret_list };
    int r = 0;
    ret_list->n = 0;
    for (int i = 0; r == 0 && i < q->n_in; i++) {
        r = find_least(&s, i);
    }
    if (r == 0) {
        explore(&s, &(struct branch){ .depth = 0 });
    }
    for (int i = 0; i < q->n_in; i++) {
        for (int d = 0; d < q->mesh_ndim; d++) {
            mem_free(s.least[i][d]);
        }
    }
    return r;
}
