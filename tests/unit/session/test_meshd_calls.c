/* tests/unit/session/test_meshd_calls.c - requests to meshd: what is sent, what comes back, and when nothing does.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/store.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "harness/check_main.h"
#include "meshd_session.h"

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

static void blame_another(struct fake_meshd *f, const Mesh__V1__ClientMessage *m)
{
    Mesh__V1__Notice told = MESH__V1__NOTICE__INIT;
    Mesh__V1__DaemonMessage answer = MESH__V1__DAEMON_MESSAGE__INIT;
    ck_assert_int_eq(m->body_case, MESH__V1__CLIENT_MESSAGE__BODY_REPORT);
    if (m->report->rank == 1) {
        return; /* of this one nothing is known for ever */
    }
    told.kind = MESH__V1__NOTICE__KIND__REPORT;
    told.culprit = 1;
    told.sentence = (char *)(uintptr_t) "slow; the cause is rank 1";
    answer.request = m->request;
    answer.body_case = MESH__V1__DAEMON_MESSAGE__BODY_NOTICE;
    answer.notice = &told;
    fake_send(f, &answer);
}

START_TEST(who_reports_a_time_out_hears_whom_the_others_are_told)
{
    connect_and_join(blame_another, LONG_MS);
    struct control *c = session->control;
    struct report r = {
        .kind = REPORT_TIMEOUT, .status = MESH_ETIMEDOUT, .group = 7, .culprit = 2, .sentence = "slow"
    };
    mesh_error told = { .status = MESH_ETIMEDOUT, .rank = 2, .message = "slow" };
    c->ops->report(c, &r, &told);
    ck_assert_int_eq(told.rank, 1);
    ck_assert_str_eq(told.message, "slow; the cause is rank 1");
    r.culprit = told.rank;
    c->ops->report(c, &r, &told); /* not answered: it ends, and what was known stays */
    ck_assert_int_eq(told.rank, 1);
    ck_assert_str_eq(told.message, "slow; the cause is rank 1");
    end();
}
END_TEST

START_TEST(reports_records_and_meetings_are_sent_in_order)
{
    connect_and_join(write_down, LONG_MS);
    struct control *c = session->control;
    const int some[] = { 3, 1 };
    seen_text[0] = 0;
    c->ops->report(c, &(struct report){ .kind = REPORT_ABORT, .culprit = -1, .sentence = "no memory" }, NULL);
    c->ops->report(c,
                   &(struct report){ .kind = REPORT_TIMEOUT,
                                     .status = MESH_ETIMEDOUT,
                                     .group = 7,
                                     .sequence = 9,
                                     .culprit = 2,
                                     .sentence = "slow" },
                   NULL);
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

/* Running out of memory -------------------------------------------------------------------------------------------- */

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
        c->ops->report(c, &(struct report){ .kind = REPORT_ABORT, .culprit = -1, .sentence = "no memory" }, NULL);
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
    Suite *suite = suite_create("meshd_calls");
    TCase *tcase = tcase_create("calls");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, no_answer_in_time_is_a_time_out_and_the_connection_stays);
    tcase_add_test(tcase, answers_and_refusals_of_the_store_arrive);
    tcase_add_test(tcase, a_success_without_what_was_asked_for_is_a_protocol_error);
    tcase_add_test(tcase, who_reports_a_time_out_hears_whom_the_others_are_told);
    tcase_add_test(tcase, reports_records_and_meetings_are_sent_in_order);
    tcase_add_test(tcase, every_allocation_may_fail_and_no_call_waits_for_nothing);
    suite_add_tcase(suite, tcase);
    return suite;
}
