/* tests/unit/session/test_descriptor.c - which field is blamed when descriptors differ.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/descriptor.h"

#include "base/error.h"
#include "base/util.h"
#include "harness/check_main.h"

#define SEATS 4

static const struct {
    const char *descriptor[SEATS]; /* NULL: has not come */
    const char *sentence;          /* NULL: they agree */
} cases[] = {
    { { "a=1 b=2", "a=1 b=2", "a=1 b=2", "a=1 b=2" }, NULL },
    { { "a=1 b=2", " b=2  a=1 ", NULL, "a=1 b=2" }, NULL },
    { { NULL, NULL, "a=1", NULL }, NULL },
    { { "", "", "", "" }, NULL },
    { { "a=1 b=2", "a=1 b=2", "a=1 b=2", "a=1 b=3" }, "key: b differs: rank 7 has 3, ranks 0 2 5 have 2" },
    { { "a=1 b=2", "a=9 b=2", "a=9 b=3", "a=9" }, "key: a differs: ranks 2 5 7 have 9, rank 0 has 1" },
    { { NULL, "a=1", "a=1 names=x,y", NULL }, "key: names differs: rank 5 has x,y, rank 2 has (none)" },
    { { "a=1 names=x,y", "a=1", NULL, NULL }, "key: names differs: rank 2 has (none), rank 0 has x,y" },
    { { "flag", "", NULL, NULL }, "key: flag differs: rank 2 has (none), rank 0 has (empty)" },
    { { "a=0123456789012345678901234567890123456789012345678901234", "a=1", NULL, NULL },
      "key: a differs: rank 2 has 1, rank 0 has 0123456789012345678901234567890123456789012345..." },
};

START_TEST(the_differing_field_is_named_with_both_values_and_their_ranks)
{
    static const int rank[SEATS] = { 0, 2, 5, 7 };
    struct seat seat[SEATS];
    for (int i = 0; i < SEATS; i++) {
        const char *descriptor = cases[_i].descriptor[i];
        seat[i] = (struct seat){ .rank = rank[i],
                                 .is_taken = descriptor != NULL,
                                 .descriptor = (char *)(uintptr_t)descriptor };
    }
    int r = descriptors_compare("key", seat, SEATS);
    if (cases[_i].sentence == NULL) {
        ck_assert_int_eq(r, 0);
    } else {
        ck_assert_int_eq(r, MESH_EMISMATCH);
        ck_assert_str_eq(mesh_last_error()->message, cases[_i].sentence);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("descriptor");
    TCase *tcase = tcase_create("compare");
    tcase_add_loop_test(tcase, the_differing_field_is_named_with_both_values_and_their_ranks, 0, ARRAY_SIZE(cases));
    suite_add_tcase(suite, tcase);
    return suite;
}
