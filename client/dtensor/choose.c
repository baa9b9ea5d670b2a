/* client/dtensor/choose.c - which of the right placements are cheapest, over all mesh dims together.
 *
 * A combination takes one rule per mesh dim.  Its cost is what bringing the inputs to it moves (redistribute_plan), a
 * pure function of global facts; ties go to the combination that comes first, rules in their order, mesh dim 0 slowest.
 * A shard turned into a pending sum costs nothing now and a reduction of the whole later, so it counts like gathering
 * it.  Rules that would newly split a dim of fewer elements than ranks are left out, and combinations that are no
 * layout (mixed pending reductions) or, for views, do not keep every rank's elements.
 * SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "base/util.h"
#include "dtensor/attention.h"
#include "dtensor/dispatch.h"
#include "dtensor/redistribute.h"
#include "dtensor/shortlist.h"
#include "tensor/shape.h"

/* So many are tried one by one.  What each brings an input to is planned, which on four mesh dims may take a
 * millisecond, but only where the best so far costs more.  Of more combinations, at most SHORTLIST_MAX are planned:
 * those that look cheapest.  On three mesh dims that was the cheapest of all, on four at most a tenth dearer, within 2
 * and 10 ms (of attention, which has more rules and whose results move too, 4 and 20 ms). */
#define MAX_COMBINATIONS 512

struct known {
    double cost;
    bool is_exact; /* false: this or more */
};

struct chooser {
    const struct op_row *op;
    const struct op_shapes *s;
    int mesh_ndim;
    const int *mesh_size;
    const mesh_placements *now; /* [n_in] */
    struct rule_list *rules;    /* [mesh_ndim] */
    /* Costs already found: of input i, by the numbers of its distinct placements on each mesh dim. */
    int n_kinds[OP_MAX_INPUTS][MESH_MAX_MESH_NDIM];
    uint8_t kind_of[OP_MAX_INPUTS][MESH_MAX_MESH_NDIM][RULES_MAX]; /* by rule */
    struct known *known[OP_MAX_INPUTS];
    int like[OP_MAX_INPUTS]; /* the first input laid out alike, by the same rules (k of v): costs are shared */
    struct op_choice best;
    bool has_best;
    double limit; /* what a combination has to cost less than to be looked at */
};

static bool is_same(mesh_placement a, mesh_placement b)
{
    return a.kind == b.kind && a.dim == b.dim && a.op == b.op && a.split_factor == b.split_factor;
}

static mesh_placements combine_input(const struct chooser *c, const int *rule, int i)
{
    mesh_placements p = { .n = c->mesh_ndim };
    for (int m = 0; m < c->mesh_ndim; m++) {
        p.at[m] = c->rules[m].at[rule[m]].in[i];
    }
    return p;
}

static struct op_choice combine(const struct chooser *c, const int *rule, double cost)
{
    struct op_choice x = { .cost = cost };
    for (int i = 0; i < c->s->n_in; i++) {
        x.in[i] = combine_input(c, rule, i);
    }
    for (int o = 0; o < c->s->n_out; o++) {
        x.out[o].n = c->mesh_ndim;
        for (int m = 0; m < c->mesh_ndim; m++) {
            x.out[o].at[m] = c->rules[m].at[rule[m]].out[o];
        }
    }
    return x;
}

/* Of one whose inputs are layouts. */
static bool is_layout(const struct chooser *c, const struct op_choice *x)
{
    for (int o = 0; o < c->s->n_out; o++) {
        if (placements_mix_reductions(&x->out[o])) {
            return false;
        }
    }
    return rules_fit_together(c->op->rule.of, c->s, &(struct rule_mesh){ c->mesh_ndim, c->mesh_size }, x->in, x->out);
}

/* The cost, or the limit where it is that much or more. */
static int plan_cost(const struct chooser *c, int i, const mesh_placements *to, double limit, double *ret_cost)
{
    struct move_list moves;
    struct relayout q = { .shape = c->s->in[i],
                          .dtype = c->s->in_dtype[i],
                          .mesh_ndim = c->mesh_ndim,
                          .mesh_size = c->mesh_size,
                          .from = &c->now[i],
                          .to = to };
    int r = redistribute_plan_below(&q, limit, &moves);
    *ret_cost = r < 0 ? 0 : moves.cost;
    return r;
}

/* What the later reduction of shards turned into pending sums will move. */
static int pending_cost(const struct chooser *c, int i, const mesh_placements *to, double limit, double *ret_cost)
{
    mesh_placements gathered = c->now[i];
    bool has_any = false;
    for (int m = 0; m < c->mesh_ndim; m++) {
        if (placement_is_shard(gathered.at[m]) && to->at[m].kind == MESH_IS_PARTIAL) {
            gathered.at[m] = mesh_replicate();
            has_any = true;
        }
    }
    *ret_cost = 0;
    return has_any ? plan_cost(c, i, &gathered, limit, ret_cost) : 0;
}

/* What is known below the limit is exact; what is no layout is beyond every limit. */
static int find_cost(const struct chooser *c, int i, const mesh_placements *to, double limit, struct known *ret_known)
{
    double cost = DBL_MAX, later = 0;
    int r = placements_mix_reductions(to) ? 0 : plan_cost(c, i, to, limit, &cost);
    if (r == 0 && cost < limit) {
        r = pending_cost(c, i, to, limit - cost, &later);
    }
    cost += later;
    *ret_known = (struct known){ .cost = cost < limit ? cost : limit, .is_exact = cost < limit };
    return r;
}

/* The cost of input i of a combination where that is below the limit, else the limit or more. */
static int input_cost(const struct chooser *c, int i, const int *rule, double limit, double *ret_cost)
{
    int r = 0;
    size_t at = 0;
    for (int m = 0; m < c->mesh_ndim; m++) {
        at = at * (size_t)c->n_kinds[i][m] + c->kind_of[i][m][rule[m]];
    }
    struct known *known = &c->known[c->like[i]][at];
    if (!known->is_exact && known->cost < limit) {
        mesh_placements to = combine_input(c, rule, i);
        r = find_cost(c, i, &to, limit, known);
    }
    *ret_cost = known->cost;
    return r;
}

/* Remembers the combination if it is cheaper than the best so far. */
static int consider(struct chooser *c, const int *rule)
{
    double sum = 0;
    int r = 0;
    for (int i = 0; r == 0 && i < c->s->n_in && sum < c->limit; i++) {
        double cost = 0;
        r = c->s->has[i] ? input_cost(c, i, rule, c->limit - sum, &cost) : 0;
        sum += cost;
    }
    if (r < 0 || sum >= c->limit) {
        return r;
    }
    struct op_choice x = combine(c, rule, sum);
    bool is_right = is_layout(c, &x);
    struct rule_mesh m = { c->mesh_ndim, c->mesh_size };
    r = is_right ? attention_later_cost(c->op, c->s, &m, c->now, c->limit, &x) : 0;
    if (r == 0 && is_right && x.cost < c->limit) {
        c->best = x;
        c->has_best = true;
        c->limit = x.cost;
    }
    return r;
}

static bool stays(const struct chooser *c, int m, const struct rule *r)
{
    bool is_now = true;
    for (int i = 0; i < c->s->n_in; i++) {
        is_now = is_now && (!c->s->has[i] || is_same(r->in[i], c->now[i].at[m]));
    }
    return is_now;
}

/* From mesh dim m on, the rules that take the inputs as they are.  One mesh dim after another may miss them: of what
 * the first leaves to the others, another rule may look cheaper. */
static int consider_staying(struct chooser *c, int m, int *rule)
{
    int r = 0;
    if (m == c->mesh_ndim || m == MESH_MAX_MESH_NDIM) {
        return consider(c, rule);
    }
    for (int k = 0; r == 0 && k < c->rules[m].n && !(c->has_best && c->best.cost <= 0); k++) {
        rule[m] = k;
        r = stays(c, m, &c->rules[m].at[k]) ? consider_staying(c, m + 1, rule) : 0;
    }
    return r;
}

/* One mesh dim after another, the others as found so far (whole at first, which is always right). */
static int choose_greedily(struct chooser *c)
{
    int rule[MESH_MAX_MESH_NDIM] = { 0 };
    int r = consider(c, rule);
    for (int m = 0; r == 0 && m < c->mesh_ndim; m++) {
        int best = rule[m];
        for (int k = 0; r == 0 && k < c->rules[m].n; k++) {
            double before = c->best.cost;
            rule[m] = k;
            r = consider(c, rule);
            best = c->best.cost < before ? k : best;
        }
        rule[m] = best;
    }
    return r;
}

static bool next_combination(const struct chooser *c, int *rule)
{
    for (int m = c->mesh_ndim - 1; m >= 0; m--) {
        if (++rule[m] < c->rules[m].n) {
            return true;
        }
        rule[m] = 0;
    }
    return false;
}

/* After choose_greedily(), what costs more than it found is out, but what costs as much (costs are whole numbers) comes
 * first. */
static int choose_of_all(struct chooser *c)
{
    int rule[MESH_MAX_MESH_NDIM] = { 0 }, r = choose_greedily(c);
    if (r < 0) {
        return r;
    }
    c->limit = c->best.cost + 1;
    c->has_best = false;
    do {
        r = consider(c, rule);
    } while (r == 0 && !(c->has_best && c->best.cost <= 0) && next_combination(c, rule));
    return r;
}

static int find_rough_costs(const struct chooser *c, int i, double **ret_costs)
{
    struct layout_grid g;
    struct relayout q = { c->s->in[i], c->s->in_dtype[i], c->mesh_ndim, c->mesh_size, &c->now[i], NULL };
    size_t n = 1;
    for (int m = 0; m < c->mesh_ndim; m++) {
        g.n[m] = c->n_kinds[i][m];
        n *= (size_t)g.n[m];
        for (int k = 0; k < c->rules[m].n; k++) {
            g.at[m][c->kind_of[i][m][k]] = c->rules[m].at[k].in[i];
        }
    }
    *ret_costs = mem_new_array(double, n);
    return *ret_costs == NULL ? err_no_memory(n * sizeof(double), "the costs of an operator's layouts")
                              : redistribute_costs(&q, &g, *ret_costs);
}

/* Plans those that look cheapest. */
static int consider_shortlist(struct chooser *c)
{
    double *costs[OP_MAX_INPUTS] = { NULL };
    int n_rules[MESH_MAX_MESH_NDIM], r = 0;
    struct shortlist_query q = { c->s->n_in, c->mesh_ndim, n_rules, { NULL }, c->n_kinds, c->kind_of };
    struct shortlist list = { .n = 0 };
    for (int m = 0; m < c->mesh_ndim; m++) {
        n_rules[m] = c->rules[m].n;
    }
    for (int i = 0; r == 0 && i < c->s->n_in; i++) {
        r = c->s->has[i] && c->like[i] == i ? find_rough_costs(c, i, &costs[i]) : 0;
        q.costs[i] = costs[c->like[i]];
    }
    r = r < 0 ? r : shortlist_make(&q, &list);
    for (int k = 0; r == 0 && k < list.n; k++) {
        int rule[MESH_MAX_MESH_NDIM] = { 0 };
        for (int m = 0; m < c->mesh_ndim; m++) {
            rule[m] = list.at[k].rule[m];
        }
        r = consider(c, rule);
    }
    for (int i = 0; i < c->s->n_in; i++) {
        mem_free(costs[i]);
    }
    return r;
}

/* One mesh dim after another only where none on the short list is a layout: a view's rules must fit together. */
static int choose_of_many(struct chooser *c)
{
    int rule[MESH_MAX_MESH_NDIM] = { 0 };
    int r = consider_staying(c, 0, rule);
    if (r < 0 || (c->has_best && c->best.cost <= 0)) {
        return r;
    }
    r = consider_shortlist(c);
    return r < 0 || c->has_best ? r : choose_greedily(c);
}

/* A rule may keep a split there is, however thin, but not make one that leaves ranks without anything. */
static bool is_worthwhile(const struct chooser *c, int m, const struct rule *r)
{
    for (int i = 0; i < c->s->n_in; i++) {
        mesh_placement p = r->in[i];
        if (c->s->has[i] && p.kind == MESH_IS_SHARD && c->s->in[i].dim[p.dim] < c->mesh_size[m]) {
            bool is_there = false;
            for (int k = 0; k < c->s->n_in; k++) {
                is_there =
                    is_there || (c->s->has[k] && r->in[k].kind == MESH_IS_SHARD && is_same(r->in[k], c->now[k].at[m]));
            }
            return is_there;
        }
    }
    return true;
}

static void derive(struct chooser *c)
{
    for (int m = 0; m < c->mesh_ndim; m++) {
        struct rule_list *list = &c->rules[m];
        struct op_shapes s = *c->s;
        for (int i = 0; i < s.n_in; i++) {
            s.now[i] = s.has[i] ? c->now[i].at[m] : s.now[i];
        }
        for (int k = 0; k < m; k++) {
            if (placement_is_shard(c->now[0].at[k])) {
                s.earlier[s.n_earlier++] = c->mesh_size[k];
            }
        }
        rules_derive(c->op, &s, c->mesh_size[m], list);
        int n = 0;
        for (int k = 0; k < list->n; k++) {
            if (is_worthwhile(c, m, &list->at[k])) {
                list->at[n++] = list->at[k];
            }
        }
        list->n = n;
    }
}

/* Numbers the distinct placements of input i on mesh dim m. */
static int number_kinds(struct chooser *c, int i, int m)
{
    int n = 0;
    for (int k = 0; k < c->rules[m].n; k++) {
        int j = 0;
        while (j < k && !is_same(c->rules[m].at[j].in[i], c->rules[m].at[k].in[i])) {
            j++;
        }
        c->kind_of[i][m][k] = j < k ? c->kind_of[i][m][j] : (uint8_t)n++;
    }
    return n;
}

static bool is_like(const struct chooser *c, int i, int j)
{
    const struct op_shapes *s = c->s;
    bool is_one = s->has[i] && s->has[j] && shape_equal(s->in[i], s->in[j]) && s->in_dtype[i] == s->in_dtype[j] &&
                  mesh_placements_equal(c->now[i], c->now[j]);
    for (int m = 0; is_one && m < c->mesh_ndim; m++) {
        for (int k = 0; is_one && k < c->rules[m].n; k++) {
            is_one = is_same(c->rules[m].at[k].in[i], c->rules[m].at[k].in[j]);
        }
    }
    return is_one;
}

static int first_like(const struct chooser *c, int i)
{
    int j = 0;
    while (j < i && !is_like(c, i, j)) {
        j++;
    }
    return j;
}

static int make_room(struct chooser *c)
{
    for (int i = 0; i < c->s->n_in; i++) {
        size_t n = 1;
        c->like[i] = first_like(c, i);
        for (int m = 0; m < c->mesh_ndim; m++) {
            c->n_kinds[i][m] = number_kinds(c, i, m);
            n *= (size_t)c->n_kinds[i][m];
        }
        if (c->like[i] < i) {
            continue;
        }
        c->known[i] = mem_new_array(struct known, n);
        if (!c->known[i]) {
            return err_no_memory(n * sizeof(struct known), "the costs of an operator's layouts");
        }
        for (size_t k = 0; k < n; k++) {
            c->known[i][k] = (struct known){ .cost = 0 };
        }
    }
    return 0;
}

int op_choose(const struct op_row *op, const struct op_shapes *s, int mesh_ndim, const int *mesh_size,
              const mesh_placements *now, struct op_choice *ret_choice)
{
    struct chooser c = {
        .op = op, .s = s, .mesh_ndim = mesh_ndim, .mesh_size = mesh_size, .now = now, .limit = DBL_MAX
    };
    c.rules = mem_new_array(struct rule_list, (size_t)mesh_ndim);
    if (!c.rules) {
        return err_no_memory((size_t)mesh_ndim * sizeof *c.rules, "the rules of an operator");
    }
    derive(&c);
    int64_t n_combinations = 1;
    for (int m = 0; m < mesh_ndim; m++) {
        n_combinations *= c.rules[m].n;
    }
    int r = make_room(&c);
    r = r < 0 ? r : n_combinations <= MAX_COMBINATIONS ? choose_of_all(&c) : choose_of_many(&c);
    if (r == 0) {
        CHECK(c.has_best);
        *ret_choice = c.best;
    }
    for (int i = 0; i < s->n_in; i++) {
        mem_free(c.known[i]);
    }
    mem_free(c.rules);
    return r;
}
