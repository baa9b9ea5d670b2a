/* tests/unit/base/test_suggest.c - which word a mistyped one is taken for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <stdint.h>
#include <string.h>

#include "base/util.h"
#include "harness/check_main.h"

static const char *const known[] = { "run", "status", "ranks", "mesh", "kv", "ping" };

START_TEST(distance_counts_steps_and_swaps)
{
    ck_assert_uint_eq(suggest_distance("status", "status"), 0);
    ck_assert_uint_eq(suggest_distance("stauts", "status"), 1);
    ck_assert_uint_eq(suggest_distance("statu", "status"), 1);
    ck_assert_uint_eq(suggest_distance("sstatus", "status"), 1);
    ck_assert_uint_eq(suggest_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(suggest_distance("", "abc"), 3);
}
END_TEST

START_TEST(a_word_that_is_too_long_is_far_from_everything)
{
    char word[200];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    ck_assert_uint_eq(suggest_distance(word, "status"), SIZE_MAX);
    ck_assert_ptr_null(suggest_nearest(word, known, ARRAY_SIZE(known)));
}
END_TEST

START_TEST(near_words_are_found_and_far_ones_are_not)
{
    ck_assert_str_eq(suggest_nearest("stauts", known, ARRAY_SIZE(known)), "status");
    ck_assert_str_eq(suggest_nearest("rnaks", known, ARRAY_SIZE(known)), "ranks");
    ck_assert_str_eq(suggest_nearest("rn", known, ARRAY_SIZE(known)), "run");
    ck_assert_str_eq(suggest_nearest("stat", known, ARRAY_SIZE(known)), "status");
    ck_assert_str_eq(suggest_nearest("pnig", known, ARRAY_SIZE(known)), "ping");
    ck_assert_ptr_null(suggest_nearest("s", known, ARRAY_SIZE(known)));
    ck_assert_ptr_null(suggest_nearest("frobnicate", known, ARRAY_SIZE(known)));
    ck_assert_ptr_null(suggest_nearest("", known, ARRAY_SIZE(known)));
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("suggest");
    TCase *cases = tcase_create("suggest");
    tcase_add_test(cases, distance_counts_steps_and_swaps);
    tcase_add_test(cases, a_word_that_is_too_long_is_far_from_everything);
    tcase_add_test(cases, near_words_are_found_and_far_ones_are_not);
    suite_add_tcase(suite, cases);
    return suite;
}
