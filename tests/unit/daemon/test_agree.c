/* tests/unit/daemon/test_agree.c - agreements on descriptors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/agree.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "harness/check_main.h"
#include "seen.h"
#include "world.h"

enum { N = 200 };

#define GOOD "device=cpu shape=2x4 names=dp,tp"
#define ODD  "device=cpu shape=4x2 names=dp,tp"

static struct member table[N];
static struct liveness lives;
static struct agreements agreements;
static struct actions out;

static void set_up(void)
{
    world_begin(&lives, table, N);
    agreements = (struct agreements){ 0 };
    memset(&out, 0, sizeof out);
}

static void tear_down(void)
{
    agree_fini(&agreements);
    liveness_fini(&lives);
    actions_fini(&out);
}

static struct agree_call call(uint32_t rank, const char *key, const char *descriptor)
{
    return (struct agree_call){ .who = { .client = rank + 1, .request = 1 },
                                .rank = rank,
                                .key = key,
                                .descriptor = descriptor,
                                .deadline_ms = 1000 };
}

static int post(uint32_t rank, const char *key, const char *descriptor)
{
    const struct agree_call c = call(rank, key, descriptor);
    return agree_post(&agreements, &c, &lives, &out);
}

static int post_among(uint32_t rank, const uint32_t *member, size_t n, const char *descriptor)
{
    struct agree_call c = call(rank, "m/0", descriptor);
    c.member = member;
    c.n_members = n;
    return agree_post(&agreements, &c, &lives, &out);
}

START_TEST(all_agree_in_any_order)
{
    uint32_t order[N];
    shuffle(order, N, (uint64_t)_i);
    for (uint32_t i = 0; i < N; i++) {
        ck_assert_uint_eq(out.list.n, 0);
        ck_assert_int_eq(post(order[i], "m/0", GOOD), 0);
    }
    for (uint32_t i = 0; i < N; i++) {
        ck_assert_int_eq(seen_answer(&out, i + 1)->status, 0);
    }
    ck_assert_uint_eq(agreements.list.n, 1); /* kept for meshctl */
    ck_assert_str_eq(agreement_descriptor(agreements.list.at[0]), GOOD);
    ck_assert_int_eq(agree_next_deadline(&agreements), INT64_MAX);
}
END_TEST

START_TEST(a_differing_descriptor_fails_all_with_rank_field_and_values)
{
    uint32_t order[8];
    shuffle(order, 8, (uint64_t)_i);
    const uint32_t all[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    for (uint32_t i = 0; i < 8; i++) {
        ck_assert_int_eq(post_among(order[i], all, 8, order[i] == 3 ? ODD : GOOD), 0);
    }
    for (uint32_t i = 0; i < 8; i++) {
        const struct action *a = seen_answer(&out, i + 1);
        ck_assert_int_eq(a->status, MESH_EMISMATCH);
        assert_says(a->sentence, "shape differs");
        assert_says(a->sentence, "2x4");
        assert_says(a->sentence, "4x2");
        assert_says(a->sentence, "3");
    }
}
END_TEST

START_TEST(the_sentence_names_the_odd_rank_and_the_others)
{
    const uint32_t all[] = { 0, 1, 2, 3 };
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(post_among(i, all, 4, GOOD), 0);
    }
    ck_assert_int_eq(post_among(3, all, 4, ODD), 0);
    ck_assert_str_eq(seen_answer(&out, 1)->sentence, "m/0: shape differs: rank 3 has 4x2, ranks 0-2 have 2x4");
    ck_assert_str_eq(seen_answer(&out, 4)->sentence, seen_answer(&out, 1)->sentence);
}
END_TEST

START_TEST(members_that_differ_fail_all)
{
    ck_assert_int_eq(post_among(0, (uint32_t[]){ 0, 1, 2 }, 3, GOOD), 0);
    ck_assert_int_eq(post_among(1, (uint32_t[]){ 0, 1 }, 2, GOOD), 0);
    ck_assert_int_eq(seen_answer(&out, 1)->status, MESH_EMISMATCH);
    ck_assert_int_eq(seen_answer(&out, 2)->status, MESH_EMISMATCH);
    assert_says(seen_answer(&out, 1)->sentence, "members differ");
    ck_assert_int_eq(post_among(2, (uint32_t[]){ 0, 1, 2 }, 3, GOOD), 0);
    ck_assert_int_eq(seen_answer(&out, 3)->status, MESH_EMISMATCH);
}
END_TEST

START_TEST(disjoint_members_under_one_key_do_not_meet)
{
    ck_assert_int_eq(post_among(0, (uint32_t[]){ 0, 1 }, 2, GOOD), 0);
    ck_assert_int_eq(post_among(2, (uint32_t[]){ 2, 3 }, 2, ODD), 0);
    ck_assert_int_eq(post_among(3, (uint32_t[]){ 2, 3 }, 2, ODD), 0);
    ck_assert_int_eq(post_among(1, (uint32_t[]){ 0, 1 }, 2, GOOD), 0);
    for (uint64_t i = 1; i <= 4; i++) {
        ck_assert_int_eq(seen_answer(&out, i)->status, 0);
    }
    ck_assert_uint_eq(agreements.list.n, 2);
}
END_TEST

START_TEST(a_timeout_names_the_missing_and_answers_the_late)
{
    const uint32_t all[] = { 0, 1, 2, 3 };
    ck_assert_int_eq(post_among(0, all, 4, GOOD), 0);
    ck_assert_int_eq(post_among(2, all, 4, GOOD), 0);
    agree_tick(&agreements, 999, &out);
    ck_assert_uint_eq(out.list.n, 0);
    agree_tick(&agreements, 1000, &out);
    ck_assert_int_eq(seen_answer(&out, 1)->status, MESH_ETIMEDOUT);
    assert_says(seen_answer(&out, 3)->sentence, "ranks 1 3 did not call within 1000 ms");
    ck_assert_int_eq(post_among(1, all, 4, GOOD), 0);
    ck_assert_int_eq(seen_answer(&out, 2)->status, MESH_ETIMEDOUT);
}
END_TEST

START_TEST(a_death_fails_those_who_wait_and_those_who_come)
{
    const uint32_t all[] = { 0, 1, 2, 3 };
    char fate[200];
    ck_assert_int_eq(post_among(0, all, 4, GOOD), 0);
    ck_assert_int_eq(liveness_gone(&lives, 4, true, &out), 3);
    actions_clear(&out);
    agree_rank_gone(&agreements, 3, liveness_fate(&lives, 3, fate, sizeof fate), &out);
    ck_assert_int_eq(seen_answer(&out, 1)->status, MESH_EPEER);
    assert_says(seen_answer(&out, 1)->sentence, "rank 3 (node1, pid 4003) died");
    ck_assert_int_eq(post_among(1, all, 4, GOOD), 0);
    ck_assert_int_eq(seen_answer(&out, 2)->status, MESH_EPEER);
    actions_clear(&out);
    ck_assert_int_eq(post(2, "m/1", GOOD), 0); /* of all: the dead one is among them */
    ck_assert_int_eq(seen_answer(&out, 3)->status, MESH_EPEER);
}
END_TEST

START_TEST(a_key_used_again_after_agreeing_is_a_new_agreement)
{
    const uint32_t two[] = { 0, 1 };
    for (int round = 0; round < 5; round++) {
        actions_clear(&out);
        ck_assert_int_eq(post_among(0, two, 2, round % 2 == 0 ? GOOD : ODD), 0);
        ck_assert_uint_eq(out.list.n, 0);
        ck_assert_int_eq(post_among(1, two, 2, round % 2 == 0 ? GOOD : ODD), 0);
        ck_assert_int_eq(seen_answer(&out, 1)->status, 0);
        ck_assert_int_eq(seen_answer(&out, 2)->status, 0);
    }
    ck_assert_uint_eq(agreements.list.n, 1);
}
END_TEST

START_TEST(only_the_newest_agreements_are_kept)
{
    const uint32_t one[] = { 0 };
    for (int i = 0; i < MAX_AGREEMENTS + 10; i++) {
        char key[32];
        snprintf(key, sizeof key, "m/%d", i);
        struct agree_call c = call(0, key, GOOD);
        c.member = one;
        c.n_members = 1;
        actions_clear(&out);
        ck_assert_int_eq(agree_post(&agreements, &c, &lives, &out), 0);
        ck_assert_int_eq(seen_answer(&out, 1)->status, 0);
    }
    ck_assert_uint_eq(agreements.list.n, MAX_AGREEMENTS);
    ck_assert_str_eq(agreements.list.at[0]->key, "m/10");
}
END_TEST

START_TEST(strangers_and_repeaters_are_refused)
{
    ck_assert_int_eq(post_among(2, (uint32_t[]){ 0, 1 }, 2, GOOD), MESH_ENOTMEMBER);
    ck_assert_int_eq(post_among(0, (uint32_t[]){ 0, 1 }, 2, GOOD), 0);
    ck_assert_int_eq(post_among(0, (uint32_t[]){ 0, 1 }, 2, GOOD), MESH_ESTATE);
    agree_stop(&agreements, "meshd is stopping", &out);
    ck_assert_int_eq(seen_answer(&out, 1)->status, MESH_EABORTED);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("agree");
    TCase *tc = tcase_create("agree");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, all_agree_in_any_order, 0, 5);
    tcase_add_loop_test(tc, a_differing_descriptor_fails_all_with_rank_field_and_values, 0, 20);
    tcase_add_test(tc, the_sentence_names_the_odd_rank_and_the_others);
    tcase_add_test(tc, members_that_differ_fail_all);
    tcase_add_test(tc, disjoint_members_under_one_key_do_not_meet);
    tcase_add_test(tc, a_timeout_names_the_missing_and_answers_the_late);
    tcase_add_test(tc, a_death_fails_those_who_wait_and_those_who_come);
    tcase_add_test(tc, a_key_used_again_after_agreeing_is_a_new_agreement);
    tcase_add_test(tc, only_the_newest_agreements_are_kept);
    tcase_add_test(tc, strangers_and_repeaters_are_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
