/* tests/unit/daemon/test_diagnose.c - verdicts about made-up jobs: what the recorders say is written down, nothing
 * runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/diagnose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/process.h"
#include "harness/check_main.h"

enum { N = 4, WORLD = 100, PAIR = 101, OTHER = 102 };

#define SECOND  INT64_C(1000000000)
#define NOW     (100 * SECOND)
#define FULL    ((struct call_words){ MESH_COMM_ALL_REDUCE, MESH_F32, MESH_SUM, -1, 0, 1024 })
#define HALF    ((struct call_words){ MESH_COMM_ALL_REDUCE, MESH_F32, MESH_SUM, -1, 0, 512 })
#define BARRIER ((struct call_words){ MESH_COMM_BARRIER, 0, 0, -1, 0, 0 })

static struct recorder_image *image[N];
static struct diagnose_rank rank[N];
static struct group_record group[3];
static size_t n_groups;
static struct verdict v;

static void set_up(void)
{
    n_groups = 0;
    for (uint32_t i = 0; i < N; i++) {
        image[i] = calloc(1, sizeof *image[i]);
        ck_assert_ptr_nonnull(image[i]);
        image[i]->rank = i;
        image[i]->world_size = N;
        rank[i] = (struct diagnose_rank){ .life = LIFE_JOINED,
                                          .process = PROCESS_RUNS,
                                          .host = "node1",
                                          .pid = 4710 + i,
                                          .image = image[i],
                                          .elsewhere = "" };
    }
}

static void tear_down(void)
{
    verdict_fini(&v);
    for (size_t i = 0; i < n_groups; i++) {
        members_fini(&group[i].members);
    }
    for (uint32_t i = 0; i < N; i++) {
        free(image[i]);
    }
}

static void tell_group(uint64_t id, const char *name, const uint32_t *member, size_t n)
{
    struct group_record *g = &group[n_groups++];
    *g = (struct group_record){ .group = id };
    snprintf(g->name, sizeof g->name, "%s", name);
    ck_assert_int_eq(members_init(&g->members, member, n, N), 0);
}

static struct recorder_group *place(uint32_t r, uint64_t id, const char *name)
{
    for (size_t i = 0; i < image[r]->n_groups; i++) {
        if (image[r]->group[i].id == id) {
            return &image[r]->group[i];
        }
    }
    struct recorder_group *g = &image[r]->group[image[r]->n_groups++];
    *g = (struct recorder_group){ .id = id, .size = 2, .rank = 0 };
    snprintf(g->name, sizeof g->name, "%s", name);
    return g;
}

static struct recorder_call *call(uint32_t r, uint64_t id, uint64_t sequence, struct call_words words, int64_t ago_s)
{
    struct recorder_call *c = &image[r]->call[image[r]->n_calls++];
    *c = (struct recorder_call){ .number = image[r]->n_calls, .group = id, .sequence = sequence, .words = words };
    c->queued_ns = c->started_ns = NOW - ago_s * SECOND;
    c->state = RECORDER_RUNNING;
    struct recorder_group *g = place(r, id, id == WORLD ? "world" : id == PAIR ? "pair" : "other");
    g->entered = sequence != 0 ? sequence : g->entered; /* messages have no number */
    return c;
}

static void done(uint32_t r, uint64_t id, uint64_t sequence, int64_t ago_s)
{
    struct recorder_call *c = call(r, id, sequence, FULL, ago_s);
    c->state = RECORDER_DONE;
    c->ended_ns = c->started_ns;
    place(r, id, "")->finished = sequence;
}

static void failed(uint32_t r, uint64_t id, uint64_t sequence, struct call_words words)
{
    struct recorder_call *c = call(r, id, sequence, words, 2);
    c->state = RECORDER_FAILED;
    c->ended_ns = NOW - SECOND;
    place(r, id, "")->finished = place(r, id, "")->failed = sequence;
}

static const struct finding *judge(size_t n_findings)
{
    struct diagnose_input in = {
        .now_ns = NOW, .after_ms = 1000, .rank = rank, .n_ranks = N, .group = group, .n_groups = n_groups
    };
    verdict_fini(&v);
    ck_assert_int_eq(diagnose(&in, &v), 0);
    ck_assert_msg(v.findings.n == n_findings, "%zu findings, not %zu: %s", v.findings.n, n_findings, v.sentence);
    return v.findings.at;
}

static void expect_ranks(const struct rank_list *list, const char *wanted)
{
    char text[64] = "";
    for (size_t i = 0; i < list->n; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%u", i > 0 ? " " : "", list->at[i]);
    }
    ck_assert_str_eq(text, wanted);
}

static void expect_text(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "\"%s\" is not in \"%s\"", part, text);
}

/* All but rank 2 wait in call 7 of the world. */
static void stall(int64_t for_s)
{
    tell_group(WORLD, "world", NULL, 0);
    for (uint32_t r = 0; r < N; r++) {
        done(r, WORLD, 6, for_s + 1);
        if (r != 2) {
            (void)call(r, WORLD, 7, FULL, for_s);
        }
    }
}

START_TEST(a_rank_that_stays_away_is_missing)
{
    stall(31);
    const struct finding *f = judge(1);
    ck_assert(!v.is_well);
    ck_assert_int_eq(f->kind, FINDING_STALL);
    ck_assert_uint_eq(f->sequence, 7);
    ck_assert_str_eq(f->call, "all_reduce sum f32[1024]");
    ck_assert_int_eq(f->age_ms, 31000);
    expect_ranks(&f->entered, "0 1 3");
    expect_ranks(&f->culprits, "2");
    ck_assert_str_eq(f->lines.at[0],
                     "rank 2 (node1, pid 4712): last finished seq 6, in application code for 32 s, alive");
    expect_text(v.sentence, "group world, seq 7 all_reduce sum f32[1024]: held up for 31 s by rank 2");
}
END_TEST

START_TEST(a_short_wait_is_no_finding)
{
    stall(0);
    (void)judge(0);
    ck_assert(v.is_well);
    expect_text(v.sentence, "all is well");
}
END_TEST

START_TEST(idle_groups_are_well)
{
    tell_group(WORLD, "world", NULL, 0);
    for (uint32_t r = 0; r < N; r++) {
        done(r, WORLD, 6 + r, 50); /* who only sends may be ahead */
    }
    (void)judge(0);
    ck_assert(v.is_well);
}
END_TEST

START_TEST(a_stopped_rank_is_named_at_once)
{
    stall(0);
    rank[2].process = PROCESS_STOPPED;
    const struct finding *f = judge(1);
    ck_assert_int_eq(f->kind, FINDING_STALL);
    expect_text(f->lines.at[0], "its process is stopped");
    expect_text(v.sentence, "rank 2, which is stopped");
}
END_TEST

START_TEST(a_rank_that_is_stopped_inside_the_call_is_the_culprit)
{
    tell_group(WORLD, "world", NULL, 0);
    for (uint32_t r = 0; r < N; r++) {
        (void)call(r, WORLD, 1, FULL, 3);
    }
    rank[1].process = PROCESS_STOPPED;
    const struct finding *f = judge(1);
    ck_assert_int_eq(f->kind, FINDING_STALL);
    expect_ranks(&f->entered, "0 1 2 3");
    expect_ranks(&f->waiting, "0 2 3");
    expect_ranks(&f->culprits, "1");
}
END_TEST

START_TEST(a_dead_rank_is_the_culprit_of_calls_that_failed_for_it)
{
    tell_group(WORLD, "world", NULL, 0);
    for (uint32_t r = 0; r < N; r++) {
        done(r, WORLD, 6, 5);
        if (r != 2) {
            failed(r, WORLD, 7, FULL);
        }
    }
    rank[2].life = LIFE_DEAD;
    const struct finding *f = judge(1);
    ck_assert_int_eq(f->kind, FINDING_STALL);
    expect_ranks(&f->culprits, "2");
    expect_text(f->lines.at[0], "died; last finished seq 6");
    expect_text(v.sentence, "which died");
}
END_TEST

START_TEST(a_dead_rank_that_nobody_waits_for_is_said_to_be_dead)
{
    tell_group(WORLD, "world", NULL, 0);
    for (uint32_t r = 0; r < N; r++) {
        done(r, WORLD, 6, 5);
    }
    rank[3].life = LIFE_DEAD;
    const struct finding *f = judge(1);
    ck_assert_int_eq(f->kind, FINDING_DEAD);
    expect_ranks(&f->culprits, "3");
    expect_text(v.sentence, "rank 3 died");
}
END_TEST

START_TEST(different_calls_are_a_mismatch_with_the_majority_first)
{
    tell_group(WORLD, "world", NULL, 0);
    for (uint32_t r = 0; r < N; r++) {
        failed(r, WORLD, 7, r == 0 ? HALF : FULL);
    }
    const struct finding *f = judge(1);
    ck_assert_int_eq(f->kind, FINDING_MISMATCH);
    ck_assert_uint_eq(f->calls.n, 2);
    ck_assert_str_eq(f->calls.at[0].text, "all_reduce sum f32[1024]");
    expect_ranks(&f->calls.at[0].ranks, "1 2 3");
    ck_assert_str_eq(f->calls.at[1].text, "all_reduce sum f32[512]");
    expect_ranks(&f->culprits, "0");
}
END_TEST

START_TEST(a_mismatch_among_two_blames_neither)
{
    static const uint32_t pair[] = { 0, 1 };
    tell_group(PAIR, "pair", pair, 2);
    (void)call(0, PAIR, 1, FULL, 0);
    (void)call(1, PAIR, 1, BARRIER, 0);
    const struct finding *f = judge(1);
    ck_assert_int_eq(f->kind, FINDING_MISMATCH);
    expect_ranks(&f->culprits, "0 1");
}
END_TEST

START_TEST(a_mismatch_is_seen_although_the_root_has_returned)
{
    static const uint32_t pair[] = { 0, 1 };
    struct call_words broadcast = { MESH_COMM_BROADCAST, MESH_F32, 0, 0, 0, 8 };
    tell_group(PAIR, "pair", pair, 2);
    call(0, PAIR, 1, broadcast, 1)->state = RECORDER_DONE;
    place(0, PAIR, "")->finished = 1;
    failed(1, PAIR, 1, FULL);
    ck_assert_int_eq(judge(1)->kind, FINDING_MISMATCH);
}
END_TEST

START_TEST(own_counts_of_all_to_all_are_no_mismatch)
{
    static const uint32_t pair[] = { 0, 1 };
    struct call_words a = { MESH_COMM_ALL_TO_ALL, MESH_F32, 0, -1, 0, 8 }, b = a;
    b.count = 9;
    tell_group(PAIR, "pair", pair, 2);
    (void)call(0, PAIR, 1, a, 0);
    (void)call(1, PAIR, 1, b, 0);
    (void)judge(0);
}
END_TEST

START_TEST(causes_stand_before_what_they_knock_on)
{
    static const uint32_t pair[] = { 2, 3 }, trio[] = { 0, 1, 3 };
    tell_group(OTHER, "other", trio, 3);
    tell_group(PAIR, "pair", pair, 2);
    (void)call(0, OTHER, 9, FULL, 40);
    (void)call(1, OTHER, 9, FULL, 40);
    place(0, OTHER, "")->finished = place(1, OTHER, "")->finished = 8;
    done(3, OTHER, 8, 41);
    (void)call(3, PAIR, 1, FULL, 20);
    const struct finding *f = judge(2);
    ck_assert_str_eq(f[0].name, "pair");
    ck_assert(!f[0].is_knock_on);
    expect_ranks(&f[0].culprits, "2");
    ck_assert_str_eq(f[1].name, "other");
    ck_assert(f[1].is_knock_on);
    expect_ranks(&f[1].culprits, "3");
    expect_text(f[1].lines.at[0], "in all_reduce sum f32[1024] (seq 1 of group pair)");
    expect_text(v.sentence, "group pair");
    ck_assert_ptr_eq(diagnose_root(&v, &f[1]), &f[0]);
    ck_assert_ptr_eq(diagnose_root(&v, &f[0]), &f[0]);
    expect_ranks(&f[0].blamed, "2");
}
END_TEST

START_TEST(a_missing_rank_that_waits_elsewhere_is_not_counted_in_the_sentence)
{
    static const uint32_t pair[] = { 1, 2 };
    stall(31);
    tell_group(PAIR, "pair", pair, 2);
    place(1, WORLD, "")->entered = 6; /* not in call 7: it waits in its pair for rank 2 */
    image[1]->n_calls--;
    (void)call(1, PAIR, 1, FULL, 20);
    (void)place(2, PAIR, "pair");
    const struct finding *f = judge(2);
    const struct finding *world = strcmp(f[0].name, "world") == 0 ? &f[0] : &f[1];
    expect_ranks(&world->culprits, "1 2");
    expect_ranks(&world->blamed, "2");
    expect_text(v.sentence, " by rank 2");
    ck_assert_ptr_eq(diagnose_root(&v, world), world);
}
END_TEST

START_TEST(ranks_that_wait_for_each_other_are_a_circle)
{
    static const uint32_t both[] = { 0, 1 };
    tell_group(PAIR, "pair", both, 2);
    tell_group(OTHER, "other", both, 2);
    (void)call(0, PAIR, 1, FULL, 5);
    (void)place(0, OTHER, "other");
    (void)call(1, OTHER, 1, FULL, 5);
    (void)place(1, PAIR, "pair");
    const struct finding *f = judge(2);
    ck_assert_int_eq(f[0].kind, FINDING_CIRCLE);
    ck_assert_int_eq(f[1].kind, FINDING_CIRCLE);
}
END_TEST

START_TEST(nothing_known_is_unknown_and_never_hung)
{
    stall(31);
    rank[2].image = NULL;
    const struct finding *f = judge(1);
    ck_assert_int_eq(f->kind, FINDING_UNKNOWN);
    expect_ranks(&f->culprits, "2");
    expect_text(f->lines.at[0], "its calls are not known");
    expect_text(v.sentence, "nothing is known of rank 2");
}
END_TEST

START_TEST(all_have_entered_is_slow_and_not_wrong)
{
    tell_group(WORLD, "world", NULL, 0);
    for (uint32_t r = 0; r < N; r++) {
        (void)call(r, WORLD, 1, FULL, 30);
    }
    ck_assert_int_eq(judge(1)->kind, FINDING_SLOW);
    ck_assert(v.is_well);
}
END_TEST

START_TEST(a_rank_that_waits_at_meshd_says_for_what)
{
    stall(31);
    rank[2].elsewhere = "key 'go' of the store";
    expect_text(judge(1)->lines.at[0], "waits at meshd for key 'go' of the store");
}
END_TEST

START_TEST(a_group_that_nobody_told_of_is_looked_at_once)
{
    (void)call(0, OTHER, 1, FULL, 10);
    (void)call(1, OTHER, 1, FULL, 10);
    (void)place(3, OTHER, "other");
    const struct finding *f = judge(1);
    ck_assert_str_eq(f->name, "other");
    expect_ranks(&f->culprits, "3");
}
END_TEST

START_TEST(who_is_waited_for_is_a_member_although_it_has_not_made_the_group)
{
    struct recorder_call *c = call(1, OTHER, 1, FULL, 10);
    c->waited[0] = 0;
    c->n_waited = 1;
    const struct finding *f = judge(1);
    ck_assert_int_eq(f->kind, FINDING_STALL);
    expect_ranks(&f->culprits, "0");
    expect_text(f->lines.at[0], "does not have the group");
}
END_TEST

START_TEST(members_that_nobody_knows_are_unknown)
{
    (void)call(1, OTHER, 1, FULL, 10);
    const struct finding *f = judge(1);
    ck_assert_int_eq(f->kind, FINDING_UNKNOWN);
    expect_text(v.sentence, "nothing is known of some of its members");
}
END_TEST

START_TEST(a_group_without_a_place_is_unknown)
{
    stall(31);
    image[2]->n_groups = image[2]->n_calls = 0;
    image[2]->n_unnamed = 1;
    ck_assert_int_eq(judge(1)->kind, FINDING_UNKNOWN);
}
END_TEST

/* Rank r waits for rank `peer` in a message of the world. */
static void message(uint32_t r, mesh_comm_kind kind, uint32_t peer, int64_t ago_s)
{
    struct call_words words = { (uint8_t)kind, MESH_F32, 0, (int32_t)peer, 7, 8 };
    struct recorder_call *c = call(r, WORLD, 0, words, ago_s);
    c->waited[0] = peer;
    c->n_waited = 1;
}

START_TEST(a_receive_waits_for_the_rank_that_does_not_send)
{
    message(0, MESH_COMM_RECV, 3, 10);
    const struct finding *f = judge(1);
    ck_assert_int_eq(f->kind, FINDING_STALL);
    ck_assert_str_eq(f->call, "recv f32[8] from group rank 3, tag 7");
    expect_ranks(&f->waiting, "0");
    expect_ranks(&f->culprits, "3");
    ck_assert_str_eq(v.sentence, "group world, recv f32[8] from group rank 3, tag 7: held up for 10 s by rank 3");
}
END_TEST

START_TEST(messages_that_meet_or_have_no_one_source_are_well)
{
    message(0, MESH_COMM_RECV, 3, 10);
    message(3, MESH_COMM_SEND, 0, 10);
    message(1, MESH_COMM_RECV, 0, 10);
    image[1]->call[0].n_waited = 0;
    (void)judge(0);
}
END_TEST

START_TEST(receives_from_each_other_are_a_circle)
{
    message(0, MESH_COMM_RECV, 1, 10);
    message(1, MESH_COMM_RECV, 0, 10);
    const struct finding *f = judge(2);
    ck_assert_int_eq(f[0].kind, FINDING_CIRCLE);
    ck_assert_int_eq(f[1].kind, FINDING_CIRCLE);
}
END_TEST

START_TEST(a_collective_is_knocked_on_by_a_receive)
{
    stall(31);
    message(2, MESH_COMM_RECV, 0, 20);
    const struct finding *f = judge(2);
    expect_ranks(&f[0].culprits, "2"); /* 0 waits for 2 in the collective, 2 for 0 in the receive */
    ck_assert_int_eq(f[0].kind, FINDING_CIRCLE);
    rank[3].process = PROCESS_STOPPED;
    image[2]->call[image[2]->n_calls - 1].waited[0] = 3;
    place(3, WORLD, "")->finished = 7;
    f = judge(2);
    ck_assert_str_eq(f[0].call, "recv f32[8] from group rank 0, tag 7");
    ck_assert(f[1].is_knock_on);
    expect_text(f[1].lines.at[0], "in recv f32[8] from group rank 0, tag 7 (group world)");
}
END_TEST

START_TEST(the_state_of_a_process_follows_its_name)
{
    ck_assert_int_eq(process_state_of("12 (a) T 1"), PROCESS_STOPPED);
    ck_assert_int_eq(process_state_of("12 (T) Z) S 1"), PROCESS_RUNS);
    ck_assert_int_eq(process_state_of("12 (a) Z 1"), PROCESS_GONE);
    ck_assert_int_eq(process_state_of("12 (a"), PROCESS_UNKNOWN);
    ck_assert_int_eq(process_state_of(""), PROCESS_UNKNOWN);
    ck_assert_int_eq(process_state_of("12 (a) "), PROCESS_UNKNOWN);
}
END_TEST

START_TEST(nonsense_of_ranks_is_survived)
{
    uint64_t state = 3;
    tell_group(WORLD, "world", NULL, 0);
    for (int round = 0; round < 50; round++) {
        for (uint32_t r = 0; r < N; r++) {
            uint8_t *bytes = (uint8_t *)image[r]->call;
            image[r]->n_calls = 40;
            image[r]->n_groups = 0;
            for (size_t i = 0; i < 40 * sizeof image[r]->call[0]; i++) {
                state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
                bytes[i] = (uint8_t)(state >> 40);
            }
            for (size_t i = 0; i < 40; i++) { /* what recorder_read() promises */
                struct recorder_call *c = &image[r]->call[i];
                *c = (struct recorder_call){ .number = i + 1,
                                             .group = WORLD,
                                             .sequence = c->sequence % 9,
                                             .words = c->words,
                                             .state = (enum recorder_state)(1 + c->sequence % 4),
                                             .started_ns = c->started_ns & INT64_MAX };
            }
            struct recorder_group *g = place(r, WORLD, "world");
            g->entered = state >> 20;
            g->finished = g->entered / 2;
            g->failed = round % 3 == 0 ? g->finished / 2 : 0;
        }
        struct diagnose_input in = {
            .now_ns = NOW, .after_ms = 0, .rank = rank, .n_ranks = N, .group = group, .n_groups = n_groups
        };
        verdict_fini(&v);
        ck_assert_int_eq(diagnose(&in, &v), 0);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("diagnose");
    TCase *cases = tcase_create("diagnose");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, a_rank_that_stays_away_is_missing);
    tcase_add_test(cases, a_short_wait_is_no_finding);
    tcase_add_test(cases, idle_groups_are_well);
    tcase_add_test(cases, a_stopped_rank_is_named_at_once);
    tcase_add_test(cases, a_rank_that_is_stopped_inside_the_call_is_the_culprit);
    tcase_add_test(cases, a_dead_rank_is_the_culprit_of_calls_that_failed_for_it);
    tcase_add_test(cases, a_dead_rank_that_nobody_waits_for_is_said_to_be_dead);
    tcase_add_test(cases, different_calls_are_a_mismatch_with_the_majority_first);
    tcase_add_test(cases, a_mismatch_among_two_blames_neither);
    tcase_add_test(cases, a_mismatch_is_seen_although_the_root_has_returned);
    tcase_add_test(cases, own_counts_of_all_to_all_are_no_mismatch);
    tcase_add_test(cases, causes_stand_before_what_they_knock_on);
    tcase_add_test(cases, a_missing_rank_that_waits_elsewhere_is_not_counted_in_the_sentence);
    tcase_add_test(cases, ranks_that_wait_for_each_other_are_a_circle);
    tcase_add_test(cases, nothing_known_is_unknown_and_never_hung);
    tcase_add_test(cases, all_have_entered_is_slow_and_not_wrong);
    tcase_add_test(cases, a_rank_that_waits_at_meshd_says_for_what);
    tcase_add_test(cases, a_group_that_nobody_told_of_is_looked_at_once);
    tcase_add_test(cases, who_is_waited_for_is_a_member_although_it_has_not_made_the_group);
    tcase_add_test(cases, members_that_nobody_knows_are_unknown);
    tcase_add_test(cases, a_group_without_a_place_is_unknown);
    tcase_add_test(cases, a_receive_waits_for_the_rank_that_does_not_send);
    tcase_add_test(cases, messages_that_meet_or_have_no_one_source_are_well);
    tcase_add_test(cases, receives_from_each_other_are_a_circle);
    tcase_add_test(cases, a_collective_is_knocked_on_by_a_receive);
    tcase_add_test(cases, the_state_of_a_process_follows_its_name);
    tcase_add_test(cases, nonsense_of_ranks_is_survived);
    suite_add_tcase(suite, cases);
    return suite;
}
