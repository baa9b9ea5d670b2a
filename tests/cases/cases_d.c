/* tests/cases/cases_d.c - arithmetic, reductions, pending values (section D of the case list).
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "case_list.h"

CASE(case_mean1_an_empty_rank_does_not_make_a_mean_nan, 2)
{
    (void)me;
    mesh_dtensor *x = case_laid(m, SHAPE(1, 4), NULL, ON(S(0)));
    REQUIRE_NEAR(mesh_item(mesh_mean(x)), 1.5, 0);
    return 0;
}

EVERYWHERE(case_maxe_the_largest_over_split_columns)
{
    mesh_dtensor *x = LAY(at, SHAPE(3, 3), 0, 1, 2, 3, 4, 5, 6, 7, 8);
    IS(mesh_amax(x), 8);
    IS(mesh_amax(x, .dims = SHAPE(1)), 2, 5, 8);
    IS(mesh_amin(x, .dims = SHAPE(0)), 0, 1, 2);
    return 0;
}

EVERYWHERE(case_empt_reductions_of_nothing)
{
    mesh_dtensor *x = mesh_zeros(SHAPE(0, 3), at->m, spot_split(at), .dtype = MESH_F64);
    IS(mesh_sum(x), 0);
    IS(mesh_prod(x), 1);
    IS(mesh_mean(x), NAN);
    IS(mesh_all(x), 1);
    IS(mesh_any(x), 0);
    REFUSED(mesh_amax(x), MESH_EINVAL, "nothing has no amax");
    return 0;
}

EVERYWHERE(case_var_of_six_numbers)
{
    mesh_dtensor *x = LAY(at, SHAPE(6), 0, 1, 2, 3, 4, 5);
    IS(mesh_var(x, 1), 3.5);
    IS(mesh_std(x, 1), 1.8708286933869707);
    return 0;
}

EVERYWHERE(case_vare_of_one_number)
{
    mesh_dtensor *x = LAY(at, SHAPE(1), 7);
    IS(mesh_var(x, 1), NAN);
    IS(mesh_var(x, 0), 0);
    return 0;
}

EVERYWHERE(case_prod_of_five_numbers)
{
    IS(mesh_prod(LAY(at, SHAPE(5), 1, 2, 3, 4, 5)), 120);
    return 0;
}

EVERYWHERE(case_all_empty_parts_are_neutral)
{
    IS(mesh_all(BOOLS(at, SHAPE(4), 1, 1, 1, 0)), 0);
    IS(mesh_all(BOOLS(at, SHAPE(3), 1, 1, 1)), 1);
    IS(mesh_any(BOOLS(at, SHAPE(3), 0, 0, 0)), 0);
    return 0;
}

/* One number of a pending reduction, a on rank 0 and b on rank 1. */
static mesh_dtensor *pending(mesh_device_mesh *m, mesh_reduce_op op, double a, double b)
{
    return mesh_from_local(case_tensor(SHAPE(1), mesh_rank() == 0 ? &a : &b), m, ON(P(op)));
}

static mesh_dtensor *pending_pair(mesh_device_mesh *m, mesh_reduce_op op, const double *of_rank_0,
                                  const double *of_rank_1)
{
    return mesh_from_local(case_tensor(SHAPE(2), mesh_rank() == 0 ? of_rank_0 : of_rank_1), m, ON(P(op)));
}

static mesh_dtensor *number(mesh_device_mesh *m, double value)
{
    return mesh_full(SHAPE(1), value, m, ON(R));
}

CASE(case_px2_a_pending_sum_scales_and_is_inverted_whole, 2)
{
    (void)me;
    mesh_dtensor *x = pending(m, MESH_SUM, 2, 3);
    mesh_comm_reset();
    mesh_dtensor *twice = mesh_mul_scalar(x, 2), *half = mesh_div(x, number(m, 2));
    REQUIRE(case_n_calls() == 0 && case_lies(twice, ON(P(MESH_SUM))));
    IS(twice, 10);
    IS(half, 2.5);
    REQUIRE_NEAR(mesh_item(mesh_div(number(m, 2), x)), 0.4, 1e-7);
    return 0;
}

CASE(case_pmx_a_pending_maximum_is_shifted_and_turned, 2)
{
    (void)me;
    mesh_dtensor *x = pending_pair(m, MESH_MAX, VALUES(1, 5), VALUES(4, 2));
    IS(mesh_add_scalar(x, 1), 5, 6);
    IS(mesh_mul_scalar(x, -1), -4, -5);
    IS(mesh_neg(x), -4, -5);
    IS(mesh_mul_scalar(x, 2), 8, 10);
    return 0;
}

CASE(case_nonl_what_is_not_linear_sees_the_whole_sum, 2)
{
    (void)me;
    mesh_dtensor *x = pending(m, MESH_SUM, 3, -5);
    IS(mesh_abs(x), 2);
    IS(mesh_relu(x), 0);
    IS(mesh_square(x), 4);
    REQUIRE_NEAR(mesh_item(mesh_exp(x)), 0.1353353, 1e-7);
    IS(mesh_neg(x), 2);
    return 0;
}

CASE(case_pavs_a_pending_average_beside_numbers_and_sums, 2)
{
    (void)me;
    mesh_dtensor *x = pending(m, MESH_AVG, 2, 4);
    IS(mesh_add_scalar(x, 10), 13);
    IS(mesh_mul_scalar(x, 3), 9);
    IS(mesh_add(x, pending(m, MESH_SUM, 1, 3)), 7);
    return 0;
}

CASE(case_cmpp_comparisons_see_the_whole_sum, 2)
{
    (void)me;
    mesh_dtensor *x = pending(m, MESH_SUM, 3, -5);
    IS(mesh_gt(x, number(m, 0)), 0);
    IS(mesh_eq(x, number(m, -2)), 1);
    IS(mesh_where(mesh_lt(x, number(m, 0)), number(m, 1), number(m, 0)), 1);
    return 0;
}

CASE(case_maxp_the_largest_of_a_pending_sum, 2)
{
    (void)me;
    IS(mesh_amax(pending_pair(m, MESH_SUM, VALUES(1, 0), VALUES(0, 3))), 3);
    return 0;
}

CASE(case_sump_the_sum_of_a_pending_maximum, 2)
{
    (void)me;
    IS(mesh_sum(pending_pair(m, MESH_MAX, VALUES(1, 0), VALUES(0, 3))), 4);
    return 0;
}

CASE(case_inpl_clamping_in_place_is_refused_where_parts_are_pending, 2)
{
    (void)me;
    mesh_dtensor *x = pending(m, MESH_SUM, 64, 64);
    REFUSED(mesh_clamp_(x, -INFINITY, 10), MESH_EINVAL, "mesh_clamp()");
    IS(x, 128);
    IS(mesh_clamp(x, -INFINITY, 10), 10);
    return 0;
}

CASE(case_inpa_adding_in_place_counts_once, 2)
{
    (void)me;
    mesh_dtensor *x = pending(m, MESH_SUM, 1, 2), *whole = number(m, 10);
    REFUSED(mesh_add_(whole, x), MESH_EINVAL, "P(sum)");
    REQUIRE(mesh_add_(x, whole) == x && case_lies(x, ON(P(MESH_SUM))));
    IS(x, 13);
    return 0;
}

EVERYWHERE(case_am_where_the_largest_is)
{
    IS(mesh_argmax(LAY(at, SHAPE(4), 10, 5, 3, 8)), 0);
    IS(mesh_argmax(LAY(at, SHAPE(4), 7, 1, 7, 0)), 0);
    IS(mesh_argmax(SPLIT(at, SHAPE(4), 1, NAN, 9, 2)), 1);
    return 0;
}

EVERYWHERE(case_amf_a_flat_index_counts_over_all_dims)
{
    mesh_dtensor *x = LAY(at, SHAPE(2, 2), 1, 9, 8, 2);
    IS(mesh_argmax(x), 1);
    IS(mesh_argmin(x, .dims = SHAPE(1)), 0, 1);
    return 0;
}

EVERYWHERE(case_mxd_largest_values_come_with_global_indices)
{
    mesh_dtensor *x = LAY(at, SHAPE(2, 4), 1, 9, 2, 3, 4, 5, 6, 7), *values = NULL, *found = NULL;
    mesh_topk(x, 1, 1, &values, &found);
    IS(values, 9, 7);
    IS(found, 1, 3);
    IS(mesh_amax(x, .dims = SHAPE(1)), 9, 7);
    IS(mesh_argmax(x, .dims = SHAPE(1)), 1, 3);
    return 0;
}

EVERYWHERE(case_tk_top_three_also_where_a_part_is_shorter)
{
    mesh_dtensor *x = LAY(at, SHAPE(6), 4, 9, 1, 7, 8, 3), *values = NULL, *found = NULL;
    mesh_topk(x, 3, 0, &values, &found);
    IS(values, 9, 8, 7);
    IS(found, 1, 4, 3);
    REFUSED((mesh_topk(x, 7, 0, &values, &found), values), MESH_EINVAL, "7 of the 6 elements");
    return 0;
}

EVERYWHERE(case_tkt_equal_ones_come_by_index)
{
    mesh_dtensor *found = NULL;
    mesh_topk(LAY(at, SHAPE(4), 5, 5, 5, 5), 3, 0, NULL, &found);
    IS(found, 0, 1, 2);
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

CASE(case_xm_operands_of_different_meshes_are_refused_by_name, 4)
{
    (void)me;
    mesh_dtensor *x = mesh_ones(SHAPE(4), m, ON(R)), *y = mesh_ones(SHAPE(4), case_plane(2, 2), ON(R, R));
    REFUSED(mesh_add(x, y), MESH_EINVAL, "(tp=4)");
    REFUSED(mesh_add(x, y), MESH_EINVAL, "(a=2, b=2)");
    return 0;
}

CASES("cases D: arithmetic", ROW(case_mean1_an_empty_rank_does_not_make_a_mean_nan),
      ROW(case_maxe_the_largest_over_split_columns), ROW(case_empt_reductions_of_nothing), ROW(case_var_of_six_numbers),
      ROW(case_vare_of_one_number), ROW(case_prod_of_five_numbers), ROW(case_all_empty_parts_are_neutral),
      ROW(case_px2_a_pending_sum_scales_and_is_inverted_whole), ROW(case_pmx_a_pending_maximum_is_shifted_and_turned),
      ROW(case_nonl_what_is_not_linear_sees_the_whole_sum), ROW(case_pavs_a_pending_average_beside_numbers_and_sums),
      ROW(case_cmpp_comparisons_see_the_whole_sum), ROW(case_maxp_the_largest_of_a_pending_sum),
      ROW(case_sump_the_sum_of_a_pending_maximum), ROW(case_inpl_clamping_in_place_is_refused_where_parts_are_pending),
      ROW(case_inpa_adding_in_place_counts_once), ROW(case_am_where_the_largest_is),
      ROW(case_amf_a_flat_index_counts_over_all_dims), ROW(case_mxd_largest_values_come_with_global_indices),
      ROW(case_tk_top_three_also_where_a_part_is_shorter), ROW(case_tkt_equal_ones_come_by_index),
      ROW(case_bc_a_column_and_a_row_are_added_whatever_their_layouts),
      ROW(case_eq_a_difference_on_rank_2_is_known_to_all), ROW(case_mixp_a_number_goes_with_any_layout),
      ROW(case_xm_operands_of_different_meshes_are_refused_by_name));
