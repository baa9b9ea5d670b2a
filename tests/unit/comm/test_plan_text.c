/* tests/unit/comm/test_plan_text.c - mesh_plan_text().
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/debug.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "harness/check_main.h"

START_TEST(a_plan_between_two_is_one_exchange)
{
    char text[1000];
    int n = mesh_plan_text(MESH_COMM_ALL_REDUCE, 2, 3, MESH_F32, 1, text, sizeof text);
    ck_assert_int_eq(n, (int)strlen(text));
    ck_assert_ptr_nonnull(strstr(text, "all_reduce f32[3] on 2 ranks: doubling"));
    ck_assert_ptr_nonnull(strstr(text, "6 elements (24 bytes) sent by all ranks together"));
    ck_assert_ptr_nonnull(strstr(text, "rank 1\n  round 1   send out[0..3) to 0, receive from 0 into scratch[0..3)\n"));
    ck_assert_ptr_nonnull(strstr(text, "combine scratch[0..3) into out[0..3)"));
    ck_assert_ptr_null(strstr(text, "rank 0\n"));
}
END_TEST

START_TEST(every_rank_has_its_part)
{
    char text[4000];
    ck_assert_int_gt(mesh_plan_text(MESH_COMM_BROADCAST, 3, 5, MESH_F64, -1, text, sizeof text), 0);
    for (int rank = 0; rank < 3; rank++) {
        char title[20];
        (void)snprintf(title, sizeof title, "rank %d\n", rank);
        ck_assert_ptr_nonnull(strstr(text, title));
    }
}
END_TEST

START_TEST(the_text_is_cut_like_snprintf_does)
{
    char text[20];
    int n = mesh_plan_text(MESH_COMM_BARRIER, 4, 0, MESH_F32, -1, NULL, 0);
    ck_assert_int_gt(n, 20);
    ck_assert_int_eq(mesh_plan_text(MESH_COMM_BARRIER, 4, 0, MESH_F32, -1, text, sizeof text), n);
    ck_assert_uint_eq(strlen(text), sizeof text - 1);
}
END_TEST

START_TEST(what_has_no_plan_is_refused)
{
    ck_assert_int_eq(mesh_plan_text(MESH_COMM_SEND, 2, 1, MESH_F32, 0, NULL, 0), MESH_EUNSUPPORTED);
    ck_assert_int_eq(mesh_plan_text((mesh_comm_kind)99, 2, 1, MESH_F32, 0, NULL, 0), MESH_EUNSUPPORTED);
    ck_assert_int_eq(mesh_plan_text(MESH_COMM_BARRIER, 0, 1, MESH_F32, 0, NULL, 0), MESH_EINVAL);
    ck_assert_int_eq(mesh_plan_text(MESH_COMM_BARRIER, 2, 1, MESH_F32, 2, NULL, 0), MESH_EINVAL);
    ck_assert_int_eq(mesh_plan_text(MESH_COMM_BARRIER, 2, 1, MESH_F32, 0, NULL, 10), MESH_EINVAL);
    ck_assert_int_eq(mesh_plan_text(MESH_COMM_BARRIER, 2, 1, (mesh_dtype)77, 0, NULL, 0), MESH_EINVAL);
    ck_assert_int_eq(mesh_plan_text(MESH_COMM_ALL_GATHER, 2, SIZE_MAX / 2, MESH_F32, 0, NULL, 0), MESH_ETOOLARGE);
}
END_TEST

START_TEST(every_collective_with_a_plan_can_be_printed_at_every_size)
{
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        for (int n = 1; n <= 9; n++) {
            for (size_t count = 0; count < 100000; count = count * 17 + 1) {
                int r = mesh_plan_text((mesh_comm_kind)kind, n, count, MESH_F32, -1, NULL, 0);
                ck_assert(r > 0 || r == MESH_EUNSUPPORTED);
            }
        }
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("plan_text");
    TCase *cases = tcase_create("plan_text");
    tcase_add_test(cases, a_plan_between_two_is_one_exchange);
    tcase_add_test(cases, every_rank_has_its_part);
    tcase_add_test(cases, the_text_is_cut_like_snprintf_does);
    tcase_add_test(cases, what_has_no_plan_is_refused);
    tcase_add_test(cases, every_collective_with_a_plan_can_be_printed_at_every_size);
    suite_add_tcase(suite, cases);
    return suite;
}
