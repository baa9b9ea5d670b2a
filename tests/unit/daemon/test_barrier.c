/* tests/unit/daemon/test_barrier.c - named barriers, and the lives of ranks they depend on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/barrier.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "harness/check_main.h"
#include "seen.h"
#include "world.h"

enum { N = 300 }; /* ranks of the world */

static struct member table[N];
static struct liveness lives;
static struct barriers barriers;
static struct actions out;

static void set_up(void)
{
    world_begin(&lives, table, N);
    barriers = (struct barriers){ 0 };
    memset(&out, 0, sizeof out);
}

static void tear_down(void)
{
    barrier_fini(&barriers);
    liveness_fini(&lives);
    actions_fini(&out);
}

static int arrive(uint32_t rank, const char *name, const uint32_t *member, size_t n, int64_t deadline_ms)
{
    const struct barrier_call c = { .who = { .client = rank + 1, .request = 1 },
                                    .rank = rank,
                                    .name = name,
                                    .member = member,
                                    .n_members = n,
                                    .deadline_ms = deadline_ms };
    return barrier_arrive(&barriers, &c, &lives, &out);
}

START_TEST(all_are_released_when_the_last_arrives_in_every_round)
{
    uint32_t order[N];
    for (uint64_t round = 0; round < 100; round++) {
        shuffle(order, N, round);
        for (uint32_t i = 0; i < N; i++) {
            ck_assert_uint_eq(out.list.n, 0);
            ck_assert_int_eq(arrive(order[i], "step", NULL, 0, 1000), 0);
        }
        ck_assert_uint_eq(out.list.n, N);
        for (uint32_t i = 0; round == 0 && i < N; i++) {
            ck_assert_int_eq(seen_answer(&out, i + 1)->status, 0);
        }
        actions_clear(&out);
        ck_assert_uint_eq(barriers.open.n, 0);
    }
}
END_TEST

START_TEST(the_same_name_among_other_members_is_another_barrier)
{
    ck_assert_int_eq(arrive(0, "b", (uint32_t[]){ 0, 1 }, 2, 1000), 0);
    ck_assert_int_eq(arrive(2, "b", (uint32_t[]){ 2, 3 }, 2, 1000), 0);
    ck_assert_int_eq(arrive(3, "b", (uint32_t[]){ 3, 2 }, 2, 1000), 0);
    ck_assert_uint_eq(out.list.n, 2);
    ck_assert_int_eq(seen_answer(&out, 3)->status, 0);
    ck_assert_uint_eq(barriers.open.n, 1);
}
END_TEST

START_TEST(a_timeout_names_who_is_missing_to_all_that_wait)
{
    ck_assert_int_eq(arrive(0, "b", (uint32_t[]){ 0, 1, 2, 3, 4 }, 5, 3000), 0);
    ck_assert_int_eq(arrive(3, "b", (uint32_t[]){ 0, 1, 2, 3, 4 }, 5, 9000), 0);
    ck_assert_int_eq(barrier_next_deadline(&barriers), 3000);
    barrier_tick(&barriers, 2999, &out);
    ck_assert_uint_eq(out.list.n, 0);
    barrier_tick(&barriers, 3000, &out);
    ck_assert_uint_eq(out.list.n, 2);
    ck_assert_int_eq(seen_answer(&out, 4)->status, MESH_ETIMEDOUT);
    assert_says(seen_answer(&out, 4)->sentence, "ranks 1 2 4");
    assert_says(seen_answer(&out, 1)->sentence, "3000 ms");
    ck_assert_int_eq(barrier_next_deadline(&barriers), INT64_MAX);
}
END_TEST

START_TEST(a_death_fails_the_barriers_of_that_rank_only)
{
    ck_assert_int_eq(arrive(0, "a", (uint32_t[]){ 0, 1 }, 2, 1000), 0);
    ck_assert_int_eq(arrive(2, "a", (uint32_t[]){ 2, 3 }, 2, 1000), 0);
    ck_assert_int_eq(liveness_gone(&lives, 2, true, &out), 1);
    actions_clear(&out);
    char fate[200];
    barrier_rank_gone(&barriers, 1, liveness_fate(&lives, 1, fate, sizeof fate), &out);
    ck_assert_uint_eq(out.list.n, 1);
    ck_assert_int_eq(seen_answer(&out, 1)->status, MESH_EPEER);
    assert_says(seen_answer(&out, 1)->sentence, "rank 1 (node1, pid 4001) died");
    ck_assert_int_eq(arrive(0, "a", (uint32_t[]){ 0, 1 }, 2, 1000), MESH_EPEER);
    ck_assert_int_eq(mesh_last_error()->rank, 1);
}
END_TEST

START_TEST(strangers_repeaters_and_bad_names_are_refused)
{
    ck_assert_int_eq(arrive(2, "b", (uint32_t[]){ 0, 1 }, 2, 1000), MESH_ENOTMEMBER);
    ck_assert_int_eq(arrive(0, "b", (uint32_t[]){ 0, 1 }, 2, 1000), 0);
    ck_assert_int_eq(arrive(0, "b", (uint32_t[]){ 0, 1 }, 2, 1000), MESH_ESTATE);
    ck_assert_int_eq(arrive(0, "", NULL, 0, 1000), MESH_EINVAL);
    ck_assert_int_eq(arrive(0, "b", (uint32_t[]){ 0, N }, 2, 1000), MESH_EINVAL);
}
END_TEST

START_TEST(too_many_open_barriers_are_refused)
{
    char name[32];
    for (int i = 0; i < MAX_BARRIERS; i++) {
        snprintf(name, sizeof name, "b%d", i);
        ck_assert_int_eq(arrive(0, name, (uint32_t[]){ 0, 1 }, 2, 1000), 0);
    }
    ck_assert_int_eq(arrive(0, "one more", NULL, 0, 1000), MESH_EINVAL);
    ck_assert_int_eq(arrive(0, "one-more", NULL, 0, 1000), MESH_ETOOLARGE);
    barrier_stop(&barriers, "meshd is stopping", &out);
    ck_assert_uint_eq(seen_answers(&out, 1), MAX_BARRIERS);
    ck_assert_int_eq(out.list.at[0].status, MESH_EABORTED);
}
END_TEST

START_TEST(a_death_is_told_to_the_living_and_to_nobody_else)
{
    ck_assert_int_eq(liveness_gone(&lives, 6, false, &out), 5);
    ck_assert_int_eq(seen_notice(&out, 1)->notice.kind, NOTICE_RANK_LEFT);
    actions_clear(&out);
    ck_assert_int_eq(liveness_gone(&lives, 3, true, &out), 2);
    ck_assert_uint_eq(out.list.n, N - 2);
    ck_assert_uint_eq(seen_notices(&out, 3), 0);
    ck_assert_uint_eq(seen_notices(&out, 6), 0);
    const struct action *a = seen_notice(&out, 1);
    ck_assert_int_eq(a->notice.kind, NOTICE_RANK_DIED);
    ck_assert_int_eq(a->notice.rank, 2);
    ck_assert_str_eq(a->sentence, "rank 2 (node1, pid 4002) died");
    ck_assert_str_eq(lives.first_death, a->sentence);
    actions_clear(&out);
    ck_assert_int_eq(liveness_gone(&lives, 3, true, &out), -1); /* only once */
    ck_assert_int_eq(liveness_gone(&lives, 4711, true, &out), -1);
    ck_assert_uint_eq(out.list.n, 0);
    ck_assert_uint_eq(lives.n_alive, N - 2);
    ck_assert_uint_eq(lives.n_dead, 1);
}
END_TEST

START_TEST(a_report_reaches_every_other_rank_with_its_culprit)
{
    struct report r = { .status = MESH_EABORTED, .culprit = -1, .group = 7, .sequence = 9, .sentence = "no memory" };
    ck_assert_int_eq(liveness_report(&lives, (struct ticket){ .client = 5 }, &r, &out), 0);
    ck_assert_uint_eq(out.list.n, N - 1);
    const struct action *a = seen_notice(&out, 1);
    ck_assert_int_eq(a->notice.kind, NOTICE_REPORT);
    ck_assert_int_eq(a->notice.status, MESH_EABORTED);
    ck_assert_int_eq(a->notice.rank, 4);
    ck_assert_int_eq(a->notice.culprit, 4);
    ck_assert_uint_eq(a->notice.group, 7);
    ck_assert_uint_eq(a->notice.sequence, 9);
    ck_assert_str_eq(a->sentence, "no memory");
    r.culprit = 2;
    actions_clear(&out);
    ck_assert_int_eq(liveness_report(&lives, (struct ticket){ .client = 5 }, &r, &out), 0);
    ck_assert_int_eq(seen_notice(&out, 1)->notice.culprit, 2);
    ck_assert_int_eq(liveness_report(&lives, (struct ticket){ .client = 9999 }, &r, &out), MESH_ESTATE);
}
END_TEST

START_TEST(a_rank_that_reports_without_end_is_stopped)
{
    const struct report r = { .status = MESH_EMISMATCH, .culprit = -1, .sentence = "" };
    for (int i = 0; i < MAX_REPORTS_PER_RANK; i++) {
        actions_clear(&out);
        ck_assert_int_eq(liveness_report(&lives, (struct ticket){ .client = 1 }, &r, &out), 0);
    }
    ck_assert_int_eq(liveness_report(&lives, (struct ticket){ .client = 1 }, &r, &out), MESH_ETOOLARGE);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("barrier");
    TCase *tc = tcase_create("barrier");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, all_are_released_when_the_last_arrives_in_every_round);
    tcase_add_test(tc, the_same_name_among_other_members_is_another_barrier);
    tcase_add_test(tc, a_timeout_names_who_is_missing_to_all_that_wait);
    tcase_add_test(tc, a_death_fails_the_barriers_of_that_rank_only);
    tcase_add_test(tc, strangers_repeaters_and_bad_names_are_refused);
    tcase_add_test(tc, too_many_open_barriers_are_refused);
    suite_add_tcase(suite, tc);
    TCase *lives_tc = tcase_create("liveness");
    tcase_add_checked_fixture(lives_tc, set_up, tear_down);
    tcase_add_test(lives_tc, a_death_is_told_to_the_living_and_to_nobody_else);
    tcase_add_test(lives_tc, a_report_reaches_every_other_rank_with_its_culprit);
    tcase_add_test(lives_tc, a_rank_that_reports_without_end_is_stopped);
    suite_add_tcase(suite, lives_tc);
    return suite;
}
