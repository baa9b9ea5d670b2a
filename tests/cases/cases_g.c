/* tests/cases/cases_g.c - factories (section G of the case list; its random numbers are in test_random.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "case_list.h"

CASE(case_linsp_spaced_numbers_end_exactly, 4)
{
    static const double line[4][2] = { { 0, .25 }, { .5, .75 }, { 1 }, { 0 } }, power[4] = { 1, 10, 100, 1000 };
    mesh_dtensor *x = mesh_linspace(0, 1, 5, m, ON(S(0)));
    REQUIRE_OK(case_local_is(x, SHAPE(me < 2 ? 2 : 3 - me), line[me]));
    REQUIRE(me != 2 || ((float *)mesh_tensor_data(mesh_to_local(x)))[0] >= 1);
    REQUIRE_OK(case_local_is(mesh_logspace(0, 3, 4, m, ON(S(0))), SHAPE(1), &power[me]));
    REQUIRE_OK(case_full_is(mesh_linspace(3, 9, 1, m, ON(S(0))), SHAPE(1), VALUES(3)));
    REQUIRE_OK(case_full_is(mesh_linspace(3, 9, 0, m, ON(S(0))), SHAPE(0), NULL));
    REFUSED(mesh_linspace(0, 1, -1, m, ON(S(0))), MESH_EINVAL, "-1");
    return 0;
}

CASE(case_full_constants_have_only_their_part, 4)
{
    REQUIRE_OK(case_local_is(mesh_full(SHAPE(2, 3), 7, m, ON(S(1))), SHAPE(2, me < 3), VALUES(7, 7)));
    REQUIRE_OK(case_local_is(mesh_zeros(MESH_SCALAR_SHAPE, m, ON(R)), MESH_SCALAR_SHAPE, VALUES(0)));
    return case_local_is(mesh_ones(SHAPE(8), m, ON(S(0))), SHAPE(2), VALUES(1, 1));
}

CASES("cases G: factories", ROW(case_linsp_spaced_numbers_end_exactly), ROW(case_full_constants_have_only_their_part));
