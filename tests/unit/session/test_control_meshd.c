/* tests/unit/session/test_control_meshd.c - what a session makes of what meshd says, and of meshd's silence and death.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/store.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "fake_meshd.h"
#include "harness/check_main.h"
#include "ranks.h"

static struct fake_meshd *fake;
static struct mesh_session *session;

/* What the fake noticed: written on its loop, read after an answer that came later. */
static Mesh__V1__Join seen_join;
static char seen_text[256];
static _Atomic int n_left;

static const int all[] = { 0, 1, 2, 3 };

/* Hello, join as rank 1 of 4, leave; the rest is `other`'s, or is not answered. */
static fake_fn other;

static void serve(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    switch (m->body_case) {
    case MESH__V1__CLIENT_MESSAGE__BODY_HELLO:
        fake_hello(f, m->request, 1);
        break;
    case MESH__V1__CLIENT_MESSAGE__BODY_JOIN:
        seen_join = *m->join;
        snprintf(seen_text, sizeof seen_text, "%s %s %zu %s", m->join->job, m->join->host, m->join->n_address,
                 m->join->address[0]);
        fake_joined(f, m->request, 1, 4);
        break;
    case MESH__V1__CLIENT_MESSAGE__BODY_LEAVE:
        atomic_fetch_add(&n_left, 1);
        fake_answer(f, m->request, 0, "");
        break;
    default:
        if (other != NULL) {
            other(f, m);
        }
        break;
    }
}

static int join_job(void)
{
    const char *const addresses[] = { "tcp:127.0.0.1:7", NULL };
    return session_join(
        session, &(struct join_request){
                     .job = "train", .world_size = 4, .rank = -1, .addresses = addresses, .timeout_ms = LONG_MS });
}

/* limit_ms: the session's time limit, which also bounds how long an answer may take. */
static void connect_and_join(fake_fn fn, int64_t limit_ms)
{
    other = fn;
    fake = fake_start(serve);
    session = session_new(limit_ms);
    session_set_current(session);
    session->control = control_meshd_new(session, fake_address(fake));
    ck_assert_ptr_nonnull(session->control);
    ck_assert_int_eq(join_job(), 0);
}

static void end(void)
{
    session_free(session);
    fake_stop(fake);
}

static void wait_for_epoch(uint64_t epoch)
{
    int64_t deadline_ms = deadline_in(LONG_MS);
    while (atomic_load(&session->epoch) < epoch && deadline_left(deadline_ms) > 0) {
        sleep_ms(1);
    }
    ck_assert_uint_ge(atomic_load(&session->epoch), epoch);
}

/* Joining ------------------------------------------------------------------------------------------------------------ */

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

/* Notices ------------------------------------------------------------------------------------------------------------ */

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

/* Losing meshd ------------------------------------------------------------------------------------------------------- */

static void assert_control_is_lost(const char *how)
{
    ck_assert_int_eq(mesh_store_get("x", NULL, 0, NULL, LONG_MS), MESH_EDAEMON);
    assert_sentence_has(how);
    assert_sentence_has(fake_address(fake));
    assert_sentence_has("collectives go on");
    ck_assert_int_eq(session->control->ops->barrier(session->control, "b", NULL, 0, LONG_MS), MESH_EDAEMON);
    assert_sentence_has(how);
    ck_assert_int_eq(session->control->ops->leave(session->control, 0), MESH_EDAEMON);
    session->control->ops->report(session->control, &(struct report){ .sentence = "to nobody" });
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

/* Calls -------------------------------------------------------------------------------------------------------------- */

static uint64_t unanswered;

static void answer_the_second(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    if (m->body_case == MESH__V1__CLIENT_MESSAGE__BODY_STORE_SET) {
        unanswered = m->request;
        return;
    }
    fake_answer(f, unanswered, 0, ""); /* late: nobody waits for it any more */
    fake_answer(f, m->request, MESH_ENOTFOUND, "store delete: there is no key \"k\"");
}

START_TEST(no_answer_in_time_is_a_time_out_and_the_connection_stays)
{
    connect_and_join(answer_the_second, 50);
    ck_assert_int_eq(mesh_store_set("k", "v", 1), MESH_ETIMEDOUT);
    assert_sentence_has("did not answer within 50 ms");
    session->timeout_ms = LONG_MS; /* the second must not be decided by timing */
    ck_assert_int_eq(mesh_store_delete("k"), MESH_ENOTFOUND);
    ck_assert_str_eq(mesh_last_error()->message, "store delete: there is no key \"k\"");
    end();
}
END_TEST

static void answer_value(struct fake_meshd *f, uint64_t request, int status)
{
    Mesh__V1__StoreValue value = MESH__V1__STORE_VALUE__INIT;
    Mesh__V1__DaemonMessage m = MESH__V1__DAEMON_MESSAGE__INIT;
    ProtobufCBinaryData missing = { .len = 1, .data = (uint8_t *)(uintptr_t) "b" };
    value.value = (ProtobufCBinaryData){ .len = 3, .data = (uint8_t *)(uintptr_t) "a\0b" };
    value.n_missing = status == MESH_ETIMEDOUT ? 1 : 0;
    value.missing = &missing;
    m.request = request;
    m.status = status;
    m.error = (char *)(uintptr_t)(status == 0 ? "" : "said by meshd");
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_STORE_VALUE;
    m.store_value = &value;
    fake_send(f, &m);
}

static void answer_number(struct fake_meshd *f, uint64_t request, int64_t value)
{
    Mesh__V1__StoreNumber number = MESH__V1__STORE_NUMBER__INIT;
    Mesh__V1__DaemonMessage m = MESH__V1__DAEMON_MESSAGE__INIT;
    number.value = value;
    m.request = request;
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_STORE_NUMBER;
    m.store_number = &number;
    fake_send(f, &m);
}

static void keep_store(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    switch (m->body_case) {
    case MESH__V1__CLIENT_MESSAGE__BODY_STORE_GET:
        ck_assert_int_eq(m->store_get->timeout_ms, 70);
        answer_value(f, m->request, 0);
        break;
    case MESH__V1__CLIENT_MESSAGE__BODY_STORE_ADD:
        answer_number(f, m->request, m->store_add->delta + 1);
        break;
    case MESH__V1__CLIENT_MESSAGE__BODY_STORE_COMPARE_SET:
        ck_assert(m->store_compare_set->expect_absent);
        answer_value(f, m->request, MESH_EEXIST);
        break;
    case MESH__V1__CLIENT_MESSAGE__BODY_STORE_WAIT:
        ck_assert_uint_eq(m->store_wait->n_key, 2);
        answer_value(f, m->request, MESH_ETIMEDOUT);
        break;
    default:
        fake_answer(f, m->request, MESH_ETOOLARGE, "said by meshd");
        break;
    }
}

START_TEST(answers_and_refusals_of_the_store_arrive)
{
    char value[8];
    size_t len = 0;
    int64_t sum = 0;
    connect_and_join(keep_store, LONG_MS);
    ck_assert_int_eq(mesh_store_get("k", value, sizeof value, &len, 70), 0);
    ck_assert_uint_eq(len, 3);
    ck_assert_mem_eq(value, "a\0b", 3);
    ck_assert_int_eq(mesh_store_add("k", -9, &sum), 0);
    ck_assert_int_eq(sum, -8);
    len = 0;
    ck_assert_int_eq(mesh_store_compare_set("k", NULL, 0, "d", 1, value, sizeof value, &len), MESH_EEXIST);
    ck_assert_uint_eq(len, 3);
    ck_assert_int_eq(mesh_store_wait(MESH_NAMES("a", "b"), 60), MESH_ETIMEDOUT);
    ck_assert_str_eq(mesh_last_error()->message, "said by meshd");
    ck_assert_int_eq(mesh_store_wait(MESH_NAMES("a", "b"), MESH_NO_WAIT), MESH_ENOTFOUND);
    assert_sentence_has("\"b\" is not there");
    ck_assert_int_eq(mesh_store_set("k", "v", 1), MESH_ETOOLARGE);
    ck_assert_str_eq(mesh_last_error()->where, "mesh_store_set");
    end();
}
END_TEST

static void answer_wrongly(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    fake_answer(f, m->request, 0, "");
}

START_TEST(a_success_without_what_was_asked_for_is_a_protocol_error)
{
    connect_and_join(answer_wrongly, LONG_MS);
    ck_assert_int_eq(mesh_store_get("k", NULL, 0, NULL, 70), MESH_EPROTO);
    ck_assert_int_eq(mesh_store_add("k", 1, NULL), MESH_EPROTO);
    ck_assert_int_eq(mesh_store_set("k", "", 0), 0);
    end();
}
END_TEST

static void write_down(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    size_t at = strlen(seen_text);
    char *text = seen_text + at;
    size_t cap = sizeof seen_text - at;
    switch (m->body_case) {
    case MESH__V1__CLIENT_MESSAGE__BODY_REPORT:
        ck_assert_uint_eq(m->request, 0);
        snprintf(text, cap, "report %d %d %lu %lu %s;", m->report->status, m->report->rank,
                 (unsigned long)m->report->group, (unsigned long)m->report->sequence, m->report->sentence);
        break;
    case MESH__V1__CLIENT_MESSAGE__BODY_GROUP_RECORD:
        ck_assert_uint_eq(m->request, 0);
        snprintf(text, cap, "group %lu %s %zu %u;", (unsigned long)m->group_record->group, m->group_record->name,
                 m->group_record->n_member, m->group_record->member[1]);
        break;
    case MESH__V1__CLIENT_MESSAGE__BODY_AGREE:
        snprintf(text, cap, "agree %s %zu %s %lu;", m->agree->key, m->agree->n_member, m->agree->descriptor,
                 (unsigned long)m->agree->timeout_ms);
        fake_answer(f, m->request, 0, "");
        break;
    case MESH__V1__CLIENT_MESSAGE__BODY_BARRIER:
        snprintf(text, cap, "barrier %s %zu %lu;", m->barrier->name, m->barrier->n_member,
                 (unsigned long)m->barrier->timeout_ms);
        fake_answer(f, m->request, 0, "");
        break;
    default:
        break;
    }
}

START_TEST(reports_records_and_meetings_are_sent_in_order)
{
    connect_and_join(write_down, LONG_MS);
    struct control *c = session->control;
    const int some[] = { 3, 1 };
    seen_text[0] = 0;
    c->ops->report(c, &(struct report){ .kind = REPORT_ABORT, .culprit = -1, .sentence = "no memory" });
    c->ops->report(c, &(struct report){ .kind = REPORT_TIMEOUT,
                                        .status = MESH_ETIMEDOUT,
                                        .group = 7,
                                        .sequence = 9,
                                        .culprit = 2,
                                        .sentence = "slow" });
    c->ops->record_group(c, 7, "dp", some, 2);
    ck_assert_int_eq(c->ops->agree(c, "mesh/0", some, 2, "x=1", 80), 0);
    ck_assert_int_eq(c->ops->barrier(c, "b", NULL, 0, 90), 0);
    ck_assert_str_eq(seen_text, "report -8 -1 0 0 no memory;report -7 2 7 9 slow;group 7 dp 2 1;agree mesh/0 2 x=1 80;"
                                "barrier b 0 90;");
    const int outside[] = { -1 };
    ck_assert_int_eq(c->ops->barrier(c, "b", outside, 1, 90), MESH_EINVAL);
    end();
}
END_TEST

/* Running out of memory ---------------------------------------------------------------------------------------------- */

static void serve_all(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    if (m->body_case == MESH__V1__CLIENT_MESSAGE__BODY_STORE_SET ||
        m->body_case == MESH__V1__CLIENT_MESSAGE__BODY_AGREE) {
        fake_answer(f, m->request, 0, "");
    } else if (m->body_case == MESH__V1__CLIENT_MESSAGE__BODY_STORE_GET) {
        answer_value(f, m->request, 0);
    } else {
        serve(f, m);
    }
}

/* In a process of its own, where no allocation is made to fail; it ends when we close the pipe. */
static pid_t fork_fake(char *ret_address, size_t cap, int *ret_life)
{
    int life[2], told[2];
    ck_assert_int_eq(pipe(life), 0);
    ck_assert_int_eq(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        close(life[1]);
        fake = fake_start(serve_all);
        ssize_t n = write(told[1], fake_address(fake), strlen(fake_address(fake)) + 1);
        n = read(life[0], &byte, 1);
        fake_stop(fake);
        _exit(n == 0 ? 0 : 1);
    }
    close(life[0]);
    close(told[1]);
    ck_assert_int_gt(read(told[0], ret_address, cap), 0);
    close(told[0]);
    *ret_life = life[1];
    return pid;
}

/* 0, or the status of the first call that failed. */
static int use_meshd(const char *address)
{
    char value[8];
    int r = MESH_ENOMEM;
    session = session_new(LONG_MS);
    if (session == NULL) {
        return r;
    }
    session_set_current(session);
    session->control = control_meshd_new(session, address);
    if (session->control != NULL) {
        struct control *c = session->control;
        r = join_job();
        r = r < 0 ? r : mesh_store_set("k", "v", 1);
        r = r < 0 ? r : mesh_store_get("k", value, sizeof value, NULL, 70);
        r = r < 0 ? r : c->ops->agree(c, "mesh/0", all, 4, "x=1", LONG_MS);
        c->ops->record_group(c, 7, "dp", all, 4);
        c->ops->report(c, &(struct report){ .kind = REPORT_ABORT, .culprit = -1, .sentence = "no memory" });
        int left = c->ops->leave(c, 0);
        r = r < 0 ? r : left;
    } else {
        r = mesh_last_error()->status;
    }
    session_free(session);
    return r;
}

static void say_nothing(enum log_level level, const char *line, void *arg)
{
    (void)level, (void)line, (void)arg;
}

START_TEST(every_allocation_may_fail_and_no_call_waits_for_nothing)
{
    char address[128];
    int life, status;
    pid_t pid = fork_fake(address, sizeof address, &life);
    log_set_sink(say_nothing, NULL);
    uint64_t nth = 0, fired = 1;
    while (fired > 0 && nth < 1000) {
        int64_t begin_ms = clock_now_ms();
        fault_arm(FAULT_ALLOC, ++nth, 0);
        int r = use_meshd(address);
        fired = fault_fired(FAULT_ALLOC);
        fault_disarm(FAULT_ALLOC);
        ck_assert_msg(r == 0 || r == MESH_ENOMEM || r == MESH_EDAEMON, "allocation %d: %s: %s", (int)nth,
                      mesh_status_name(r), mesh_last_error()->message);
        ck_assert_int_lt(clock_now_ms() - begin_ms, LONG_MS);
    }
    ck_assert_uint_gt(nth, 20);
    close(life);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
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
    tcase = tcase_create("calls");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, no_answer_in_time_is_a_time_out_and_the_connection_stays);
    tcase_add_test(tcase, answers_and_refusals_of_the_store_arrive);
    tcase_add_test(tcase, a_success_without_what_was_asked_for_is_a_protocol_error);
    tcase_add_test(tcase, reports_records_and_meetings_are_sent_in_order);
    tcase_add_test(tcase, every_allocation_may_fail_and_no_call_waits_for_nothing);
    suite_add_tcase(suite, tcase);
    return suite;
}
