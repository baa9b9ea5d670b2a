/* tests/cases/cases_b.c - making tensors and changing their layout (section B of the case list).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "case_list.h"

CASE(case_src0_the_data_of_rank_0_win_or_each_rank_keeps_its_own, 4)
{
    mesh_tensor *mine = case_tensor(SHAPE(4), VALUES(me, me, me, me));
    REQUIRE_OK(case_full_is(mesh_distribute_tensor(mine, m, ON(S(0))), SHAPE(4), VALUES(0, 0, 0, 0)));
    mesh_comm_reset();
    mesh_dtensor *own = mesh_distribute_same(mine, m, ON(S(0)));
    REQUIRE(case_n_calls() == 0);
    return case_full_is(own, SHAPE(4), NULL);
}

CASE(case_infer_rows_3_3_3_1_are_the_chunks_of_ten, 4)
{
    double want[20];
    for (int i = 0; i < 20; i++) {
        want[i] = i / 6;
    }
    mesh_dtensor *x = case_from_full(m, SHAPE(me < 3 ? 3 : 1, 2), me, ON(S(0)));
    return case_full_is(x, SHAPE(10, 2), want);
}

CASE(case_irreg_parts_that_no_chunk_rule_makes_are_refused_everywhere, 4)
{
    mesh_scope *s = mesh_scope_begin();
    mesh_tensor *part = case_tensor(SHAPE(2, 2 + me), NULL);
    REQUIRE(mesh_from_local(part, m, ON(S(1)), .shape = SHAPE(2, 14)) == NULL);
    mesh_comm_reset();
    return case_refused(s, MESH_EINVAL, "rank 0 holds 2 along dim 1, the layout of [2,14] needs 4");
}

CASE(case_incons_parts_of_different_width_are_listed_to_all, 4)
{
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_from_local(case_tensor(SHAPE(2, me == 1 ? 6 : 5), NULL), m, ON(S(0))) == NULL);
    mesh_comm_reset();
    return case_refused(s, MESH_EMISMATCH, "[2,5], [2,6], [2,5], [2,5]");
}

CASE(case_rchk_replicas_that_differ_are_named_and_not_overwritten, 4)
{
    mesh_tensor *mine = case_tensor(SHAPE(1), VALUES(me));
    mesh_scope *s = mesh_scope_begin();
    REQUIRE(mesh_from_local(mine, m, ON(R), .check_replicas = true) == NULL);
    mesh_comm_reset();
    REQUIRE_OK(case_refused(s, MESH_EMISMATCH, "rank 1 holds other values than rank 0"));
    REQUIRE_NEAR((double)((float *)mesh_tensor_data(mine))[0], me, 0);
    return 0;
}

CASE(case_pones_ones_on_four_ranks_are_a_pending_four, 4)
{
    (void)me;
    return case_full_is(case_from_full(m, SHAPE(3), 1, ON(P(MESH_SUM))), SHAPE(3), VALUES(4, 4, 4));
}

CASE(case_ps_a_pending_sum_is_split_by_rows, 4)
{
    static const double fours[12] = { 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4 };
    mesh_dtensor *x = case_from_full(m, SHAPE(14, 3), 1, ON(P(MESH_SUM)));
    return case_local_is(mesh_redistribute(x, ON(S(0))), SHAPE(me < 3 ? 4 : 2, 3), fours);
}

CASE(case_pavg_a_pending_average_is_divided_once, 4)
{
    mesh_dtensor *x = case_from_full(m, SHAPE(5), me, ON(P(MESH_AVG)));
    REQUIRE_OK(case_local_is(mesh_redistribute(x, ON(R)), SHAPE(5), VALUES(1.5, 1.5, 1.5, 1.5, 1.5)));
    return case_local_is(mesh_redistribute(x, ON(S(0))), SHAPE(me < 2 ? 2 : 3 - me), VALUES(1.5, 1.5));
}

CASE(case_pmax_parts_become_their_maximum_not_their_sum, 4)
{
    static const double want[4][2] = { { 3, 0 }, { 5, 9 }, { 1 }, { 0 } };
    mesh_tensor *part = case_tensor(SHAPE(5), VALUES(me, -me, 5 - me, me * me, 1));
    mesh_dtensor *x = mesh_from_local(part, m, ON(P(MESH_MAX)));
    return case_local_is(mesh_redistribute(x, ON(S(0))), SHAPE(me < 2 ? 2 : 3 - me), want[me]);
}

CASE(case_pmin_pprod_parts_become_their_minimum_and_product, 4)
{
    mesh_dtensor *least = case_from_full(m, SHAPE(4), me, ON(P(MESH_MIN)));
    mesh_dtensor *product = case_from_full(m, SHAPE(1), me + 1, ON(P(MESH_PROD)));
    REQUIRE_OK(case_local_is(mesh_redistribute(least, ON(S(0))), SHAPE(1), VALUES(0)));
    return case_local_is(mesh_redistribute(product, ON(R)), SHAPE(1), VALUES(24));
}

CASE(case_r2p_whole_numbers_become_parts_that_add_up_exactly, 4)
{
    mesh_dtensor *x = mesh_full(SHAPE(1), 7, m, ON(R), .dtype = MESH_I32);
    mesh_dtensor *parts = mesh_redistribute(x, ON(P(MESH_SUM)));
    REQUIRE(case_lies(parts, ON(P(MESH_SUM))));
    REQUIRE_OK(case_local_is(parts, SHAPE(1), VALUES(me == 0 ? 7 : 0)));
    return case_full_is(parts, SHAPE(1), VALUES(7));
}

CASE(case_p2p_gathering_beside_a_pending_product_reduces_nothing, 4)
{
    (void)m;
    double mine = me % 2 + 2; /* the line of rank (i, j) holds 2 and 3 */
    mesh_device_mesh *grid = case_plane(2, 2);
    mesh_dtensor *x = case_from_full(grid, SHAPE(2), mine, ON(S(0), P(MESH_PROD)));
    mesh_comm_reset();
    mesh_dtensor *kept = mesh_redistribute(x, ON(R, P(MESH_PROD)));
    REQUIRE(mesh_comm_count(MESH_COMM_ALL_REDUCE) + mesh_comm_count(MESH_COMM_REDUCE_SCATTER) == 0);
    REQUIRE_OK(case_local_is(kept, SHAPE(4), VALUES(mine, mine, mine, mine)));
    REQUIRE_OK(case_full_is(kept, SHAPE(4), VALUES(6, 6, 6, 6)));
    mesh_dtensor *other = mesh_redistribute(x, ON(R, P(MESH_SUM)));
    REQUIRE(case_lies(other, ON(R, P(MESH_SUM))));
    return case_full_is(other, SHAPE(4), VALUES(6, 6, 6, 6));
}

CASE(case_pmix_parts_of_chunks_become_the_whole, 4)
{
    (void)m;
    double chunk[3];
    for (int k = 0; k < 3; k++) {
        chunk[k] = (me / 2 + 1) * (me % 2 * 3 + k);
    }
    mesh_dtensor *x = mesh_from_local(case_tensor(SHAPE(3), chunk), case_plane(2, 2), ON(P(MESH_SUM), S(0)));
    return case_local_is(mesh_redistribute(x, ON(R, R)), SHAPE(6), VALUES(0, 3, 6, 9, 12, 15));
}

CASE(case_one_a_mesh_dim_of_one_rank_changes_for_nothing, 4)
{
    (void)m;
    (void)me;
    mesh_device_mesh *grid = case_plane(4, 1);
    const mesh_placement any[] = { R, S(0), S(1), P(MESH_SUM), P(MESH_MAX) };
    for (size_t k = 0; k < ARRAY_SIZE(any) * ARRAY_SIZE(any); k++) {
        mesh_placement from = any[k / ARRAY_SIZE(any)], to = any[k % ARRAY_SIZE(any)];
        mesh_dtensor *x = case_laid(grid, SHAPE(5, 3), NULL, ON(S(0), from));
        mesh_comm_reset();
        mesh_dtensor *y = mesh_redistribute(x, ON(S(0), to));
        REQUIRE(case_n_calls() == 0 && case_n_bytes() == 0);
        REQUIRE_OK(case_full_is(y, SHAPE(5, 3), NULL));
    }
    return 0;
}

CASE(case_tp42_rows_are_gathered_and_split_again, 2)
{
    (void)m;
    mesh_placements rows = ON(R, S(0));
    mesh_dtensor *x = case_laid(case_plane(1, 2), SHAPE(4, 2), NULL, rows);
    mesh_dtensor *whole = mesh_redistribute(x, ON(R, R)), *again = mesh_redistribute(whole, rows);
    const double *mine = me == 0 ? VALUES(0, 1, 2, 3) : VALUES(4, 5, 6, 7);
    REQUIRE_OK(case_local_is(x, SHAPE(2, 2), mine));
    REQUIRE_OK(case_local_is(whole, SHAPE(4, 2), NULL));
    return case_local_is(again, SHAPE(2, 2), mine);
}

CASE(case_tpops_sum_transpose_and_addition_of_split_rows, 2)
{
    (void)me;
    mesh_dtensor *x = case_laid(m, SHAPE(4, 2), NULL, ON(S(0)));
    REQUIRE_OK(case_full_is(mesh_add_scalar(x, 1), SHAPE(4, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8)));
    REQUIRE_OK(case_full_is(mesh_transpose(x, 0, 1), SHAPE(2, 4), VALUES(0, 2, 4, 6, 1, 3, 5, 7)));
    return case_full_is(mesh_sum(x, .dims = SHAPE(0)), SHAPE(2), VALUES(12, 16));
}

/* Every rank of a pending line holds the whole value: completed, it counts once for each of them. */
static int times_the_pending(mesh_device_mesh *grid, mesh_shape s, mesh_placements from, mesh_placements to)
{
    double want[16 * 24], factor = 1;
    mesh_placements held = from;
    for (int d = 0; d < from.n; d++) {
        if (from.at[d].kind == MESH_IS_PARTIAL) {
            held.at[d] = R;
            factor *= d == 0 ? 4 : 2;
        }
    }
    for (int64_t i = 0; i < s.dim[0] * s.dim[1]; i++) {
        want[i] = (double)i * factor;
    }
    mesh_tensor *local = mesh_to_local(case_laid(grid, s, NULL, held));
    mesh_dtensor *x = mesh_from_local(local, grid, from, .shape = s, .unchecked = true);
    mesh_dtensor *y = mesh_redistribute(x, to);
    REQUIRE(case_lies(y, to));
    return case_full_is(y, s, want);
}

CASE(case_pairs_a_pending_line_counts_once_for_each_rank, 8)
{
    (void)m;
    (void)me;
    mesh_device_mesh *grid = case_plane(4, 2);
    const mesh_placement any[4] = { R, S(0), S(1), P(MESH_SUM) };
    for (int k = 0; k < 4 * 4 * 3 * 3; k++) {
        mesh_placements from = ON(any[k % 4], any[k / 4 % 4]), to = ON(any[k / 16 % 3], any[k / 48]);
        mesh_scope *s = mesh_scope_begin();
        REQUIRE_OK(times_the_pending(grid, SHAPE(16, 24), from, to));
        REQUIRE_OK(times_the_pending(grid, SHAPE(5, 3), from, to));
        REQUIRE(mesh_scope_end(s) == 0);
    }
    return 0;
}

CASE(case_xmesh_another_mesh_takes_it_and_another_list_is_refused, 4)
{
    static const double mine[2][4] = { { 0, 1, 2, 3 }, { 4, 5, 6, 7 } };
    mesh_device_mesh *half = mesh_new_device_mesh("cpu", SHAPE(2), (const int[]){ 0, 1 }, NULL);
    mesh_dtensor *x = case_laid(m, SHAPE(8), NULL, ON(S(0)));
    REFUSED(mesh_redistribute(x, ON(S(0), R)), MESH_EINVAL, "2");
    REFUSED(mesh_redistribute_to(x, half, ON(S(0), R)), MESH_EINVAL, "2");
    mesh_dtensor *y = mesh_redistribute_to(x, half, ON(S(0)));
    REQUIRE(case_lies(y, ON(S(0))));
    REQUIRE_OK(me < 2 ? case_local_is(y, SHAPE(4), mine[me]) : 0);
    return case_full_is(x, SHAPE(8), NULL);
}

CASE(case_adrop_a_dropped_move_disturbs_nobody, 4)
{
    (void)me;
    mesh_dtensor *x = case_laid(m, SHAPE(8), NULL, ON(S(0)));
    mesh_dtensor *moving = mesh_redistribute_async(x, ON(R));
    mesh_release(x);
    mesh_release(moving);
    float one = 1;
    REQUIRE(mesh_all_reduce(&one, 1, MESH_F32, MESH_SUM, mesh_world()) == 0);
    REQUIRE_NEAR((double)one, 4, 0);
    return 0;
}

CASES("cases B: conversion", ROW(case_src0_the_data_of_rank_0_win_or_each_rank_keeps_its_own),
      ROW(case_infer_rows_3_3_3_1_are_the_chunks_of_ten),
      ROW(case_irreg_parts_that_no_chunk_rule_makes_are_refused_everywhere),
      ROW(case_incons_parts_of_different_width_are_listed_to_all),
      ROW(case_rchk_replicas_that_differ_are_named_and_not_overwritten),
      ROW(case_pones_ones_on_four_ranks_are_a_pending_four), ROW(case_ps_a_pending_sum_is_split_by_rows),
      ROW(case_pavg_a_pending_average_is_divided_once), ROW(case_pmax_parts_become_their_maximum_not_their_sum),
      ROW(case_pmin_pprod_parts_become_their_minimum_and_product),
      ROW(case_r2p_whole_numbers_become_parts_that_add_up_exactly),
      ROW(case_p2p_gathering_beside_a_pending_product_reduces_nothing), ROW(case_pmix_parts_of_chunks_become_the_whole),
      ROW(case_one_a_mesh_dim_of_one_rank_changes_for_nothing), ROW(case_tp42_rows_are_gathered_and_split_again),
      ROW(case_tpops_sum_transpose_and_addition_of_split_rows),
      ROW(case_pairs_a_pending_line_counts_once_for_each_rank),
      ROW(case_xmesh_another_mesh_takes_it_and_another_list_is_refused),
      ROW(case_adrop_a_dropped_move_disturbs_nobody));
