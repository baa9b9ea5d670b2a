/* tests/cases/cases_c.c - views, slices, joining (section C of the case list).
 * SPDX-License-Identifier: Apache-2.0 */
#include "case_list.h"

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
    REQUIRE(case_lies(y, ON(S(0))));
    return case_local_is(y, SHAPE(384), &want[384 * me]);
}

EVERYWHERE(case_v179_a_reshape_has_the_elements_in_row_major_order)
{
    double v[96];
    for (int i = 0; i < 96; i++) {
        v[i] = i;
    }
    mesh_dtensor *x = spot_lay(at, MESH_F64, SHAPE(12, 8), v, true), *y = mesh_reshape(x, SHAPE(16, 6));
    REQUIRE(y != NULL && mesh_shape_of(y).dim[0] == 16);
    return case_elements_are(__FILE__, __LINE__, y, v, 96);
}

CASE(case_vfl0_split_rows_flatten_in_place, 4)
{
    static const double first[4] = { 0, 6, 12, 18 };
    mesh_dtensor *x = case_laid(m, SHAPE(8, 3), NULL, ON(S(0)));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_view(x, SHAPE(24));
    REQUIRE(case_lies(y, ON(S(0))) && case_n_calls() == 0);
    double f = first[me];
    REQUIRE_OK(case_local_is(y, SHAPE(6), VALUES(f, f + 1, f + 2, f + 3, f + 4, f + 5)));
    return case_full_is(y, SHAPE(24), NULL);
}

CASE(case_vfl1_split_columns_flatten_into_a_strided_shard, 4)
{
    (void)me;
    mesh_dtensor *x = case_laid(m, SHAPE(3, 8), NULL, ON(S(1)));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_view(x, SHAPE(24)); /* two columns of each of three rows */
    REQUIRE(case_n_calls() == 0 && case_lies(y, ON(mesh_strided_shard(0, 3))));
    return case_full_is(y, SHAPE(24), NULL);
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

/* Rows of rank (i, j) stay where they are when the dim that two mesh dims split becomes two dims. */
static int stays(mesh_shape s, mesh_shape to)
{
    mesh_dtensor *x = case_laid(case_plane(2, 2), s, NULL, ON(S(0), S(0)));
    mesh_comm_reset();
    mesh_dtensor *y = mesh_view(x, to);
    REQUIRE(case_lies(y, ON(S(0), S(1))) && case_n_calls() == 0);
    return case_full_is(y, to, NULL);
}

CASE(case_v2d_rows_split_twice_become_a_plane, 4)
{
    (void)m;
    (void)me;
    return stays(SHAPE(4, 6), SHAPE(2, 2, 6));
}

CASE(case_v2du_uneven_rows_split_twice_become_a_plane, 4)
{
    (void)m;
    (void)me;
    return stays(SHAPE(6, 4), SHAPE(2, 3, 4));
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

CASE(case_sel_an_element_of_a_split_line, 4)
{
    (void)me;
    mesh_dtensor *x = case_laid(m, SHAPE(16), NULL, ON(S(0)));
    REQUIRE_NEAR(mesh_item(mesh_select(x, 0, 7)), 7, 0);
    REQUIRE_NEAR(mesh_item(mesh_select(x, 0, -9)), 7, 0);
    REFUSED(mesh_select(x, 0, 16), MESH_EINVAL, "16");
    return 0;
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

EVERYWHERE(case_cat2_joined_tensors_may_lie_differently)
{
    mesh_dtensor *a = LAY(at, SHAPE(3, 2), 0, 1, 2, 3, 4, 5);
    mesh_dtensor *b = LAY(at, SHAPE(3, 4), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    IS(mesh_cat((mesh_dtensor *[]){ a, b }, 2, 1), 0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 6, 7, 4, 5, 8, 9, 10, 11);
    return 0;
}

CASE(case_catp_a_whole_tensor_beside_a_pending_one_counts_once, 2)
{
    mesh_dtensor *parts = case_from_full(m, SHAPE(1), me + 1, ON(P(MESH_SUM)));
    mesh_dtensor *both[2] = { parts, mesh_full(SHAPE(1), 10, m, ON(R)) };
    return case_full_is(mesh_cat(both, 2, 0), SHAPE(2), VALUES(3, 10));
}

EVERYWHERE(case_cat70_seventy_tensors_are_joined)
{
    mesh_dtensor *each[70];
    double want[70];
    for (int i = 0; i < 70; i++) {
        want[i] = i;
        each[i] = LAY(at, SHAPE(1), i);
    }
    return case_elements_are(__FILE__, __LINE__, mesh_cat(each, 70, 0), want, 70);
}

EVERYWHERE(case_spl_pieces_of_a_line)
{
    mesh_dtensor *x = LAY(at, SHAPE(10), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), *piece[4] = { NULL };
    IS(mesh_narrow(x, 0, 0, 3), 0, 1, 2);
    IS(mesh_narrow(x, 0, 3, 7), 3, 4, 5, 6, 7, 8, 9);
    REQUIRE(mesh_split(x, 3, 0, piece, 4) == 4);
    IS(piece[0], 0, 1, 2);
    IS(piece[1], 3, 4, 5);
    IS(piece[2], 6, 7, 8);
    IS(piece[3], 9);
    return 0;
}

CASE(case_stk_a_new_dim_renumbers_the_shard, 4)
{
    (void)me;
    mesh_dtensor *x = case_laid(m, SHAPE(8, 8), NULL, ON(S(1))), *twice[2] = { x, x };
    mesh_comm_reset();
    mesh_dtensor *first = mesh_stack(twice, 2, 0), *second = mesh_stack(twice, 2, 1);
    REQUIRE(case_lies(first, ON(S(2))) && case_lies(second, ON(S(2))) && case_n_calls() == 0);
    REQUIRE(mesh_shape_of(first).dim[0] == 2 && mesh_shape_of(second).dim[1] == 2);
    REQUIRE_OK(case_full_is(mesh_select(first, 0, 1), SHAPE(8, 8), NULL));
    return case_full_is(mesh_select(second, 1, 0), SHAPE(8, 8), NULL);
}

EVERYWHERE(case_isel_chosen_elements_of_a_line)
{
    mesh_dtensor *x = LAY(at, SHAPE(10), 0, 10, 20, 30, 40, 50, 60, 70, 80, 90);
    IS(mesh_index_select(x, INTS(at, SHAPE(4), 9, 0, 3, 3), 0), 90, 0, 30, 30);
    IS(mesh_index_select(x, INTS(at, SHAPE(2), -1, -10), 0), 90, 0);
    mesh_dtensor *high = mesh_full(SHAPE(1), 10, at->m, spot_whole(at), .dtype = MESH_I64);
    mesh_dtensor *low = mesh_full(SHAPE(1), -11, at->m, spot_whole(at), .dtype = MESH_I64);
    REFUSED(mesh_index_select(x, high, 0), MESH_EINVAL, "10");
    REFUSED(mesh_index_select(x, low, 0), MESH_EINVAL, "-11");
    return 0;
}

EVERYWHERE(case_gath_elements_chosen_along_columns)
{
    mesh_dtensor *x = LAY(at, SHAPE(2, 5), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    IS(mesh_take_along_dim(x, INTS(at, SHAPE(2, 1), 4, 0), 1), 4, 5);
    return 0;
}

CASES("cases C: views", ROW(case_v143_a_reshape_moves_what_a_view_may_not),
      ROW(case_v179_a_reshape_has_the_elements_in_row_major_order), ROW(case_vfl0_split_rows_flatten_in_place),
      ROW(case_vfl1_split_columns_flatten_into_a_strided_shard), ROW(case_vsp_a_split_dim_is_cut_where_its_parts_end),
      ROW(case_v2d_rows_split_twice_become_a_plane), ROW(case_v2du_uneven_rows_split_twice_become_a_plane),
      ROW(case_tr_a_transposed_shard_is_the_other_dim), ROW(case_renum_a_dim_that_goes_renumbers_the_sharded_one),
      ROW(case_expd_a_stretched_dim_is_never_garbage), ROW(case_sl_every_third_of_a_split_line),
      ROW(case_sle_a_slice_may_be_empty_also_at_the_end), ROW(case_sel_an_element_of_a_split_line),
      ROW(case_slk_columns_of_split_rows_are_cut_in_place), ROW(case_cat2_joined_tensors_may_lie_differently),
      ROW(case_catp_a_whole_tensor_beside_a_pending_one_counts_once), ROW(case_cat70_seventy_tensors_are_joined),
      ROW(case_spl_pieces_of_a_line), ROW(case_stk_a_new_dim_renumbers_the_shard),
      ROW(case_isel_chosen_elements_of_a_line), ROW(case_gath_elements_chosen_along_columns));
