/* tests/world/test_case_list.c - closed forms of the case list that no other test has.  A test's name begins with the case's id.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "case_list.h"
#include "harness/check_main.h"

static mesh_device_mesh *plane(int rows, int columns)
{
    return mesh_init_device_mesh("cpu", SHAPE(rows, columns), MESH_NAMES("a", "b"));
}

/* --- layouts --------------------------------------------------------------------------------------------------------- */

CASE(case_z0_z1_tensors_without_elements_have_their_shape, 4)
{
    mesh_shape part, offset;
    REQUIRE(mesh_compute_local_shape_and_offset(SHAPE(0, 3), m, ON(S(0)), NULL, &part, &offset) == 0);
    REQUIRE(part.dim[0] == 0 && part.dim[1] == 3 && offset.dim[0] == 0);
    REQUIRE_OK(case_full_is(mesh_zeros(SHAPE(0, 3), m, ON(S(0))), SHAPE(0, 3), NULL));
    mesh_dtensor *x = mesh_zeros(SHAPE(3, 0), m, ON(S(0)));
    REQUIRE_OK(case_local_is(x, SHAPE(me < 3, 0), NULL));
    return case_full_is(x, SHAPE(3, 0), NULL);
}

CASE(case_scal_a_number_is_whole_or_pending_but_never_split, 4)
{
    (void)me;
    const double five = 5;
    REQUIRE_OK(case_full_is(case_laid(m, MESH_SCALAR_SHAPE, &five, ON(R)), MESH_SCALAR_SHAPE, &five));
    REQUIRE_OK(case_full_is(case_laid(m, MESH_SCALAR_SHAPE, &five, ON(P(MESH_SUM))), MESH_SCALAR_SHAPE, &five));
    mesh_tensor *t = case_tensor(MESH_SCALAR_SHAPE, &five);
    REFUSED(mesh_distribute_tensor(t, m, ON(S(0))), MESH_EINVAL, "S(0)");
    return 0;
}

CASE(case_neg_a_negative_dim_is_stored_as_what_it_means, 4)
{
    static const double columns[4][6] = {
        { 0, 1, 7, 8, 14, 15 }, { 2, 3, 9, 10, 16, 17 }, { 4, 5, 11, 12, 18, 19 }, { 6, 13, 20 }
    };
    mesh_dtensor *x = case_laid(m, SHAPE(3, 7), NULL, ON(S(-1)));
    REQUIRE(case_lies(x, ON(S(1))));
    return case_local_is(x, SHAPE(3, me < 3 ? 2 : 1), columns[me]);
}

CASE(case_bad_a_dim_that_is_not_there_is_refused_everywhere, 4)
{
    (void)me;
    REFUSED(mesh_zeros(SHAPE(2, 2), m, ON(S(2))), MESH_EINVAL, "S(2)");
    REFUSED(mesh_zeros(SHAPE(2, 2), m, ON(S(-3))), MESH_EINVAL, "S(-3)");
    return 0;
}

CASE(case_more_ranks_than_rows_leave_the_rest_empty_at_the_end, 8)
{
    mesh_shape part, offset;
    REQUIRE(mesh_compute_local_shape_and_offset(SHAPE(2), m, ON(S(0)), NULL, &part, &offset) == 0);
    REQUIRE(part.dim[0] == (me < 2) && offset.dim[0] == (me < 2 ? me : 2));
    REQUIRE_OK(case_local_is(case_laid(m, SHAPE(2), NULL, ON(S(0))), SHAPE(me < 2), VALUES(me)));
    return 0;
}

CASE(case_i64_extents_beyond_32_bits_are_split_exactly, 3)
{
    mesh_shape part, offset;
    REQUIRE(mesh_compute_local_shape_and_offset(SHAPE(INT64_C(1) << 33), m, ON(S(0)), NULL, &part, &offset) == 0);
    REQUIRE(part.dim[0] == INT64_C(2863311531) - (me == 2) && offset.dim[0] == INT64_C(2863311531) * me);
    return 0;
}

CASE(case_s24_2_two_rows_on_a_2x4_mesh_lie_on_ranks_0_and_4, 8)
{
    (void)m;
    static const double rows[2] = { 0, 1 };
    mesh_shape part, offset;
    mesh_device_mesh *grid = plane(2, 4);
    mesh_placements both = ON(S(0), S(0));
    REQUIRE(mesh_compute_local_shape_and_offset(SHAPE(2), grid, both, NULL, &part, &offset) == 0);
    REQUIRE(part.dim[0] == (me % 4 == 0) && offset.dim[0] == (me == 0 ? 0 : me == 4 ? 1 : 2));
    mesh_dtensor *x = case_laid(grid, SHAPE(2), NULL, both);
    REQUIRE_OK(case_local_is(x, SHAPE(me % 4 == 0), &rows[me / 4]));
    return case_full_is(x, SHAPE(2), NULL);
}

/* Rank (i, j) of the mesh (a, b); the turned mesh (b, a) splits by b first. */
CASE(case_ord8_either_mesh_dim_may_split_first, 4)
{
    (void)m;
    static const double want[2][4][2] = { { { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 } },
                                          { { 0, 1 }, { 4, 5 }, { 2, 3 }, { 6, 7 } } };
    mesh_device_mesh *grid = plane(2, 2), *turned = mesh_submesh(grid, MESH_NAMES("b", "a"));
    for (int k = 0; k < 2; k++) {
        mesh_dtensor *x = case_laid(k == 0 ? grid : turned, SHAPE(8), NULL, ON(S(0), S(0)));
        REQUIRE_OK(case_local_is(x, SHAPE(2), want[k][me]));
        REQUIRE_OK(case_full_is(x, SHAPE(8), NULL));
    }
    return 0;
}

CASE(case_ord6_ord5_uneven_rows_split_by_the_second_dim_first, 4)
{
    (void)m;
    static const double six[4][2] = { { 0, 1 }, { 3, 4 }, { 2 }, { 5 } },
                        five[4][2] = { { 0, 1 }, { 3 }, { 2 }, { 4 } };
    mesh_device_mesh *turned = mesh_submesh(plane(2, 2), MESH_NAMES("b", "a"));
    mesh_dtensor *x = case_laid(turned, SHAPE(6), NULL, ON(S(0), S(0)));
    mesh_dtensor *y = case_laid(turned, SHAPE(5), NULL, ON(S(0), S(0)));
    REQUIRE_OK(case_local_is(x, SHAPE(me < 2 ? 2 : 1), six[me]));
    REQUIRE_OK(case_local_is(y, SHAPE(me == 0 ? 2 : 1), five[me]));
    REQUIRE_OK(case_full_is(x, SHAPE(6), NULL));
    return case_full_is(y, SHAPE(5), NULL);
}

/* --- conversion ------------------------------------------------------------------------------------------------------ */

CASE(case_ps_a_pending_sum_is_split_by_rows, 4)
{
    static const double fours[12] = { 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4 };
    mesh_dtensor *x = case_from_full(m, SHAPE(14, 3), 1, ON(P(MESH_SUM)));
    return case_local_is(mesh_redistribute(x, ON(S(0))), SHAPE(me < 3 ? 4 : 2, 3), fours);
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
    mesh_device_mesh *grid = plane(2, 2);
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
    mesh_dtensor *x = mesh_from_local(case_tensor(SHAPE(3), chunk), plane(2, 2), ON(P(MESH_SUM), S(0)));
    return case_local_is(mesh_redistribute(x, ON(R, R)), SHAPE(6), VALUES(0, 3, 6, 9, 12, 15));
}

CASE(case_one_a_mesh_dim_of_one_rank_changes_for_nothing, 4)
{
    (void)m;
    (void)me;
    mesh_device_mesh *grid = plane(4, 1);
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
    mesh_dtensor *x = case_laid(plane(1, 2), SHAPE(4, 2), NULL, rows);
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
    mesh_device_mesh *grid = plane(4, 2);
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

CASE(case_xmesh_another_mesh_or_list_is_refused_before_any_traffic, 4)
{
    (void)me;
    mesh_device_mesh *half = mesh_new_device_mesh("cpu", SHAPE(2), (const int[]){ 0, 1 }, NULL);
    mesh_dtensor *x = case_laid(m, SHAPE(8), NULL, ON(S(0)));
    REFUSED(mesh_redistribute_to(x, half, ON(S(0))), MESH_EUNSUPPORTED, "rank");
    REFUSED(mesh_redistribute(x, ON(S(0), R)), MESH_EINVAL, "2");
    return case_full_is(x, SHAPE(8), NULL);
}

Suite *test_suite(void)
{
    Suite *s = suite_create("case list");
    TCase *t = tcase_create("case list");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, case_z0_z1_tensors_without_elements_have_their_shape);
    tcase_add_test(t, case_scal_a_number_is_whole_or_pending_but_never_split);
    tcase_add_test(t, case_neg_a_negative_dim_is_stored_as_what_it_means);
    tcase_add_test(t, case_bad_a_dim_that_is_not_there_is_refused_everywhere);
    tcase_add_test(t, case_more_ranks_than_rows_leave_the_rest_empty_at_the_end);
    tcase_add_test(t, case_i64_extents_beyond_32_bits_are_split_exactly);
    tcase_add_test(t, case_s24_2_two_rows_on_a_2x4_mesh_lie_on_ranks_0_and_4);
    tcase_add_test(t, case_ord8_either_mesh_dim_may_split_first);
    tcase_add_test(t, case_ord6_ord5_uneven_rows_split_by_the_second_dim_first);
    tcase_add_test(t, case_ps_a_pending_sum_is_split_by_rows);
    tcase_add_test(t, case_pmin_pprod_parts_become_their_minimum_and_product);
    tcase_add_test(t, case_r2p_whole_numbers_become_parts_that_add_up_exactly);
    tcase_add_test(t, case_p2p_gathering_beside_a_pending_product_reduces_nothing);
    tcase_add_test(t, case_pmix_parts_of_chunks_become_the_whole);
    tcase_add_test(t, case_one_a_mesh_dim_of_one_rank_changes_for_nothing);
    tcase_add_test(t, case_tp42_rows_are_gathered_and_split_again);
    tcase_add_test(t, case_tpops_sum_transpose_and_addition_of_split_rows);
    tcase_add_test(t, case_pairs_a_pending_line_counts_once_for_each_rank);
    tcase_add_test(t, case_xmesh_another_mesh_or_list_is_refused_before_any_traffic);
    suite_add_tcase(s, t);
    return s;
}
