/* tests/unit/daemon/test_words.c - what sentences are made of: ranks, keys, names, differing fields.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/sentence.h"

#include <string.h>

#include "base/error.h"
#include "daemon/bounds.h"
#include "daemon/descriptor.h"
#include "daemon/members.h"
#include "harness/check_main.h"
#include "seen.h"

static const char *ranks(size_t cap, const uint32_t *rank, size_t n)
{
    static char buf[256];
    return sentence_ranks(buf, cap, rank, n);
}

START_TEST(ranks_are_listed_in_runs)
{
    ck_assert_str_eq(ranks(100, (uint32_t[]){ 3 }, 1), "rank 3");
    ck_assert_str_eq(ranks(100, (uint32_t[]){ 3, 4 }, 2), "ranks 3 4");
    ck_assert_str_eq(ranks(100, (uint32_t[]){ 0, 1, 2, 5, 7, 8, 9, 10 }, 8), "ranks 0-2 5 7-10");
    uint32_t even[900];
    for (uint32_t i = 0; i < 900; i++) {
        even[i] = 2 * i;
    }
    ck_assert_str_eq(ranks(40, even, 900), "ranks 0 2 4 6 8 10 ... (900 in all)");
}
END_TEST

START_TEST(keys_are_shown_printable_and_cut)
{
    char buf[24];
    ck_assert_str_eq(sentence_key(buf, sizeof buf, text("a/b")), "\"a/b\"");
    ck_assert_str_eq(sentence_key(buf, sizeof buf, text("a\"\n")), "\"a\\x22\\x0a\"");
    sentence_key(buf, sizeof buf, text("0123456789012345678901234567890123456789"));
    ck_assert_uint_lt(strlen(buf), sizeof buf);
    assert_says(buf, "...\"");
}
END_TEST

START_TEST(names_outside_the_alphabet_are_refused)
{
    char longest[MAX_NAME_BYTES + 2];
    memset(longest, 'n', sizeof longest);
    longest[MAX_NAME_BYTES] = 0;
    ck_assert_int_eq(name_check("job name", "train-7.b_2", false), 0);
    ck_assert_int_eq(name_check("job name", longest, false), 0);
    ck_assert_int_eq(name_check("key", "device_mesh/3:[0,1]", true), 0);
    const char *bad[] = { "", "a b", "a/b", "a\n", "\xc3\xa9" };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        ck_assert_int_eq(name_check("job name", bad[i], false), MESH_EINVAL);
        assert_says(mesh_last_error()->message, "job name");
    }
    longest[MAX_NAME_BYTES] = 'n';
    longest[MAX_NAME_BYTES + 1] = 0;
    ck_assert_int_eq(name_check("job name", longest, false), MESH_EINVAL);
}
END_TEST

START_TEST(texts_of_others_are_cleaned)
{
    char buf[8];
    ck_assert_str_eq(sentence_clean(buf, sizeof buf, "a\nb\x1b[0mcdefgh"), "a?b?[0m");
}
END_TEST

START_TEST(the_first_field_that_differs_is_named)
{
    struct difference d;
    ck_assert(!descriptor_differs("device=cpu shape=2x4", "device=cpu shape=2x4", &d));
    ck_assert(descriptor_differs("device=cpu shape=2x4 names=dp,tp", "device=cpu shape=4x2 names=dp,tp", &d));
    ck_assert_str_eq(d.field, "shape");
    ck_assert_str_eq(d.a, "2x4");
    ck_assert_str_eq(d.b, "4x2");
    ck_assert(descriptor_differs("shape=2", "shape=2 names=dp", &d));
    ck_assert_str_eq(d.field, "names");
    ck_assert_str_eq(d.a, "(none)");
    ck_assert_str_eq(d.b, "dp");
    ck_assert(descriptor_differs("shape=2  x=", "shape=2 x=", &d));
    ck_assert_str_eq(d.field, "descriptor");
}
END_TEST

START_TEST(long_values_are_cut)
{
    struct difference d;
    char a[200] = "ranks=";
    memset(a + 6, '1', 150);
    ck_assert(descriptor_differs(a, "ranks=1", &d));
    ck_assert_uint_lt(strlen(d.a), sizeof d.a);
    assert_says(d.a, "...");
}
END_TEST

START_TEST(members_are_sorted_checked_and_compared)
{
    struct members a, b, all;
    size_t index;
    ck_assert_int_eq(members_init(&a, (uint32_t[]){ 3, 1, 2 }, 3, 4), 0);
    ck_assert_int_eq(members_init(&b, (uint32_t[]){ 0 }, 1, 4), 0);
    ck_assert_int_eq(members_init(&all, NULL, 0, 4), 0);
    ck_assert(members_index(&a, 3, &index) && index == 2);
    ck_assert(!members_index(&a, 0, &index));
    ck_assert(members_overlap(&a, &all) && !members_overlap(&a, &b));
    ck_assert(members_equal(&a, &a) && !members_equal(&a, &all));
    struct members bad;
    ck_assert_int_eq(members_init(&bad, (uint32_t[]){ 4 }, 1, 4), MESH_EINVAL);
    ck_assert_int_eq(members_init(&bad, (uint32_t[]){ 1, 1 }, 2, 4), MESH_EINVAL);
    ck_assert_int_eq(members_init(&bad, (uint32_t[]){ 0, 1, 2, 3, 0 }, 5, 4), MESH_EINVAL);
    members_fini(&a);
    members_fini(&b);
    members_fini(&all);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("words");
    TCase *tc = tcase_create("words");
    tcase_add_test(tc, ranks_are_listed_in_runs);
    tcase_add_test(tc, keys_are_shown_printable_and_cut);
    tcase_add_test(tc, names_outside_the_alphabet_are_refused);
    tcase_add_test(tc, texts_of_others_are_cleaned);
    tcase_add_test(tc, the_first_field_that_differs_is_named);
    tcase_add_test(tc, long_values_are_cut);
    tcase_add_test(tc, members_are_sorted_checked_and_compared);
    suite_add_tcase(suite, tc);
    return suite;
}
