/* tests/world/test_case_list_ops.c - operators on closed forms of the case list that no other test has.  A test's name begins
 * with the case's id.
 * SPDX-License-Identifier: Apache-2.0 */
#include "case_list.h"
#include "harness/check_main.h"

/* --- views and slices -------------------------------------------------------------------------------------------------- */

/* Rows 2, 2, 2, 0 of 256 are not the chunks 384 of 1536. */
CASE(case_v143_a_reshape_moves_what_a_view_may_not, 4)
{
    double want[1536];
    for (int i = 0; i < 1536; i++) {
        want[i] = i;
    }
    mesh_dtensor *x = case_laid(m, SHAPE(6, 256), NULL, ON(S(0)));
    REFUSED(mesh_view(x, SHAPE(1536)), MESH_EPLACEMENT, "move between ranks");
    mesh_dtensor *y = mesh_reshape(x, SHAPE(1536));
    REQUIRE_OK(case_full_is(y, SHAPE(1536), want));
    return case_local_is(mesh_redistribute(y, ON(S(0))), SHAPE(384), &want[384 * me]);
}

CASE(case_vsp_a_split_dim_is_cut_where_its_parts_end, 4)
{
    static const double mine[6] = { 0, 1, 2, 12, 13, 14 };
    double want[6];
    for (int i = 0; i < 6; i++) {
        want[i] = mine[i] + 3 * me;
    }
    mesh_dtensor *x = case_laid(m, SHAPE(2, 12), NULL, ON(S(1)));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_view(x, SHAPE(2, 4, 3));
    REQUIRE(case_lies(y, ON(S(1))) && case_n_calls() == 0);
    REQUIRE_OK(case_local_is(y, SHAPE(2, 1, 3), want));
    REFUSED(mesh_view(x, SHAPE(2, 3, 4)), MESH_EPLACEMENT, "move between ranks");
    return case_full_is(mesh_reshape(x, SHAPE(2, 3, 4)), SHAPE(2, 3, 4), NULL);
}

CASE(case_tr_a_transposed_shard_is_the_other_dim, 4)
{
    mesh_dtensor *x = case_laid(m, SHAPE(5, 3), NULL, ON(S(0)));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_transpose(x, 0, 1);
    REQUIRE(case_lies(y, ON(S(1))) && case_n_calls() == 0);
    if (me == 2) {
        REQUIRE_OK(case_local_is(y, SHAPE(3, 1), VALUES(12, 13, 14)));
    }
    return case_full_is(y, SHAPE(3, 5), VALUES(0, 3, 6, 9, 12, 1, 4, 7, 10, 13, 2, 5, 8, 11, 14));
}

CASE(case_renum_a_dim_that_goes_renumbers_the_sharded_one, 4)
{
    static const int n_rows[4] = { 2, 2, 2, 0 };
    double want[18];
    for (int k = 0; k < 6; k++) {
        for (int i = 0; i < 3; i++) {
            want[3 * k + i] = 18 + 6 * k + 2 * i;
        }
    }
    mesh_dtensor *x = case_laid(m, SHAPE(2, 6, 3), NULL, ON(S(1)));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_sum(x, .dims = SHAPE(0));
    REQUIRE(case_lies(y, ON(S(0))) && case_n_calls() == 0);
    REQUIRE_OK(case_local_is(y, SHAPE(n_rows[me], 3), me < 3 ? &want[6 * me] : want));
    return case_full_is(y, SHAPE(6, 3), want);
}

CASE(case_expd_a_stretched_dim_is_never_garbage, 2)
{
    static const double rows[5] = { 0, 1, 2, 3, 4 };
    double tall[15], wide[20];
    for (int i = 0; i < 20; i++) {
        wide[i] = i % 5;
        if (i < 15) {
            tall[i] = rows[i / 3];
        }
    }
    mesh_dtensor *x = mesh_expand(case_laid(m, SHAPE(5, 1), NULL, ON(S(0))), SHAPE(5, 3));
    REQUIRE(case_lies(x, ON(S(0))));
    REQUIRE_OK(case_local_is(x, SHAPE(me == 0 ? 3 : 2, 3), &tall[9 * me]));
    mesh_dtensor *y = mesh_expand(case_laid(m, SHAPE(1, 5), NULL, ON(S(0))), SHAPE(4, 5));
    return case_full_is(y, SHAPE(4, 5), wide);
}

CASE(case_sl_every_third_of_a_split_line, 4)
{
    (void)me;
    mesh_dtensor *x = case_laid(m, SHAPE(16), NULL, ON(S(0)));
    mesh_dtensor *which = mesh_arange(2, 11, 3, m, ON(R), .dtype = MESH_I64);
    return case_full_is(mesh_index_select(x, which, 0), SHAPE(3), VALUES(2, 5, 8));
}

CASE(case_sle_a_slice_may_be_empty_also_at_the_end, 4)
{
    (void)me;
    mesh_dtensor *x = case_laid(m, SHAPE(16), NULL, ON(S(0)));
    REQUIRE_OK(case_full_is(mesh_narrow(x, 0, 5, 0), SHAPE(0), NULL));
    REQUIRE_OK(case_full_is(mesh_narrow(x, 0, 16, 0), SHAPE(0), NULL));
    return case_full_is(mesh_narrow(x, 0, -3, 3), SHAPE(3), VALUES(13, 14, 15));
}

CASE(case_slk_columns_of_split_rows_are_cut_in_place, 4)
{
    (void)me;
    double want[18];
    for (int i = 0; i < 18; i++) {
        want[i] = i / 3 * 8 + 2 + i % 3;
    }
    mesh_dtensor *x = case_laid(m, SHAPE(6, 8), NULL, ON(S(0)));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_narrow(x, 1, 2, 3);
    REQUIRE(case_lies(y, ON(S(0))) && case_n_calls() == 0);
    return case_full_is(y, SHAPE(6, 3), want);
}

/* --- arithmetic and reductions ----------------------------------------------------------------------------------------- */

CASE(case_mean1_an_empty_rank_does_not_make_a_mean_nan, 2)
{
    (void)me;
    mesh_dtensor *x = case_laid(m, SHAPE(1, 4), NULL, ON(S(0)));
    REQUIRE_NEAR(mesh_item(mesh_mean(x)), 1.5, 0);
    return 0;
}

CASE(case_bc_a_column_and_a_row_are_added_whatever_their_layouts, 4)
{
    (void)me;
    double want[15];
    for (int i = 0; i < 15; i++) {
        want[i] = i / 3 + 10 * (i % 3);
    }
    mesh_dtensor *column = case_laid(m, SHAPE(5, 1), NULL, ON(S(0)));
    mesh_dtensor *row = case_laid(m, SHAPE(1, 3), VALUES(0, 10, 20), ON(R));
    mesh_dtensor *y = mesh_add(column, row);
    REQUIRE(case_lies(y, ON(S(0))));
    REQUIRE_OK(case_full_is(y, SHAPE(5, 3), want));
    return case_full_is(mesh_add(column, mesh_redistribute(row, ON(S(1)))), SHAPE(5, 3), want);
}

CASE(case_eq_a_difference_on_rank_2_is_known_to_all, 4)
{
    (void)me;
    mesh_dtensor *a = case_laid(m, SHAPE(8), NULL, ON(S(0)));
    mesh_dtensor *b = case_laid(m, SHAPE(8), VALUES(0, 1, 2, 3, 4, 50, 6, 7), ON(S(0)));
    REQUIRE(mesh_equal(a, a) && !mesh_equal(a, b));
    return 0;
}

CASE(case_mixp_a_number_goes_with_any_layout, 4)
{
    (void)me;
    mesh_dtensor *two = mesh_full(MESH_SCALAR_SHAPE, 2, m, ON(R)), *x = case_laid(m, SHAPE(5), NULL, ON(S(0)));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_add(two, x);
    REQUIRE(case_lies(y, ON(S(0))) && case_n_calls() == 0);
    return case_full_is(y, SHAPE(5), VALUES(2, 3, 4, 5, 6));
}

CASE(case_tk_top_three_are_found_also_where_a_part_is_shorter, 4)
{
    (void)me;
    mesh_dtensor *values = NULL, *found = NULL;
    mesh_dtensor *x = case_laid(m, SHAPE(6), VALUES(4, 9, 1, 7, 8, 3), ON(S(0)));
    mesh_topk(x, 3, 0, &values, &found);
    REQUIRE_OK(case_full_is(values, SHAPE(3), VALUES(9, 8, 7)));
    return case_full_is(found, SHAPE(3), VALUES(1, 4, 3));
}

/* --- layers ---------------------------------------------------------------------------------------------------------- */

/* Token t is [t, 1]; hidden unit i is i t + 1; their sum and the bias are 10 t + 15. */
CASE(case_mlpsp_split_tokens_go_through_a_split_layer, 4)
{
    static const int n_tokens[4] = { 2, 2, 1, 0 };
    static const double want[6] = { 15, 25, 35, 45, 55 };
    mesh_dtensor *x = case_laid(m, SHAPE(5, 2), VALUES(0, 1, 1, 1, 2, 1, 3, 1, 4, 1), ON(S(0)));
    mesh_dtensor *w1 = case_laid(m, SHAPE(5, 2), VALUES(0, 1, 1, 1, 2, 1, 3, 1, 4, 1), ON(S(0)));
    mesh_dtensor *w2 = mesh_ones(SHAPE(1, 5), m, ON(S(1))), *bias = mesh_full(SHAPE(1), 10, m, ON(R));
    mesh_dtensor *hidden = mesh_linear(mesh_redistribute(x, ON(R)), w1, NULL);
    REQUIRE(case_lies(hidden, ON(S(1))));
    mesh_dtensor *y = mesh_redistribute(mesh_linear(hidden, w2, bias), ON(S(0)));
    REQUIRE_OK(case_local_is(y, SHAPE(n_tokens[me], 1), me < 3 ? &want[2 * me] : want));
    return case_full_is(y, SHAPE(5, 1), want);
}

CASE(case_embh_rows_have_the_dtype_of_their_table, 4)
{
    (void)me;
    mesh_dtensor *table = mesh_cast(case_laid(m, SHAPE(10, 2), NULL, ON(S(0))), MESH_F16);
    mesh_dtensor *ids = mesh_arange(3, 9, 3, m, ON(R), .dtype = MESH_I64);
    mesh_dtensor *y = mesh_embedding(table, ids);
    REQUIRE(y != NULL && mesh_dtype_of(y) == MESH_F16 && case_lies(y, ON(P(MESH_SUM))));
    return case_full_is(mesh_cast(y, MESH_F32), SHAPE(2, 2), VALUES(6, 7, 12, 13));
}

/* --- meshes ---------------------------------------------------------------------------------------------------------- */

CASE(case_mnam_a_name_that_no_dim_has_is_refused_with_those_that_are, 4)
{
    (void)me;
    REFUSED(mesh_submesh(m, MESH_NAMES("pp")), MESH_ENOTFOUND, "tp");
    REFUSED(mesh_init_device_mesh("cpu", SHAPE(2, 2), MESH_NAMES("a", "a")), MESH_EINVAL, "a");
    REFUSED(mesh_init_device_mesh("cpu", SHAPE(2, 2), MESH_NAMES("a")), MESH_EINVAL, "1 names");
    return 0;
}

CASE(case_mbig_a_mesh_larger_than_the_world_is_refused, 4)
{
    (void)m;
    (void)me;
    REFUSED(mesh_init_device_mesh("cpu", SHAPE(8), NULL), MESH_EINVAL, "8 ranks but the job has 4");
    REFUSED(mesh_init_device_mesh("cpu", SHAPE(4, 0), NULL), MESH_EINVAL, "dim 1 has size 0");
    REFUSED(mesh_init_device_mesh("cpu", SHAPE(-4), NULL), MESH_EINVAL, "size -4");
    return 0;
}

Suite *test_suite(void)
{
    Suite *s = suite_create("case list: operators");
    TCase *t = tcase_create("case list: operators");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, case_v143_a_reshape_moves_what_a_view_may_not);
    tcase_add_test(t, case_vsp_a_split_dim_is_cut_where_its_parts_end);
    tcase_add_test(t, case_tr_a_transposed_shard_is_the_other_dim);
    tcase_add_test(t, case_renum_a_dim_that_goes_renumbers_the_sharded_one);
    tcase_add_test(t, case_expd_a_stretched_dim_is_never_garbage);
    tcase_add_test(t, case_sl_every_third_of_a_split_line);
    tcase_add_test(t, case_sle_a_slice_may_be_empty_also_at_the_end);
    tcase_add_test(t, case_slk_columns_of_split_rows_are_cut_in_place);
    tcase_add_test(t, case_mean1_an_empty_rank_does_not_make_a_mean_nan);
    tcase_add_test(t, case_bc_a_column_and_a_row_are_added_whatever_their_layouts);
    tcase_add_test(t, case_eq_a_difference_on_rank_2_is_known_to_all);
    tcase_add_test(t, case_mixp_a_number_goes_with_any_layout);
    tcase_add_test(t, case_tk_top_three_are_found_also_where_a_part_is_shorter);
    tcase_add_test(t, case_mlpsp_split_tokens_go_through_a_split_layer);
    tcase_add_test(t, case_embh_rows_have_the_dtype_of_their_table);
    tcase_add_test(t, case_mnam_a_name_that_no_dim_has_is_refused_with_those_that_are);
    tcase_add_test(t, case_mbig_a_mesh_larger_than_the_world_is_refused);
    suite_add_tcase(s, t);
    return s;
}
