/* tests/unit/tensor/test_walk.c - walks visit every element once, in order, merging what is contiguous.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include "tensor/walk.h"

START_TEST(equal_dense_shapes_are_one_row)
{
    struct walk w;
    walk_init(&w);
    walk_push(&w, 3, (int64_t[WALK_OPERANDS]){ 10, 10, 10 });
    walk_push(&w, 1, (int64_t[WALK_OPERANDS]){ 10, 10, 10 });
    walk_push(&w, 5, (int64_t[WALK_OPERANDS]){ 2, 2, 2 });
    walk_push(&w, 2, (int64_t[WALK_OPERANDS]){ 1, 1, 1 });
    ck_assert_int_eq(w.ndim, 1);
    ck_assert_int_eq(walk_inner(&w), 30);
    ck_assert_int_eq(walk_step(&w, 0), 1);
}
END_TEST

START_TEST(broadcast_dimension_keeps_its_zero_stride)
{
    struct walk w;
    struct walk_at at;
    int n = 0;
    walk_init(&w);
    walk_push(&w, 4, (int64_t[WALK_OPERANDS]){ 6, 0, 1 });
    walk_push(&w, 2, (int64_t[WALK_OPERANDS]){ 3, 3, 0 });
    walk_push(&w, 3, (int64_t[WALK_OPERANDS]){ 1, 1, 0 });
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        ck_assert_int_eq(at.offset[0], 6 * n);
        ck_assert_int_eq(at.offset[1], 0);
        ck_assert_int_eq(at.offset[2], n);
        n++;
    }
    ck_assert_int_eq(n, 4);
    ck_assert_int_eq(walk_inner(&w), 6);
}
END_TEST

START_TEST(three_loops_come_back_to_their_beginnings)
{
    struct walk w;
    struct walk_at at;
    int64_t n = 0;
    walk_init(&w);
    walk_push(&w, 2, (int64_t[WALK_OPERANDS]){ 100, 1, 0 });
    walk_push(&w, 3, (int64_t[WALK_OPERANDS]){ 10, 2, 0 });
    walk_push(&w, 5, (int64_t[WALK_OPERANDS]){ 1, 6, 0 });
    for (bool more = walk_first(&w, &at); more; more = walk_next(&w, &at)) {
        ck_assert_int_eq(at.offset[0], n / 3 * 100 + n % 3 * 10);
        ck_assert_int_eq(at.offset[1], n / 3 + n % 3 * 2);
        n++;
    }
    ck_assert_int_eq(n, 6);
}
END_TEST

START_TEST(scalar_is_one_row_of_one_and_empty_has_no_row)
{
    struct walk w;
    struct walk_at at;
    walk_init(&w);
    ck_assert(walk_first(&w, &at));
    ck_assert_int_eq(walk_inner(&w), 1);
    ck_assert(!walk_next(&w, &at));
    walk_push(&w, 3, (int64_t[WALK_OPERANDS]){ 0, 0, 0 });
    walk_push(&w, 0, (int64_t[WALK_OPERANDS]){ 1, 1, 1 });
    ck_assert(!walk_first(&w, &at));
}
END_TEST

START_TEST(strides_of_a_broadcast_shape_are_zero_where_it_stretches)
{
    int64_t stride[MESH_MAX_NDIM];
    shape_strides(MESH_SHAPE(5, 1, 3), MESH_SHAPE(2, 5, 4, 3), stride);
    ck_assert_int_eq(stride[0], 0);
    ck_assert_int_eq(stride[1], 3);
    ck_assert_int_eq(stride[2], 0);
    ck_assert_int_eq(stride[3], 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("walk");
    TCase *t = tcase_create("walk");
    tcase_add_test(t, equal_dense_shapes_are_one_row);
    tcase_add_test(t, broadcast_dimension_keeps_its_zero_stride);
    tcase_add_test(t, three_loops_come_back_to_their_beginnings);
    tcase_add_test(t, scalar_is_one_row_of_one_and_empty_has_no_row);
    tcase_add_test(t, strides_of_a_broadcast_shape_are_zero_where_it_stretches);
    suite_add_tcase(s, t);
    return s;
}
