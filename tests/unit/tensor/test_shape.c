/* tests/unit/tensor/test_shape.c - shapes: what is refused, what broadcasts, how it reads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <string.h>

#include "tensor/shape.h"

START_TEST(scalar_has_one_element_and_zero_extent_has_none)
{
    ck_assert_int_eq(shape_numel(MESH_SCALAR_SHAPE), 1);
    ck_assert_int_eq(shape_numel(MESH_SHAPE(3, 0, 5)), 0);
    ck_assert_int_eq(shape_numel(MESH_SHAPE(3, 7, 5)), 105);
}
END_TEST

START_TEST(check_refuses_negative_extents_too_many_dimensions_and_overflow)
{
    mesh_shape too_many = { .ndim = MESH_MAX_NDIM + 1 };
    ck_assert_int_eq(shape_check(MESH_SHAPE(2, -1), "x"), MESH_ESHAPE);
    ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, "dimension 1"));
    ck_assert_int_eq(shape_check(too_many, "x"), MESH_ESHAPE);
    ck_assert_int_eq(shape_check(MESH_SHAPE(INT64_MAX, INT64_MAX), "x"), MESH_ESHAPE);
    ck_assert_int_eq(shape_check(MESH_SHAPE(0, INT64_MAX, INT64_MAX), "x"), MESH_ESHAPE);
    ck_assert_int_eq(shape_check(MESH_SHAPE(INT64_C(1) << 33, 3), "x"), 0);
    ck_assert_int_eq(shape_check(MESH_SCALAR_SHAPE, "x"), 0);
}
END_TEST

START_TEST(text_reads_like_a_list_and_is_cut_to_fit)
{
    char text[SHAPE_TEXT_BYTES], tiny[4];
    ck_assert_str_eq(shape_text(MESH_SCALAR_SHAPE, text, sizeof text), "[]");
    ck_assert_str_eq(shape_text(MESH_SHAPE(64, 784), text, sizeof text), "[64,784]");
    ck_assert_str_eq(shape_text(MESH_SHAPE(64, 784), tiny, sizeof tiny), "[64");
    mesh_shape longest = { .ndim = MESH_MAX_NDIM };
    for (int d = 0; d < MESH_MAX_NDIM; d++) {
        longest.dim[d] = INT64_MAX;
    }
    shape_text(longest, text, sizeof text);
    ck_assert_int_eq(text[strlen(text) - 1], ']');
}
END_TEST

START_TEST(negative_dimension_counts_from_the_end)
{
    int dim = 7;
    ck_assert_int_eq(shape_dim(MESH_SHAPE(2, 3), -1, "softmax", &dim), 0);
    ck_assert_int_eq(dim, 1);
    ck_assert_int_eq(shape_dim(MESH_SHAPE(2, 3), 2, "softmax", &dim), MESH_EINVAL);
    ck_assert_int_eq(shape_dim(MESH_SHAPE(2, 3), -3, "softmax", &dim), MESH_EINVAL);
    ck_assert_int_eq(shape_dim(MESH_SCALAR_SHAPE, 0, "softmax", &dim), MESH_EINVAL);
    ck_assert_int_eq(dim, 1);
}
END_TEST

START_TEST(outer_and_inner_split_the_elements_at_a_dimension)
{
    mesh_shape s = MESH_SHAPE(2, 3, 5);
    ck_assert_int_eq(shape_outer(s, 0), 1);
    ck_assert_int_eq(shape_outer(s, 2), 6);
    ck_assert_int_eq(shape_inner(s, 0), 15);
    ck_assert_int_eq(shape_inner(s, 2), 1);
}
END_TEST

START_TEST(broadcast_follows_numpy)
{
    mesh_shape out;
    ck_assert_int_eq(shape_broadcast(MESH_SHAPE(5, 1), MESH_SHAPE(1, 3), "add", &out), 0);
    ck_assert(shape_equal(out, MESH_SHAPE(5, 3)));
    ck_assert_int_eq(shape_broadcast(MESH_SHAPE(2, 4, 3), MESH_SCALAR_SHAPE, "add", &out), 0);
    ck_assert(shape_equal(out, MESH_SHAPE(2, 4, 3)));
    ck_assert_int_eq(shape_broadcast(MESH_SHAPE(1), MESH_SHAPE(2, 0), "add", &out), 0);
    ck_assert(shape_equal(out, MESH_SHAPE(2, 0)));
    ck_assert_int_eq(shape_broadcast(MESH_SHAPE(2, 3), MESH_SHAPE(2), "add", &out), MESH_ESHAPE);
    ck_assert_str_eq(mesh_last_error()->message,
                     "add: [2,3] and [2] do not broadcast: 3 and 2 in dimension 1 of the result");
    ck_assert(!shape_equal(MESH_SHAPE(2), MESH_SHAPE(2, 1)));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("shape");
    TCase *t = tcase_create("shape");
    tcase_add_test(t, scalar_has_one_element_and_zero_extent_has_none);
    tcase_add_test(t, check_refuses_negative_extents_too_many_dimensions_and_overflow);
    tcase_add_test(t, text_reads_like_a_list_and_is_cut_to_fit);
    tcase_add_test(t, negative_dimension_counts_from_the_end);
    tcase_add_test(t, outer_and_inner_split_the_elements_at_a_dimension);
    tcase_add_test(t, broadcast_follows_numpy);
    suite_add_tcase(s, t);
    return s;
}
