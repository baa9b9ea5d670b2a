/* tests/unit/session/test_control_meshd.c - what a session makes of what meshd says, and of meshd's silence and death.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/store.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/check_main.h"
#include "meshd_session.h"

static void wait_for_epoch(uint64_t epoch)
{
    int64_t deadline_ms = deadline_in(LONG_MS);
    while (atomic_load(&session->epoch) < epoch && deadline_left(deadline_ms) > 0) {
        sleep_ms(1);
    }
    ck_assert_uint_ge(atomic_load(&session->epoch), epoch);
}

/* Joining ---------------------------------------------------------------------------------------------------------- */

START_TEST(joining_takes_over_rank_secret_and_peers)
{
    char name[80], want[300], host[64] = "";
    connect_and_join(NULL, LONG_MS);
    ck_assert_int_eq(session->rank, 1);
    ck_assert_int_eq(session->world_size, 4);
    ck_assert_int_eq(session->local_rank, 1);
    ck_assert_int_eq(session->local_world_size, 2);
    ck_assert_uint_eq(session->generation, 3);
    ck_assert_str_eq(session->job, "train");
    ck_assert_mem_eq(session->secret, "\1\2\3\0", 4);
    ck_assert_int_eq(session->peers[3].n_addresses, 2);
    ck_assert_str_eq(session->peers[3].address[0], "tcp:10.0.0.1:4711");
    ck_assert_str_eq(session_peer_name(session, 2, name, sizeof name), "rank 2 (node1, pid 4712)");
    gethostname(host, sizeof host - 1);
    snprintf(want, sizeof want, "train %s 1 tcp:127.0.0.1:7", host);
    ck_assert_str_eq(seen_text, want);
    ck_assert_uint_eq(seen_join.size, 4);
    ck_assert_int_eq(seen_join.rank, -1);
    ck_assert_int_eq((int)seen_join.pid, getpid());
    ck_assert_uint_eq(seen_join.timeout_ms, LONG_MS);
    ck_assert_int_eq(session->control->ops->leave(session->control, 0), 0);
    ck_assert_int_eq(atomic_load(&n_left), 1);
    end();
}
END_TEST

static int connect_to(const char *address)
{
    session = session_new(LONG_MS);
    session->control = control_meshd_new(session, address);
    ck_assert_ptr_null(session->control);
    session_free(session);
    return mesh_last_error()->status;
}

START_TEST(nobody_at_the_address_fails_at_once_and_says_what_to_do)
{
    ck_assert_int_eq(connect_to("unix:/tmp/no such folder/meshd.sock"), MESH_EDAEMON);
    assert_sentence_has("unix:/tmp/no such folder/meshd.sock");
    assert_sentence_has("start meshd, set MESH_ADDRESS to one, or use `meshctl run`");
    ck_assert_int_eq(connect_to("tcp:127.0.0.1:1"), MESH_EDAEMON);
    assert_sentence_has("tcp:127.0.0.1:1");
    ck_assert_int_eq(connect_to("nonsense"), MESH_EINVAL);
}
END_TEST

static void speak_protocol_2(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    fake_hello(f, m->request, 2);
}

static void refuse_hello(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    fake_answer(f, m->request, MESH_EPROTO, "protocol 1 is not spoken here");
    fake_hang_up(f);
}

static void talk_nonsense(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    (void)m;
    fake_send_junk(f);
}

static void hang_up(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    (void)m;
    fake_hang_up(f);
}

static const struct {
    fake_fn fn;
    int status;
    const char *sentence;
} strangers[] = {
    { speak_protocol_2, MESH_EPROTO, "(fake 9.9) speaks protocol 2, this program (libmeshclient" },
    { refuse_hello, MESH_EPROTO, "protocol 1 is not spoken here" },
    { talk_nonsense, MESH_EPROTO, "is not a meshd of this version" },
    { hang_up, MESH_EDAEMON, "is gone" },
};

START_TEST(whoever_does_not_speak_our_protocol_is_refused)
{
    fake = fake_start(strangers[_i].fn);
    ck_assert_int_eq(connect_to(fake_address(fake)), strangers[_i].status);
    assert_sentence_has(strangers[_i].sentence);
    assert_sentence_has(fake_address(fake));
    fake_stop(fake);
}
END_TEST

static void refuse_join(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    if (m->body_case == MESH__V1__CLIENT_MESSAGE__BODY_HELLO) {
        fake_hello(f, m->request, 1);
    } else {
        fake_answer(f, m->request, MESH_ETIMEDOUT, "join: ranks 2 3 did not come within 50 ms");
    }
}

static void break_join(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    Mesh__V1__Joined j = MESH__V1__JOINED__INIT;
    Mesh__V1__DaemonMessage answer = MESH__V1__DAEMON_MESSAGE__INIT;
    j.rank = 7;
    j.size = 4;
    answer.request = m->request;
    answer.body_case = MESH__V1__DAEMON_MESSAGE__BODY_JOINED;
    answer.joined = &j;
    if (m->body_case == MESH__V1__CLIENT_MESSAGE__BODY_HELLO) {
        fake_hello(f, m->request, 1);
    } else {
        fake_send(f, &answer);
    }
}

START_TEST(a_join_that_is_refused_or_senseless_is_an_error)
{
    fake = fake_start(_i == 0 ? refuse_join : break_join);
    session = session_new(LONG_MS);
    session->control = control_meshd_new(session, fake_address(fake));
    ck_assert_int_eq(join_job(), _i == 0 ? MESH_ETIMEDOUT : MESH_EPROTO);
    assert_sentence_has(_i == 0 ? "join: ranks 2 3 did not come within 50 ms" : "rank 7 of 4");
    end();
}
END_TEST

/* Notices ---------------------------------------------------------------------------------------------------------- */

static void notice(struct fake_meshd *f, Mesh__V1__Notice__Kind kind, int rank, int status, const char *sentence)
{
    Mesh__V1__Notice n = MESH__V1__NOTICE__INIT;
    n.kind = kind;
    n.rank = rank;
    n.culprit = rank;
    n.status = status;
    n.group = 7;
    n.sentence = (char *)(uintptr_t)sentence;
    fake_notice(f, &n);
}

static void tell_of_death(void *arg)
{
    (void)arg;
    notice(fake, MESH__V1__NOTICE__KIND__RANK_LEFT, 0, 0, "");
    notice(fake, MESH__V1__NOTICE__KIND__RANK_DIED, 2, MESH_EPEER, "rank 2 (node1, pid 4712) died");
}

START_TEST(notices_of_deaths_and_leavings_become_news)
{
    connect_and_join(NULL, LONG_MS);
    ck_assert_int_eq(session_check(session, 7, all, 4), 0);
    fake_do(fake, tell_of_death, NULL);
    wait_for_epoch(2);
    ck_assert_int_eq(session_check(session, 7, all, 4), MESH_EPEER);
    ck_assert_int_eq(mesh_last_error()->rank, 2);
    ck_assert_str_eq(mesh_last_error()->message, "rank 2 (node1, pid 4712) died");
    ck_assert_int_eq(session_check(session, 7, all, 1), MESH_EPEER);
    ck_assert_str_eq(mesh_last_error()->message, "rank 0 (node0, pid 4710) left the job");
    end();
}
END_TEST

static void die_before_the_table_is_read(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    if (m->body_case == MESH__V1__CLIENT_MESSAGE__BODY_JOIN) {
        notice(f, MESH__V1__NOTICE__KIND__RANK_DIED, 3, MESH_EPEER, "");
    }
    serve(f, m);
}

START_TEST(a_death_in_the_moment_of_joining_is_not_lost)
{
    fake = fake_start(die_before_the_table_is_read);
    session = session_new(LONG_MS);
    session->control = control_meshd_new(session, fake_address(fake));
    ck_assert_int_eq(join_job(), 0);
    ck_assert_int_eq(session_check(session, 7, all, 4), MESH_EPEER);
    ck_assert_str_eq(mesh_last_error()->message, "rank 3 (node1, pid 4713) died");
    end();
}
END_TEST

static void tell_of_mismatch(void *arg)
{
    (void)arg;
    notice(fake, MESH__V1__NOTICE__KIND__REPORT, 2, MESH_EMISMATCH, "all_reduce against broadcast");
    notice(fake, MESH__V1__NOTICE__KIND__UNSPECIFIED, 2, 0, "from a newer meshd");
}

START_TEST(a_report_about_a_group_becomes_news_of_that_group)
{
    connect_and_join(NULL, LONG_MS);
    fake_do(fake, tell_of_mismatch, NULL);
    wait_for_epoch(1);
    ck_assert_int_eq(session_check(session, 8, all, 4), 0);
    ck_assert_int_eq(session_check(session, 7, all, 4), MESH_EMISMATCH);
    ck_assert_str_eq(mesh_last_error()->message, "all_reduce against broadcast");
    end();
}
END_TEST

static void abort_instead_of_answering(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    (void)m;
    notice(f, MESH__V1__NOTICE__KIND__REPORT, 2, MESH_EABORTED, "matmul: out of memory");
}

START_TEST(an_abort_ends_the_pending_call_and_leaving_still_works)
{
    connect_and_join(abort_instead_of_answering, LONG_MS);
    ck_assert_int_eq(mesh_store_get("x", NULL, 0, NULL, LONG_MS), MESH_EABORTED);
    ck_assert_str_eq(mesh_last_error()->message, "rank 2 failed: matmul: out of memory");
    ck_assert_int_eq(mesh_last_error()->rank, 2);
    ck_assert_int_eq(mesh_store_set("x", "", 0), MESH_EABORTED);
    ck_assert_int_eq(session->control->ops->leave(session->control, 0), 0);
    end();
}
END_TEST

/* Losing meshd ----------------------------------------------------------------------------------------------------- */

static void assert_control_is_lost(const char *how)
{
    ck_assert_int_eq(mesh_store_get("x", NULL, 0, NULL, LONG_MS), MESH_EDAEMON);
    assert_sentence_has(how);
    assert_sentence_has(fake_address(fake));
    assert_sentence_has("collectives go on");
    ck_assert_int_eq(session->control->ops->barrier(session->control, "b", NULL, 0, LONG_MS), MESH_EDAEMON);
    assert_sentence_has(how);
    ck_assert_int_eq(session->control->ops->leave(session->control, 0), MESH_EDAEMON);
    session->control->ops->report(session->control, &(struct report){ .sentence = "to nobody" }, NULL);
    ck_assert_int_eq(session_check(session, 7, all, 4), 0); /* collectives do */
    ck_assert(!atomic_load(&session->is_aborted));
}

START_TEST(a_lost_connection_fails_control_calls_and_nothing_else)
{
    connect_and_join(hang_up, LONG_MS);
    assert_control_is_lost("is gone");
    end();
}
END_TEST

static void send_junk(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    (void)m;
    fake_send_junk(f);
}

START_TEST(a_message_that_is_not_ours_ends_the_connection)
{
    connect_and_join(send_junk, LONG_MS);
    assert_control_is_lost("is gone");
    end();
}
END_TEST

static void stop(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    (void)m;
    notice(f, MESH__V1__NOTICE__KIND__SHUTDOWN, 0, 0, "");
}

START_TEST(meshd_stopping_is_the_same_with_its_own_words)
{
    connect_and_join(stop, LONG_MS);
    assert_control_is_lost("is stopping");
    end();
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("control_meshd");
    TCase *tcase = tcase_create("joining");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, joining_takes_over_rank_secret_and_peers);
    tcase_add_test(tcase, nobody_at_the_address_fails_at_once_and_says_what_to_do);
    tcase_add_loop_test(tcase, whoever_does_not_speak_our_protocol_is_refused, 0, ARRAY_SIZE(strangers));
    tcase_add_loop_test(tcase, a_join_that_is_refused_or_senseless_is_an_error, 0, 2);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("notices");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, notices_of_deaths_and_leavings_become_news);
    tcase_add_test(tcase, a_death_in_the_moment_of_joining_is_not_lost);
    tcase_add_test(tcase, a_report_about_a_group_becomes_news_of_that_group);
    tcase_add_test(tcase, an_abort_ends_the_pending_call_and_leaving_still_works);
    tcase_add_test(tcase, a_lost_connection_fails_control_calls_and_nothing_else);
    tcase_add_test(tcase, a_message_that_is_not_ours_ends_the_connection);
    tcase_add_test(tcase, meshd_stopping_is_the_same_with_its_own_words);
    suite_add_tcase(suite, tcase);
    return suite;
}
