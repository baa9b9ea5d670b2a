/* tests/unit/dtensor/test_plan.c - redistribution plans: every pair of layouts has one, it is legal, and it is cheap.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "dtensor/redistribute.h"
#include "harness/check_main.h"

#define MAX_LISTS 400

static const mesh_placement kinds[] = {
    { .kind = MESH_IS_REPLICATE },
    { .kind = MESH_IS_SHARD, .dim = 0 },
    { .kind = MESH_IS_SHARD, .dim = 1 },
    { .kind = MESH_IS_PARTIAL, .op = MESH_SUM },
    { .kind = MESH_IS_PARTIAL, .op = MESH_AVG },
    { .kind = MESH_IS_PARTIAL, .op = MESH_MAX },
    { .kind = MESH_IS_STRIDED_SHARD, .dim = 0, .split_factor = 2 },
};

/* All legal lists of `ndim` placements of the first n_kinds kinds. */
static int all_lists(int ndim, int n_kinds, mesh_placements *lists)
{
    int n = 0, total = 1;
    for (int i = 0; i < ndim; i++) {
        total *= n_kinds;
    }
    for (int k = 0; k < total; k++) {
        mesh_placements p = { .n = ndim };
        for (int i = 0, rest = k; i < ndim; i++, rest /= n_kinds) {
            p.at[i] = kinds[rest % n_kinds];
        }
        if (!placements_mix_reductions(&p)) {
            lists[n++] = p;
        }
    }
    return n;
}

struct world {
    int ndim, size[3], n_kinds;
};
static const struct world worlds[] = {
    { 1, { 2 }, 7 },    { 1, { 1 }, 7 },    { 1, { 4 }, 7 },       { 2, { 2, 2 }, 7 },
    { 2, { 2, 3 }, 7 }, { 2, { 1, 4 }, 7 }, { 3, { 2, 2, 2 }, 4 }, { 3, { 2, 1, 3 }, 4 },
};

static void replay(const struct world *w, const mesh_placements *from, const mesh_placements *to,
                   const struct move_list *moves)
{
    mesh_placements now = *from;
    double bytes = 0;
    for (int k = 0; k < moves->n; k++) {
        const struct move *m = &moves->at[k];
        bytes += (double)m->bytes;
        if (m->mesh_dim == ALL_MESH_DIMS) {
            ck_assert_int_eq(k, moves->n - 1);
            now = *to;
            continue;
        }
        ck_assert(redistribute_move_is_legal(w->ndim, w->size, &now, m->mesh_dim, m->to));
        now.at[m->mesh_dim] = m->to;
    }
    ck_assert(mesh_placements_equal(now, *to));
    ck_assert(moves->cost >= bytes);
}

/* The same plan where it costs less, else none. */
static void try_limits(const struct relayout *q, const struct move_list *all)
{
    const double limits[] = { 0, all->cost, all->cost + 1, REDISTRIBUTE_COLLECTIVE_BYTES + 1 };
    for (size_t k = 0; k < ARRAY_SIZE(limits); k++) {
        struct move_list moves;
        bool is_below = all->cost < limits[k];
        double cost = is_below ? all->cost : limits[k];
        ck_assert_int_eq(redistribute_plan_below(q, limits[k], &moves), 0);
        ck_assert_int_eq(moves.n, is_below ? all->n : 0);
        ck_assert(!(moves.cost < cost) && !(moves.cost > cost));
    }
}

START_TEST(every_pair_has_a_legal_plan)
{
    static mesh_placements lists[MAX_LISTS];
    const struct world *w = &worlds[_i];
    int n = all_lists(w->ndim, w->n_kinds, lists);
    for (int a = 0; a < n; a++) {
        for (int b = 0; b < n; b++) {
            struct move_list moves;
            struct relayout q = { .shape = MESH_SHAPE(5, 3),
                                  .dtype = MESH_F32,
                                  .mesh_ndim = w->ndim,
                                  .mesh_size = w->size,
                                  .from = &lists[a],
                                  .to = &lists[b] };
            ck_assert_int_eq(redistribute_plan(&q, &moves), 0);
            replay(w, &lists[a], &lists[b], &moves);
            ck_assert(a != b || moves.n == 0);
            if ((a + b) % 5 == 0) {
                try_limits(&q, &moves);
            }
        }
    }
}
END_TEST

static struct move_list plan(mesh_shape s, int ndim, const int *size, mesh_placements from, mesh_placements to)
{
    struct move_list moves;
    struct relayout q = {
        .shape = s, .dtype = MESH_F32, .mesh_ndim = ndim, .mesh_size = size, .from = &from, .to = &to
    };
    ck_assert_int_eq(redistribute_plan(&q, &moves), 0);
    return moves;
}

static const mesh_placement R = { .kind = MESH_IS_REPLICATE };
static const mesh_placement S0 = { .kind = MESH_IS_SHARD, .dim = 0 };
static const mesh_placement S1 = { .kind = MESH_IS_SHARD, .dim = 1 };
static const mesh_placement P = { .kind = MESH_IS_PARTIAL, .op = MESH_SUM };

START_TEST(one_move_costs_what_the_table_says)
{
    const int four[] = { 4 };
    mesh_shape s = MESH_SHAPE(16, 8); /* 512 bytes */
    ck_assert_int_eq(plan(s, 1, four, MESH_PLACEMENTS(S0), MESH_PLACEMENTS(R)).at[0].bytes, 384);
    ck_assert_int_eq(plan(s, 1, four, MESH_PLACEMENTS(P), MESH_PLACEMENTS(R)).at[0].bytes, 768);
    ck_assert_int_eq(plan(s, 1, four, MESH_PLACEMENTS(P), MESH_PLACEMENTS(S1)).at[0].bytes, 384);
    ck_assert_int_eq(plan(s, 1, four, MESH_PLACEMENTS(S0), MESH_PLACEMENTS(S1)).at[0].bytes, 96);
    ck_assert_int_eq(plan(s, 1, four, MESH_PLACEMENTS(R), MESH_PLACEMENTS(S1)).at[0].bytes, 0);
    ck_assert_int_eq(plan(s, 1, four, MESH_PLACEMENTS(S0), MESH_PLACEMENTS(P)).at[0].bytes, 0);
    ck_assert_int_eq(plan(s, 1, four, MESH_PLACEMENTS(R), MESH_PLACEMENTS(P)).at[0].bytes, 0);
}
END_TEST

START_TEST(a_mesh_dim_of_one_rank_moves_nothing)
{
    const int size[] = { 4, 1 };
    for (size_t a = 0; a < ARRAY_SIZE(kinds); a++) {
        for (size_t b = 0; b < ARRAY_SIZE(kinds); b++) {
            ck_assert(
                plan(MESH_SHAPE(8, 8), 2, size, MESH_PLACEMENTS(S0, kinds[a]), MESH_PLACEMENTS(S0, kinds[b])).cost <=
                0);
        }
    }
}
END_TEST

START_TEST(a_shard_changes_its_dim_without_gathering)
{
    const int size[] = { 2, 2 };
    struct move_list m = plan(MESH_SHAPE(64, 64), 2, size, MESH_PLACEMENTS(S1, S1), MESH_PLACEMENTS(S1, S0));
    ck_assert_int_eq(m.n, 1);
    ck_assert(m.at[0].mesh_dim == 1 && m.at[0].to.kind == MESH_IS_SHARD);
}
END_TEST

START_TEST(the_inner_split_gives_way_to_the_outer_one)
{
    const int size[] = { 2, 2 };
    struct move_list m = plan(MESH_SHAPE(8, 8), 2, size, MESH_PLACEMENTS(S0, S0), MESH_PLACEMENTS(R, R));
    ck_assert_int_eq(m.n, 2);
    ck_assert_int_eq(m.at[0].mesh_dim, 1);
}
END_TEST

/* Each rank has a quarter of 16 rows and wants a half: the rank whose quarter is in its half gets another one, others
 * two. */
START_TEST(what_is_gathered_only_to_be_cut_again_is_exchanged_instead)
{
    const int size[] = { 2, 2 }, four[] = { 4 };
    const mesh_placement by_two = mesh_strided_shard(0, 2);
    struct move_list m = plan(MESH_SHAPE(16, 8), 2, size, MESH_PLACEMENTS(S0, S0), MESH_PLACEMENTS(R, S0));
    ck_assert(m.n == 1 && m.at[0].mesh_dim == ALL_MESH_DIMS);
    ck_assert_int_eq(m.at[0].bytes, 8 * 8 * 4);
    m = plan(MESH_SHAPE(16, 8), 2, size, MESH_PLACEMENTS(S0, S1), MESH_PLACEMENTS(S1, S0));
    ck_assert(m.n == 1 && m.at[0].bytes == 8 * 4 * 4);
    m = plan(MESH_SHAPE(16, 8), 1, four, MESH_PLACEMENTS(S0), MESH_PLACEMENTS(by_two));
    ck_assert(m.n == 1 && m.at[0].bytes == 4 * 8 * 4); /* rank 1 keeps nothing */
    m = plan(MESH_SHAPE(16, 8), 2, size, MESH_PLACEMENTS(P, S0), MESH_PLACEMENTS(S0, S0));
    ck_assert_int_le(m.at[m.n - 1].bytes, 16 * 8 * 4 / 2);
}
END_TEST

START_TEST(large_tensors_avoid_the_full_gather_that_small_ones_take)
{
    const int size[] = { 2, 2 };
    struct move_list large = plan(MESH_SHAPE(4096, 4096), 2, size, MESH_PLACEMENTS(S0, S0), MESH_PLACEMENTS(R, S0));
    double gather_all = 4096.0 * 4096 * 4 / 4 + 4096.0 * 4096 * 4 / 2;
    ck_assert(large.cost < gather_all);
}
END_TEST

START_TEST(what_does_not_change_is_not_touched)
{
    const int size[] = { 4, 4 };
    struct move_list m = plan(MESH_SHAPE(64, 64), 2, size, MESH_PLACEMENTS(R, P), MESH_PLACEMENTS(R, R));
    ck_assert_int_eq(m.n, 1);
    ck_assert_int_eq(m.at[0].mesh_dim, 1);
}
END_TEST

START_TEST(a_plan_reads_as_a_sentence)
{
    const int four[] = { 4 };
    struct move_list m = plan(MESH_SHAPE(16, 8), 1, four, MESH_PLACEMENTS(S0), MESH_PLACEMENTS(R));
    mesh_device_mesh mesh = { .ndim = 1, .size = { 4 }, .has_names = true, .name = { "dp" } };
    char buf[128];
    ck_assert_str_eq(redistribute_text(&m, &mesh, buf, sizeof buf), "S(0)->R on dp (all_gather, 384 bytes)");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("plan");
    TCase *t = tcase_create("plan");
    tcase_add_loop_test(t, every_pair_has_a_legal_plan, 0, (int)ARRAY_SIZE(worlds));
    tcase_add_test(t, one_move_costs_what_the_table_says);
    tcase_add_test(t, a_mesh_dim_of_one_rank_moves_nothing);
    tcase_add_test(t, a_shard_changes_its_dim_without_gathering);
    tcase_add_test(t, the_inner_split_gives_way_to_the_outer_one);
    tcase_add_test(t, what_is_gathered_only_to_be_cut_again_is_exchanged_instead);
    tcase_add_test(t, large_tensors_avoid_the_full_gather_that_small_ones_take);
    tcase_add_test(t, what_does_not_change_is_not_touched);
    tcase_add_test(t, a_plan_reads_as_a_sentence);
    suite_add_tcase(s, t);
    return s;
}
