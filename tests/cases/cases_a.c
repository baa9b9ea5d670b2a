/* tests/cases/cases_a.c - layouts: who holds which rows (section A of the case list).
 * SPDX-License-Identifier: Apache-2.0 */
#include "case_list.h"

CASE(case_seedfix_eight_elements_are_two_to_each_of_four_ranks, 4)
{
    static const double want[4][2] = { { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 } };
    mesh_shape part, offset;
    REQUIRE(mesh_compute_local_shape_and_offset(SHAPE(8), m, ON(S(0)), NULL, &part, &offset) == 0);
    REQUIRE(part.dim[0] == 2 && offset.dim[0] == 2 * me);
    return case_local_is(case_laid(m, SHAPE(8), NULL, ON(S(0))), SHAPE(2), want[me]);
}

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
    mesh_device_mesh *grid = case_plane(2, 4);
    mesh_placements both = ON(S(0), S(0));
    REQUIRE(mesh_compute_local_shape_and_offset(SHAPE(2), grid, both, NULL, &part, &offset) == 0);
    REQUIRE(part.dim[0] == (me % 4 == 0) && offset.dim[0] == (me == 0 ? 0 : me == 4 ? 1 : 2));
    mesh_dtensor *x = case_laid(grid, SHAPE(2), NULL, both);
    REQUIRE_OK(case_local_is(x, SHAPE(me % 4 == 0), &rows[me / 4]));
    return case_full_is(x, SHAPE(2), NULL);
}

/* Both mesh dims split dim 0 of x: rank r has n_rows[r] of them, from offset[r] on. */
static int nested(mesh_device_mesh *grid, int me, mesh_shape s, const int64_t *n_rows, const int64_t *offset)
{
    mesh_shape part, begin;
    mesh_placements both = ON(S(0), S(0));
    REQUIRE(mesh_compute_local_shape_and_offset(s, grid, both, NULL, &part, &begin) == 0);
    REQUIRE(part.dim[0] == n_rows[me] && begin.dim[0] == offset[me]);
    for (int r = 0; r < mesh_world_size(); r++) { /* of any coordinate */
        int n_columns = mesh_mesh_size(grid, "b");
        const int coordinate[2] = { r / n_columns, r % n_columns };
        REQUIRE(mesh_compute_local_shape_and_offset(s, grid, both, coordinate, &part, &begin) == 0);
        REQUIRE(part.dim[0] == n_rows[r] && begin.dim[0] == offset[r]);
    }
    return case_full_is(case_laid(grid, s, NULL, both), s, NULL);
}

CASE(case_s00_9_nine_rows_are_five_and_four_and_then_split_again, 4)
{
    (void)m;
    static const int64_t n_rows[] = { 3, 2, 2, 2 }, offset[] = { 0, 3, 5, 7 };
    return nested(case_plane(2, 2), me, SHAPE(9), n_rows, offset);
}

CASE(case_s42_13_thirteen_rows_on_a_4x2_mesh_leave_the_last_rank_none, 8)
{
    (void)m;
    static const int64_t n_rows[] = { 2, 2, 2, 2, 2, 2, 1, 0 }, offset[] = { 0, 2, 4, 6, 8, 10, 12, 13 };
    return nested(case_plane(4, 2), me, SHAPE(13, 2), n_rows, offset);
}

/* Rank (i, j) of the mesh (a, b); the turned mesh (b, a) splits by b first. */
CASE(case_ord8_either_mesh_dim_may_split_first, 4)
{
    (void)m;
    static const double want[2][4][2] = { { { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 } },
                                          { { 0, 1 }, { 4, 5 }, { 2, 3 }, { 6, 7 } } };
    mesh_device_mesh *grid = case_plane(2, 2), *turned = mesh_submesh(grid, MESH_NAMES("b", "a"));
    for (int k = 0; k < 2; k++) {
        mesh_dtensor *x = case_laid(k == 0 ? grid : turned, SHAPE(8), NULL, ON(S(0), S(0)));
        REQUIRE_OK(case_local_is(x, SHAPE(2), want[k][me]));
        REQUIRE_OK(case_full_is(x, SHAPE(8), NULL));
    }
    mesh_dtensor *strided = case_laid(grid, SHAPE(8), NULL, ON(mesh_strided_shard(0, 2), S(0)));
    REQUIRE_OK(case_local_is(strided, SHAPE(2), want[1][me])); /* the other order on the same mesh */
    return case_full_is(strided, SHAPE(8), NULL);
}

CASE(case_ord6_ord5_uneven_rows_split_by_the_second_dim_first, 4)
{
    (void)m;
    static const double six[4][2] = { { 0, 1 }, { 3, 4 }, { 2 }, { 5 } },
                        five[4][2] = { { 0, 1 }, { 3 }, { 2 }, { 4 } };
    mesh_device_mesh *turned = mesh_submesh(case_plane(2, 2), MESH_NAMES("b", "a"));
    mesh_dtensor *x = case_laid(turned, SHAPE(6), NULL, ON(S(0), S(0)));
    mesh_dtensor *y = case_laid(turned, SHAPE(5), NULL, ON(S(0), S(0)));
    REQUIRE_OK(case_local_is(x, SHAPE(me < 2 ? 2 : 1), six[me]));
    REQUIRE_OK(case_local_is(y, SHAPE(me == 0 ? 2 : 1), five[me]));
    mesh_dtensor *strided = case_laid(case_plane(2, 2), SHAPE(5), NULL, ON(mesh_strided_shard(0, 2), S(0)));
    REQUIRE_OK(case_local_is(strided, SHAPE(me == 0 ? 2 : 1), five[me]));
    REQUIRE_OK(case_full_is(x, SHAPE(6), NULL));
    return case_full_is(y, SHAPE(5), NULL);
}

CASES("cases A: layouts", ROW(case_seedfix_eight_elements_are_two_to_each_of_four_ranks),
      ROW(case_z0_z1_tensors_without_elements_have_their_shape),
      ROW(case_scal_a_number_is_whole_or_pending_but_never_split),
      ROW(case_neg_a_negative_dim_is_stored_as_what_it_means),
      ROW(case_bad_a_dim_that_is_not_there_is_refused_everywhere),
      ROW(case_more_ranks_than_rows_leave_the_rest_empty_at_the_end),
      ROW(case_i64_extents_beyond_32_bits_are_split_exactly),
      ROW(case_s24_2_two_rows_on_a_2x4_mesh_lie_on_ranks_0_and_4),
      ROW(case_s00_9_nine_rows_are_five_and_four_and_then_split_again),
      ROW(case_s42_13_thirteen_rows_on_a_4x2_mesh_leave_the_last_rank_none),
      ROW(case_ord8_either_mesh_dim_may_split_first), ROW(case_ord6_ord5_uneven_rows_split_by_the_second_dim_first));
