/* tests/unit/dtensor/test_shortlist.c - of more combinations of rules than are planned one by one, the cheapest is
 * found: against all of them, tried here.
 * SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "dtensor/dispatch.h"
#include "dtensor/redistribute.h"
#include "dtensor/shortlist.h"
#include "harness/check_main.h"

static uint32_t state = 1;

static uint32_t random_below(uint32_t n)
{
    state = state * 1664525U + 1013904223U;
    return (state >> 8) % n;
}

#define S(...)                                                                                                         \
    {                                                                                                                  \
        .ndim = MESH_COUNT_(int64_t, __VA_ARGS__), .dim = { __VA_ARGS__ }                                              \
    }
static const struct subject { /* extents that no mesh below cuts too thin */
    enum op_id op;
    int n_in;
    mesh_shape in[3];
    mesh_dtype first;
} subjects[] = {
    { OP_linear, 3, { S(16, 64, 512), S(256, 512), S(256) }, MESH_F32 },
    { OP_matmul, 2, { S(16, 64, 128), S(16, 128, 64) }, MESH_F32 },
    { OP_where, 3, { S(16, 32, 64), S(16, 32, 64), S(32, 64) }, MESH_BOOL },
    { OP_lerp, 2, { S(16, 32, 64), S(32, 64) }, MESH_F32 },
};

static const struct grid {
    int ndim, size[MESH_MAX_MESH_NDIM], n_tries;
    double most; /* what the choice may cost, by the least there is */
} grids[] = { { 3, { 2, 2, 2 }, 5, 1 }, { 3, { 2, 3, 2 }, 5, 1 }, { 4, { 2, 2, 2, 2 }, 1, 1.25 } };

struct trial {
    const struct grid *grid;
    struct op_shapes s;
    mesh_placements now[OP_MAX_INPUTS];
    struct rule_list rules[MESH_MAX_MESH_NDIM];
};

static void set_up(struct trial *t, const struct subject *subject, const struct grid *grid)
{
    memset(t, 0, sizeof *t);
    t->grid = grid;
    t->s = (struct op_shapes){ .name = op_table[subject->op].name,
                               .n_in = subject->n_in,
                               .n_out = op_table[subject->op].n_out,
                               .mesh_ndim = grid->ndim };
    for (int i = 0; i < subject->n_in; i++) {
        t->s.has[i] = true;
        t->s.in[i] = subject->in[i];
        t->s.in_dtype[i] = i == 0 ? subject->first : MESH_F32;
        t->now[i].n = grid->ndim;
        for (int m = 0; m < grid->ndim; m++) {
            int d = (int)random_below((uint32_t)t->s.in[i].ndim + 2);
            bool is_pending = d == t->s.in[i].ndim && t->s.in_dtype[i] == MESH_F32;
            t->now[i].at[m] = d < t->s.in[i].ndim ? mesh_shard(d)
                              : is_pending        ? mesh_partial(MESH_SUM)
                                                  : mesh_replicate();
        }
    }
    ck_assert_int_eq(op_table[subject->op].shape(&t->s), 0);
    for (int m = 0; m < grid->ndim; m++) {
        rules_derive(&op_table[subject->op], &t->s, grid->size[m], &t->rules[m]);
    }
}

static double plan_cost(const struct trial *t, int i, const mesh_placements *to)
{
    struct move_list moves;
    struct relayout q = { t->s.in[i], t->s.in_dtype[i], t->grid->ndim, t->grid->size, &t->now[i], to };
    ck_assert_int_eq(redistribute_plan(&q, &moves), 0);
    return moves.cost;
}

/* With the gathering that a shard made pending puts off. */
static double full_cost(const struct trial *t, int i, const mesh_placements *to)
{
    mesh_placements gathered = t->now[i];
    bool has_any = false;
    for (int m = 0; m < to->n; m++) {
        if (placement_is_shard(gathered.at[m]) && to->at[m].kind == MESH_IS_PARTIAL) {
            gathered.at[m] = mesh_replicate();
            has_any = true;
        }
    }
    return plan_cost(t, i, to) + (has_any ? plan_cost(t, i, &gathered) : 0);
}

struct known {
    int n;
    struct {
        mesh_placements to;
        double cost;
    } at[6000];
};

static double known_cost(const struct trial *t, int i, const mesh_placements *to, struct known *known)
{
    for (int k = 0; k < known->n; k++) {
        if (mesh_placements_equal(known->at[k].to, *to)) {
            return known->at[k].cost;
        }
    }
    ck_assert_int_lt(known->n, (int)ARRAY_SIZE(known->at));
    known->at[known->n].to = *to;
    return known->at[known->n++].cost = full_cost(t, i, to);
}

/* DBL_MAX: not a layout. */
static double cost_of(const struct trial *t, const struct op_row *op, int64_t number, struct known *known)
{
    mesh_placements in[OP_MAX_INPUTS] = { { .n = 0 } }, out[OP_MAX_OUTPUTS] = { { .n = 0 } };
    double cost = 0;
    for (int m = 0; m < t->grid->ndim; m++) {
        const struct rule *r = &t->rules[m].at[number % t->rules[m].n];
        number /= t->rules[m].n;
        for (int i = 0; i < t->s.n_in; i++) {
            in[i].at[in[i].n++] = r->in[i];
        }
        out[0].at[out[0].n++] = r->out[0];
    }
    bool is_layout =
        !placements_mix_reductions(&out[0]) &&
        rules_fit_together(op->rule.of, &t->s, &(struct rule_mesh){ t->grid->ndim, t->grid->size }, in, out);
    for (int i = 0; i < t->s.n_in; i++) {
        is_layout = is_layout && !placements_mix_reductions(&in[i]);
    }
    for (int i = 0; is_layout && i < t->s.n_in; i++) {
        cost += known_cost(t, i, &in[i], &known[i]);
    }
    return is_layout ? cost : DBL_MAX;
}

static int n_of_short_lists; /* below, all combinations are planned */

static double least_cost(const struct trial *t, const struct op_row *op)
{
    struct known *known = calloc(OP_MAX_INPUTS, sizeof *known);
    double least = DBL_MAX;
    int64_t n = 1;
    ck_assert_ptr_nonnull(known);
    for (int m = 0; m < t->grid->ndim; m++) {
        n *= t->rules[m].n;
    }
    n_of_short_lists += n > 512;
    for (int64_t k = 0; k < n; k++) {
        double cost = cost_of(t, op, k, known);
        least = MIN(least, cost);
    }
    free(known);
    return least;
}

START_TEST(the_choice_on_three_mesh_dims_is_the_cheapest_and_on_four_nearly)
{
    const struct grid *grid = &grids[_i];
    struct trial *t = malloc(sizeof *t);
    ck_assert_ptr_nonnull(t);
    for (size_t k = 0; k < ARRAY_SIZE(subjects) * (size_t)grid->n_tries; k++) {
        const struct subject *subject = &subjects[k % ARRAY_SIZE(subjects)];
        const struct op_row *op = &op_table[subject->op];
        struct op_choice choice;
        set_up(t, subject, grid);
        ck_assert_int_eq(op_choose(op, &t->s, grid->ndim, grid->size, t->now, &choice), 0);
        double least = least_cost(t, op);
        ck_assert_msg(choice.cost >= least && choice.cost <= grid->most * least, "%s, try %zu: %.0f, the least is %.0f",
                      op->name, k, choice.cost, least);
    }
    ck_assert_int_ge(n_of_short_lists, grid->n_tries);
    free(t);
}
END_TEST

/* Two inputs of two kinds on each of two mesh dims, four rules: all sixteen sums in order. */
START_TEST(the_short_list_has_the_cheapest_first_and_of_equal_ones_the_first_in_order)
{
    static const double a[] = { 0, 5, 7, 12 }, b[] = { 3, 0, 3, 0 };
    static const int n_rules[] = { 2, 2 };
    int n_kinds[][MESH_MAX_MESH_NDIM] = { { 2, 2 }, { 2, 2 } };
    static uint8_t kind_of[][MESH_MAX_MESH_NDIM][RULES_MAX] = { { { 0, 1 }, { 0, 1 } }, { { 0, 1 }, { 0, 1 } } };
    struct shortlist_query q = { 2, 2, n_rules, { a, b }, n_kinds, kind_of };
    struct shortlist list;
    ck_assert_int_eq(shortlist_make(&q, &list), 0);
    ck_assert_int_eq(list.n, 4);
    static const double costs[] = { 3, 5, 10, 12 };
    for (int k = 0; k < 4; k++) {
        ck_assert_double_eq(list.at[k].cost, costs[k]);
        ck_assert_int_eq(list.at[k].rule[0] * 2 + list.at[k].rule[1], k);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("shortlist");
    TCase *t = tcase_create("shortlist");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, the_choice_on_three_mesh_dims_is_the_cheapest_and_on_four_nearly, 0, (int)ARRAY_SIZE(grids));
    tcase_add_test(t, the_short_list_has_the_cheapest_first_and_of_equal_ones_the_first_in_order);
    suite_add_tcase(s, t);
    return s;
}
