/* tests/unit/session/test_local_world.c - joining, leaving, agreeing and failing in a world of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "harness/check_main.h"
#include "ranks.h"

static void knows_its_world(struct rank *me)
{
    const struct mesh_session *s = session_require();
    ck_assert_ptr_eq(s, me->session);
    ck_assert_int_eq(s->rank, me->rank);
    ck_assert_int_eq(s->world_size, me->size);
    ck_assert_int_eq(s->local_rank, me->rank);
    ck_assert_str_eq(s->job, "test");
    ck_assert_int_eq(s->peers[me->size - 1].n_addresses, 2);
    ck_assert_str_eq(s->peers[me->size - 1].address[1], "tcp:127.0.0.1:4711");
    err_set(MESH_EIO, "x");
    ck_assert_int_eq(mesh_last_error()->rank, me->rank);
    char name[80], want[80];
    snprintf(want, sizeof want, "rank %d (local, pid %d)", me->size - 1, (int)getpid());
    ck_assert_str_eq(session_peer_name(s, me->size - 1, name, sizeof name), want);
    uint8_t secret[SESSION_SECRET_BYTES];
    struct buf other = BUF_INIT;
    struct control *c = control_of(me);
    if (me->rank == 0) {
        ck_assert_int_eq(c->ops->store_set(c, (struct bytes){ "s", 1 }, (struct bytes){ s->secret, sizeof s->secret }),
                         0);
    }
    ck_assert_int_eq(c->ops->store_get(c, (struct bytes){ "s", 1 }, LONG_MS, &other), 0);
    ck_assert_mem_eq(other.data, s->secret, sizeof secret);
    buf_fini(&other);
    ck_assert_int_eq(c->ops->barrier(c, "end", NULL, 0, LONG_MS), 0);
}

START_TEST(all_ranks_join_and_know_each_other)
{
    run_ranks(_i, knows_its_world);
}
END_TEST

START_TEST(a_join_that_lacks_ranks_times_out_naming_them)
{
    struct rank rank[5] = { { .join_timeout_ms = 50 }, { .join_timeout_ms = 60 } };
    run_some(rank, 2, 5);
    ck_assert_int_eq(rank[0].joined, MESH_ETIMEDOUT);
    ck_assert_int_eq(rank[1].joined, MESH_ETIMEDOUT);
}
END_TEST

static struct mesh_session *new_session(struct local_world *w, int rank)
{
    struct mesh_session *s = session_new(0);
    s->control = control_local_new(s, w, rank);
    return s;
}

START_TEST(the_time_out_of_a_join_says_who_is_missing)
{
    struct local_world *w = local_world_new(4);
    struct mesh_session *s = new_session(w, 1);
    ck_assert_int_eq(session_join(s, &(struct join_request){ .rank = 1, .timeout_ms = 20 }), MESH_ETIMEDOUT);
    assert_sentence_has("ranks 0 2 3 did not come within 20 ms (1 of 4 are there)");
    session_free(s);
    local_world_free(w);
}
END_TEST

START_TEST(a_join_with_another_world_size_or_rank_is_refused)
{
    struct local_world *w = local_world_new(2);
    struct mesh_session *s = new_session(w, 1);
    ck_assert_int_eq(session_join(s, &(struct join_request){ .world_size = 3, .rank = -1, .timeout_ms = 20 }),
                     MESH_EMISMATCH);
    assert_sentence_has("rank 1 asks for 3 ranks, but the job has 2");
    ck_assert_int_eq(session_join(s, &(struct join_request){ .rank = 0, .timeout_ms = 20 }), MESH_EINVAL);
    session_free(s);
    local_world_free(w);
}
END_TEST

START_TEST(a_thread_without_a_session_is_told_to_init)
{
    ck_assert_ptr_null(session_require());
    ck_assert_int_eq(mesh_last_error()->status, MESH_ESTATE);
    assert_sentence_has("mesh_init() has not been called");
}
END_TEST

/* News ------------------------------------------------------------------------------------------------------------- */

/* Bounded, and woken by the session's news. */
static void wait_for_epoch(struct mesh_session *s, uint64_t epoch)
{
    int64_t deadline_ms = deadline_in(LONG_MS);
    while (atomic_load(&s->epoch) < epoch && deadline_left(deadline_ms) > 0) {
        sleep_ms(1);
    }
    ck_assert_uint_ge(atomic_load(&s->epoch), epoch);
}

static const int all[] = { 0, 1, 2 };

static void hears_who_left(struct rank *me)
{
    struct control *c = control_of(me);
    ck_assert_int_eq(c->ops->barrier(c, "begin", NULL, 0, LONG_MS), 0);
    ck_assert_int_eq(session_check(me->session, 7, all, 1), 0);
    if (me->rank == 1) {
        return;
    }
    wait_for_epoch(me->session, 1);
    ck_assert_int_eq(session_check(me->session, 7, all, 3), MESH_EPEER);
    ck_assert_int_eq(mesh_last_error()->rank, 1);
    assert_sentence_has(me->crashes ? "died" : "rank 1 (local, pid ");
    ck_assert_int_eq(session_check(me->session, 7, all, 1), 0);
    ck_assert_int_eq(c->ops->barrier(c, "late", NULL, 0, LONG_MS), MESH_EPEER);
    assert_sentence_has("late: rank 1 (local, pid ");
    const int rest[] = { 2, 0 };
    ck_assert_int_eq(c->ops->barrier(c, "rest", rest, 2, LONG_MS), 0);
}

START_TEST(who_leaves_is_named_to_the_others_who_go_on)
{
    run_ranks(3, hears_who_left);
}
END_TEST

static void waits_for_one_who_crashes(struct rank *me)
{
    struct control *c = control_of(me);
    if (me->rank == 1) {
        sleep_ms(20);
        return;
    }
    ck_assert_int_eq(c->ops->barrier(c, "forever", NULL, 0, LONG_MS), MESH_EPEER);
    ck_assert_int_eq(mesh_last_error()->rank, 1);
    assert_sentence_has("barrier forever: rank 1 (local, pid ");
    assert_sentence_has("died");
    ck_assert_int_eq(session_check(me->session, 7, all, 3), MESH_EPEER);
    ck_assert_int_eq(c->ops->agree(c, "mesh/0", NULL, 0, "x=1", LONG_MS), MESH_EPEER);
}

START_TEST(a_rank_that_ends_without_leaving_has_died_and_ends_the_barrier)
{
    struct rank rank[3] = { { .fn = waits_for_one_who_crashes },
                            { .fn = waits_for_one_who_crashes, .crashes = true },
                            { .fn = waits_for_one_who_crashes } };
    run_some(rank, 3, 3);
}
END_TEST

static void is_woken_by_an_abort(struct rank *me)
{
    struct control *c = control_of(me);
    struct buf value = BUF_INIT;
    if (me->rank == 2) {
        sleep_ms(20);
        c->ops->report(c, &(struct report){ .kind = REPORT_ABORT, .culprit = -1, .sentence = "matmul: out of memory" },
                       NULL);
        c->ops->report(c, &(struct report){ .kind = REPORT_ABORT, .culprit = 1, .sentence = "a later one" }, NULL);
        return;
    }
    int r = me->rank == 0   ? c->ops->barrier(c, "b", NULL, 0, LONG_MS)
            : me->rank == 1 ? c->ops->store_get(c, (struct bytes){ "nothing", 7 }, LONG_MS, &value)
                            : c->ops->store_wait(c, &(struct bytes){ "nothing", 7 }, 1, LONG_MS);
    ck_assert_int_eq(r, MESH_EABORTED);
    ck_assert_int_eq(mesh_last_error()->rank, 2);
    ck_assert_str_eq(mesh_last_error()->message, "rank 2 failed: matmul: out of memory");
    ck_assert_int_eq(c->ops->store_set(c, (struct bytes){ "k", 1 }, (struct bytes){ "v", 1 }), MESH_EABORTED);
    ck_assert_int_eq(session_check(me->session, 0, all, 3), MESH_EABORTED);
    buf_fini(&value);
}

START_TEST(an_abort_ends_every_wait_and_every_later_call)
{
    run_ranks(4, is_woken_by_an_abort);
}
END_TEST

static void hears_of_its_group(struct rank *me)
{
    struct control *c = control_of(me);
    if (me->rank == 0) {
        c->ops->report(c,
                       &(struct report){ .kind = REPORT_MISMATCH,
                                         .status = MESH_EMISMATCH,
                                         .group = 7,
                                         .culprit = 1,
                                         .sentence = "all_reduce f32 against broadcast" },
                       NULL);
    } else {
        wait_for_epoch(me->session, 1);
        ck_assert_int_eq(session_check(me->session, 8, all, 0), 0);
        ck_assert_int_eq(session_check(me->session, 7, all, 0), MESH_EMISMATCH);
        ck_assert_int_eq(mesh_last_error()->rank, 1);
        ck_assert_str_eq(mesh_last_error()->message, "all_reduce f32 against broadcast");
    }
    ck_assert_int_eq(c->ops->barrier(c, "end", NULL, 0, LONG_MS), 0);
}

START_TEST(a_report_about_a_group_touches_only_that_group)
{
    run_ranks(2, hears_of_its_group);
}
END_TEST

START_TEST(abort_is_blamed_before_group_news_before_the_dead_before_those_who_left)
{
    struct local_world *w = local_world_new(1);
    struct mesh_session *s = new_session(w, 0);
    const int group[] = { 2, 1 };
    session_peer_news(s, 0, PEER_LEFT, "early"); /* before the table of ranks: told when it is there */
    ck_assert_int_eq(session_join(s, &(struct join_request){ .rank = -1, .timeout_ms = 20 }), 0);
    ck_assert_int_eq(session_check(s, 7, (const int[]){ 0 }, 1), MESH_EPEER);
    assert_sentence_has("early");
    s->news = mem_free(s->news);
    s->news = mem_zalloc(3 * sizeof *s->news);
    s->world_size = 3;
    s->peers = mem_realloc(s->peers, sizeof *s->peers, 3 * sizeof *s->peers);
    s->peers[1] = (struct peer){ .host = "node1", .pid = 4711 };
    s->peers[2] = (struct peer){ .host = "node2", .pid = 4712 };
    session_peer_news(s, 2, PEER_LEFT, NULL);
    ck_assert_int_eq(session_check(s, 7, group, 2), MESH_EPEER);
    ck_assert_str_eq(mesh_last_error()->message, "rank 2 (node2, pid 4712) left the job");
    session_peer_news(s, 1, PEER_DEAD, NULL);
    session_peer_news(s, 1, PEER_LEFT, NULL); /* the first stands */
    ck_assert_int_eq(session_check(s, 7, group, 2), MESH_EPEER);
    ck_assert_int_eq(mesh_last_error()->rank, 1);
    ck_assert_str_eq(mesh_last_error()->message, "rank 1 (node1, pid 4711) died");
    session_group_news(s, 7, &(mesh_error){ .status = MESH_EMISMATCH, .rank = 2, .message = "group" });
    session_group_news(s, 7, &(mesh_error){ .status = MESH_ETIMEDOUT, .rank = 1, .message = "later" });
    ck_assert_int_eq(session_check(s, 7, group, 2), MESH_EMISMATCH);
    ck_assert_str_eq(mesh_last_error()->message, "group");
    session_abort(s, &(mesh_error){ .status = MESH_EABORTED, .rank = 1, .message = "abort" });
    ck_assert_int_eq(session_check(s, 7, group, 2), MESH_EABORTED);
    session_free(s);
    local_world_free(w);
}
END_TEST

START_TEST(news_writes_to_the_registered_eventfds)
{
    struct local_world *w = local_world_new(1);
    struct mesh_session *s = new_session(w, 0);
    int kept = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), removed = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    uint64_t count;
    ck_assert_int_eq(session_add_wake_fd(s, removed), 0);
    ck_assert_int_eq(session_add_wake_fd(s, kept), 0);
    session_remove_wake_fd(s, removed);
    session_group_news(s, 1, &(mesh_error){ .status = MESH_ETIMEDOUT, .message = "x" });
    session_group_news(s, 1, &(mesh_error){ .status = MESH_ETIMEDOUT, .message = "x" }); /* no news */
    ck_assert_int_eq(read(kept, &count, sizeof count), sizeof count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(atomic_load(&s->epoch), 1);
    ck_assert_int_eq(read(removed, &count, sizeof count), -1);
    close(kept);
    close(removed);
    session_free(s);
    local_world_free(w);
}
END_TEST

static int n_freed;

static void count_free(void *state)
{
    ck_assert_int_eq(*(int *)state, N_SESSION_SLOTS - 1 - n_freed);
    n_freed++;
}

START_TEST(a_session_frees_its_slots_from_the_top_down)
{
    struct local_world *w = local_world_new(1);
    struct mesh_session *s = new_session(w, 0);
    int number[N_SESSION_SLOTS];
    for (int i = 0; i < N_SESSION_SLOTS; i++) {
        number[i] = i;
        s->slot[i].state = &number[i];
        s->slot[i].free = count_free;
    }
    ck_assert_ptr_nonnull(session_loop(s));
    ck_assert_ptr_eq(session_loop(s), s->loop);
    session_free(s);
    ck_assert_int_eq(n_freed, N_SESSION_SLOTS);
    session_free(NULL);
    local_world_free(w);
}
END_TEST

/* Agreements and barriers ------------------------------------------------------------------------------------------ */

static void agrees(struct rank *me)
{
    struct control *c = control_of(me);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(c->ops->agree(c, "device_mesh/0", NULL, 0, "device=cpu shape=2x2", LONG_MS), 0);
    }
}

START_TEST(ranks_that_say_the_same_agree)
{
    run_ranks(4, agrees);
}
END_TEST

static void disagrees(struct rank *me)
{
    struct control *c = control_of(me);
    const char *mine = me->rank == 3 ? "device=cpu shape=4x2 names=dp,tp" : "device=cpu shape=2x4 names=dp,tp";
    ck_assert_int_eq(c->ops->agree(c, "device_mesh/3", NULL, 0, mine, LONG_MS), MESH_EMISMATCH);
    assert_sentence_has("device_mesh/3: shape differs: rank");
    assert_sentence_has(" 2x4");
    assert_sentence_has("rank 3 has 4x2");
}

START_TEST(ranks_that_disagree_all_hear_the_field_and_both_values)
{
    run_ranks(4, disagrees);
}
END_TEST

static void disagrees_on_members(struct rank *me)
{
    struct control *c = control_of(me);
    const int some[] = { 0, 1 };
    int r = me->rank == 1 ? c->ops->agree(c, "device_mesh/0", some, 2, "shape=2", LONG_MS)
                          : c->ops->agree(c, "device_mesh/0", NULL, 0, "shape=4", LONG_MS);
    ck_assert_int_eq(r, MESH_EMISMATCH);
    assert_sentence_has("device_mesh/0: members differ: rank ");
    assert_sentence_has("ranks 0-3");
    assert_sentence_has("ranks 0 1");
}

START_TEST(ranks_that_name_different_members_all_hear_of_it)
{
    run_ranks(4, disagrees_on_members);
}
END_TEST

static void comes_late_or_never(struct rank *me)
{
    struct control *c = control_of(me);
    int r = 0;
    if (me->rank == 0) {
        r = c->ops->agree(c, "device_mesh/0", NULL, 0, "x=1", 30);
    } else if (me->rank == 1) {
        r = c->ops->agree(c, "device_mesh/0", NULL, 0, "x=1", LONG_MS);
    } else {
        ck_assert_int_eq(c->ops->store_wait(c, &(struct bytes){ "over", 4 }, 1, LONG_MS), 0);
        r = c->ops->agree(c, "device_mesh/0", NULL, 0, "x=1", LONG_MS);
    }
    ck_assert_int_eq(r, MESH_ETIMEDOUT);
    assert_sentence_has("device_mesh/0: rank");
    assert_sentence_has("did not call within 30 ms");
    ck_assert_int_eq(c->ops->store_set(c, (struct bytes){ "over", 4 }, (struct bytes){ "", 0 }), 0);
}

START_TEST(an_agreement_that_timed_out_has_failed_for_all_of_its_members)
{
    run_ranks(3, comes_late_or_never);
}
END_TEST

static _Atomic int round_of[MAX_TEST_RANKS];

static void passes_a_hundred_barriers(struct rank *me)
{
    struct control *c = control_of(me);
    for (int i = 1; i <= 100; i++) {
        atomic_store(&round_of[me->rank], i);
        ck_assert_int_eq(c->ops->barrier(c, "round", NULL, 0, LONG_MS), 0);
        for (int k = 0; k < me->size; k++) {
            int other = atomic_load(&round_of[k]);
            ck_assert_msg(other == i || other == i + 1, "rank %d is in round %d, rank %d in %d", me->rank, i, k, other);
        }
    }
}

START_TEST(kbar_the_same_barrier_really_waits_a_hundred_times)
{
    run_ranks(4, passes_a_hundred_barriers);
}
END_TEST

static void meets_wrongly(struct rank *me)
{
    struct control *c = control_of(me);
    const int twice[] = { 0, 0 }, others[] = { 1 }, far[] = { 0, 9 };
    if (me->rank == 0) {
        ck_assert_int_eq(c->ops->barrier(c, "b", twice, 2, LONG_MS), MESH_EINVAL);
        ck_assert_int_eq(c->ops->barrier(c, "b", others, 1, LONG_MS), MESH_ENOTMEMBER);
        ck_assert_int_eq(c->ops->barrier(c, "b", far, 2, LONG_MS), MESH_EINVAL);
        ck_assert_int_eq(c->ops->barrier(c, "b", NULL, 0, 20), MESH_ETIMEDOUT);
        assert_sentence_has("barrier b: rank 1 did not arrive within 20 ms (1 of 2 did)");
    }
    ck_assert_int_eq(c->ops->barrier(c, "c", NULL, 0, LONG_MS), 0);
}

START_TEST(wrong_members_and_missing_ranks_end_a_barrier_with_a_sentence)
{
    run_ranks(2, meets_wrongly);
}
END_TEST

START_TEST(a_rank_that_left_is_told_so)
{
    struct local_world *w = local_world_new(1);
    struct mesh_session *s = new_session(w, 0);
    struct control *c = s->control;
    ck_assert_int_eq(c->ops->store_set(c, (struct bytes){ "k", 1 }, (struct bytes){ "v", 1 }), MESH_ESTATE);
    ck_assert_int_eq(session_join(s, &(struct join_request){ .rank = -1, .timeout_ms = 20 }), 0);
    ck_assert_int_eq(c->ops->leave(c, 0), 0);
    ck_assert_int_eq(c->ops->barrier(c, "b", NULL, 0, LONG_MS), MESH_ESTATE);
    ck_assert_int_eq(c->ops->leave(c, 0), 0);
    session_free(s);
    local_world_free(w);
}
END_TEST

START_TEST(rank_lists_name_runs_and_are_cut_with_the_total)
{
    char buf[60];
    ck_assert_str_eq(session_rank_list((const int[]){ 3 }, 1, buf, sizeof buf), "rank 3");
    ck_assert_str_eq(session_rank_list((const int[]){ 0, 1, 2, 5, 6 }, 5, buf, sizeof buf), "ranks 0-2 5 6");
    int many[100];
    for (int i = 0; i < 100; i++) {
        many[i] = 2 * i;
    }
    session_rank_list(many, 100, buf, sizeof buf);
    ck_assert_ptr_nonnull(strstr(buf, " ... (100 in all)"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("local_world");
    TCase *tcase = tcase_create("joining");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, all_ranks_join_and_know_each_other, 1, MAX_TEST_RANKS + 1);
    tcase_add_test(tcase, a_join_that_lacks_ranks_times_out_naming_them);
    tcase_add_test(tcase, the_time_out_of_a_join_says_who_is_missing);
    tcase_add_test(tcase, a_join_with_another_world_size_or_rank_is_refused);
    tcase_add_test(tcase, a_thread_without_a_session_is_told_to_init);
    tcase_add_test(tcase, a_rank_that_left_is_told_so);
    tcase_add_test(tcase, a_session_frees_its_slots_from_the_top_down);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("news");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, who_leaves_is_named_to_the_others_who_go_on);
    tcase_add_test(tcase, a_rank_that_ends_without_leaving_has_died_and_ends_the_barrier);
    tcase_add_test(tcase, an_abort_ends_every_wait_and_every_later_call);
    tcase_add_test(tcase, a_report_about_a_group_touches_only_that_group);
    tcase_add_test(tcase, abort_is_blamed_before_group_news_before_the_dead_before_those_who_left);
    tcase_add_test(tcase, news_writes_to_the_registered_eventfds);
    tcase_add_test(tcase, rank_lists_name_runs_and_are_cut_with_the_total);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("meetings");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, ranks_that_say_the_same_agree);
    tcase_add_test(tcase, ranks_that_disagree_all_hear_the_field_and_both_values);
    tcase_add_test(tcase, ranks_that_name_different_members_all_hear_of_it);
    tcase_add_test(tcase, an_agreement_that_timed_out_has_failed_for_all_of_its_members);
    tcase_add_test(tcase, kbar_the_same_barrier_really_waits_a_hundred_times);
    tcase_add_test(tcase, wrong_members_and_missing_ranks_end_a_barrier_with_a_sentence);
    suite_add_tcase(suite, tcase);
    return suite;
}
