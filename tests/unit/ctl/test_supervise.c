/* tests/unit/ctl/test_supervise.c - what a job's launcher decides, and what it says in the end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/supervise.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "ctl/summary.h"
#include "harness/check_main.h"

enum { N = 4, REPORT = 3000, GRACE = 5000, KILL_WAIT = 1000 };

static struct rank_fate fates[N];
static struct supervise s;
static const pid_t pids[N] = { 100, 101, 102, 103 };
static struct supervise_limits limits;

static void begin(void)
{
    supervise_init(&s, fates, N, &limits, 1000);
}

static void setup(void)
{
    limits = (struct supervise_limits){ .report_ms = REPORT, .grace_ms = GRACE, .kill_ms = KILL_WAIT };
    begin();
}

static int exits(int rank, int code, int64_t now_ms)
{
    return supervise_step(
        &s, &(struct supervise_event){
                .kind = EVENT_RANK_ENDED, .now_ms = now_ms, .rank = rank, .wait_status = W_EXITCODE(code, 0) });
}

static int dies(int rank, int signal_number, int64_t now_ms)
{
    return supervise_step(&s, &(struct supervise_event){ .kind = EVENT_RANK_ENDED,
                                                         .now_ms = now_ms,
                                                         .rank = rank,
                                                         .wait_status = W_EXITCODE(0, signal_number) });
}

static void meshd_says_dead(int rank, int64_t now_ms)
{
    ck_assert_int_eq(
        supervise_step(&s, &(struct supervise_event){ .kind = EVENT_DEATH_TOLD, .now_ms = now_ms, .rank = rank }), 0);
}

static void meshd_says_absent(int rank, int64_t now_ms)
{
    ck_assert_int_eq(
        supervise_step(&s, &(struct supervise_event){ .kind = EVENT_ABSENCE_TOLD, .now_ms = now_ms, .rank = rank }), 0);
}

static int user_sends(int signal_number, int64_t now_ms)
{
    return supervise_step(
        &s, &(struct supervise_event){ .kind = EVENT_USER_SIGNAL, .now_ms = now_ms, .signal_number = signal_number });
}

static int happens(enum supervise_event_kind kind, int64_t now_ms)
{
    return supervise_step(&s, &(struct supervise_event){ .kind = kind, .now_ms = now_ms });
}

static void expect_summary(const char *want)
{
    struct buf text = BUF_INIT;
    summary_write(&s, pids, &text);
    ck_assert_str_eq(buf_text(&text), want);
    buf_fini(&text);
}

START_TEST(all_ranks_ending_well_is_success)
{
    ck_assert_int_eq(s.deadline_ms == DEADLINE_NEVER, 1);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(s.phase, PHASE_RUNNING);
        ck_assert_int_eq(exits(i, 0, 2000 + i), 0);
    }
    ck_assert_int_eq(s.phase, PHASE_OVER);
    ck_assert_int_eq(supervise_exit_code(&s), 0);
    expect_summary("");
}
END_TEST

START_TEST(a_killed_rank_is_the_cause_and_the_others_may_report)
{
    ck_assert_int_eq(dies(2, SIGKILL, 4200), 0);
    ck_assert_int_eq(s.phase, PHASE_REPORTING);
    ck_assert_int_eq(s.deadline_ms, 4200 + REPORT);
    ck_assert_int_eq(exits(0, 1, 4300), 0);
    ck_assert_int_eq(exits(1, 1, 4300), 0);
    ck_assert_int_eq(exits(3, 1, 4300), 0);
    ck_assert_int_eq(s.phase, PHASE_OVER);
    ck_assert_int_eq(supervise_exit_code(&s), 137);
    expect_summary("rank 2 (pid 102) was killed by signal 9 (Killed) after 3.2 s; ranks 0, 1, 3 ended because of it");
}
END_TEST

START_TEST(ranks_that_do_not_end_get_term_then_kill)
{
    ck_assert_int_eq(exits(0, 3, 2000), 0);
    ck_assert_int_eq(happens(EVENT_TIME, 2000 + REPORT - 1), 0);
    ck_assert_int_eq(happens(EVENT_TIME, 2000 + REPORT), SIGTERM);
    ck_assert_int_eq(dies(1, SIGTERM, 5100), 0);
    ck_assert_int_eq(happens(EVENT_TIME, 2000 + REPORT + GRACE), SIGKILL);
    ck_assert_int_eq(dies(2, SIGKILL, 10001), 0);
    ck_assert_int_eq(dies(3, SIGKILL, 10001), 0);
    ck_assert_int_eq(s.phase, PHASE_OVER);
    ck_assert_int_eq(supervise_exit_code(&s), 3);
    expect_summary("rank 0 (pid 100) exited with code 3 after 1.0 s; ranks 1-3 ended because of it");
}
END_TEST

START_TEST(a_rank_that_cannot_be_killed_is_given_up)
{
    exits(0, 0, 2000);
    exits(1, 0, 2000);
    exits(2, 7, 2000);
    happens(EVENT_TIME, 2000 + REPORT);
    happens(EVENT_TIME, 2000 + REPORT + GRACE);
    ck_assert_int_eq(happens(EVENT_TIME, 2000 + REPORT + GRACE + KILL_WAIT), 0);
    ck_assert_int_eq(s.phase, PHASE_OVER);
    ck_assert(s.is_given_up);
    expect_summary("rank 2 (pid 102) exited with code 7 after 1.0 s; rank 3 (pid 103) does not end even after SIGKILL");
}
END_TEST

START_TEST(the_rank_that_meshd_saw_die_first_is_the_cause)
{
    exits(0, 1, 2000);
    ck_assert_int_eq(s.cause, 0);
    meshd_says_dead(2, 2001);
    meshd_says_dead(0, 2002);
    ck_assert_int_eq(s.cause, 0); /* 2 is not known to have failed */
    exits(2, 42, 2010);
    exits(1, 1, 2020);
    exits(3, 1, 2020);
    ck_assert_int_eq(s.cause, 2);
    ck_assert_int_eq(supervise_exit_code(&s), 42);
}
END_TEST

START_TEST(a_rank_that_ended_before_joining_is_the_cause)
{
    exits(1, 0, 1500);
    exits(0, 16, 2000);
    meshd_says_absent(1, 2001);
    exits(2, 16, 2010);
    exits(3, 16, 2010);
    ck_assert_int_eq(supervise_exit_code(&s), 16);
    expect_summary("rank 1 (pid 101) exited with code 0 after 0.5 s without having joined the job (mesh_init()); ranks "
                   "0, 2, 3 ended because of it");
    begin();
    exits(3, 16, 2000); /* it hears of the end of rank 1 before we see it */
    meshd_says_absent(1, 2001);
    exits(1, 9, 2002);
    exits(0, 16, 2010);
    exits(2, 16, 2010);
    ck_assert_int_eq(supervise_exit_code(&s), 9);
    expect_summary("rank 1 (pid 101) exited with code 9 after 1.0 s without having joined the job (mesh_init()); ranks "
                   "0, 2, 3 ended because of it");
}
END_TEST

START_TEST(what_meshd_says_may_come_last_and_may_be_wrong)
{
    for (int i = 0; i < N; i++) {
        exits(i, 1, 2000);
    }
    ck_assert_int_eq(s.phase, PHASE_OVER);
    begin();
    exits(2, 0, 2000); /* died for meshd, for it did not leave; but it ended well */
    meshd_says_dead(2, 2000);
    meshd_says_dead(99, 2000);
    exits(0, 1, 2001);
    ck_assert_int_eq(s.cause, 0);
}
END_TEST

static void meshd_tells_report(int rank, int64_t now_ms)
{
    ck_assert_int_eq(
        supervise_step(&s, &(struct supervise_event){ .kind = EVENT_REPORT_TOLD, .now_ms = now_ms, .rank = rank }), 0);
}

START_TEST(the_rank_that_said_first_what_went_wrong_is_the_cause)
{
    meshd_tells_report(1, 1900);
    exits(0, 5, 2000);
    exits(1, 6, 2010);
    meshd_tells_report(3, 2015);
    exits(3, 5, 2020);
    exits(2, 0, 2030);
    ck_assert_int_eq(supervise_exit_code(&s), 6);
    expect_summary("rank 1 (pid 101) exited with code 6 after 1.0 s; ranks 0, 3 ended because of it");
    begin();
    meshd_tells_report(1, 1900);
    meshd_says_dead(2, 1950);
    exits(1, 5, 2000);
    dies(2, SIGKILL, 2010);
    ck_assert_int_eq(s.cause, 2);
}
END_TEST

START_TEST(a_rank_that_ends_well_without_leaving_is_named_and_others_give_the_code)
{
    exits(1, 0, 2000);
    meshd_says_dead(1, 2001);
    exits(2, 5, 2100);
    exits(0, 4, 2200);
    exits(3, 0, 2300);
    ck_assert_int_eq(supervise_exit_code(&s), 5);
    expect_summary("rank 1 (pid 101) exited with code 0 after 1.0 s without leaving the job (mesh_finalize()); "
                   "ranks 0, 2 ended because of it");
    begin();
    exits(1, 0, 2000);
    meshd_says_dead(1, 2001);
    for (int i = 0; i < N; i++) {
        exits(i, 0, 2100);
    }
    ck_assert_int_eq(supervise_exit_code(&s), 0);
    expect_summary("");
}
END_TEST

START_TEST(interrupt_is_forwarded_then_term_then_kill)
{
    ck_assert_int_eq(user_sends(SIGINT, 2000), SIGINT);
    ck_assert_int_eq(s.phase, PHASE_STOPPING);
    ck_assert_int_eq(happens(EVENT_TIME, 2000 + GRACE), SIGTERM);
    ck_assert_int_eq(happens(EVENT_TIME, 2000 + 2 * GRACE), SIGKILL);
    for (int i = 0; i < N; i++) {
        dies(i, SIGKILL, 2000 + 2 * GRACE + 1);
    }
    ck_assert_int_eq(supervise_exit_code(&s), 128 + SIGINT);
    expect_summary("stopped by signal 2 (Interrupt); ranks 0-3 ended because of it");
}
END_TEST

START_TEST(a_second_interrupt_kills_at_once)
{
    ck_assert_int_eq(user_sends(SIGINT, 2000), SIGINT);
    ck_assert_int_eq(user_sends(SIGINT, 2100), SIGKILL);
}
END_TEST

START_TEST(a_program_that_ends_well_on_the_users_term_is_a_success)
{
    ck_assert_int_eq(user_sends(SIGTERM, 2000), SIGTERM);
    for (int i = 0; i < N; i++) {
        exits(i, 0, 2100);
    }
    ck_assert_int_eq(supervise_exit_code(&s), 0);
    expect_summary("");
}
END_TEST

START_TEST(other_signals_are_forwarded_and_change_nothing)
{
    static const int others[] = { SIGUSR1, SIGUSR2, SIGHUP, SIGWINCH, SIGCONT, SIGTSTP };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_int_eq(user_sends(others[i], 2000), others[i]);
        ck_assert_int_eq(s.phase, PHASE_RUNNING);
    }
}
END_TEST

START_TEST(the_time_limit_ends_the_job_with_its_own_code)
{
    limits.time_limit_ms = 10000;
    begin();
    ck_assert_int_eq(s.deadline_ms, 11000);
    ck_assert_int_eq(happens(EVENT_TIME, 11000), SIGTERM);
    for (int i = 0; i < N; i++) {
        dies(i, SIGTERM, 11001);
    }
    ck_assert_int_eq(supervise_exit_code(&s), 124);
    expect_summary("the job ran longer than --timeout; ranks 0-3 ended because of it");
}
END_TEST

START_TEST(output_that_nobody_reads_ends_the_job)
{
    ck_assert_int_eq(happens(EVENT_OUTPUT_CLOSED, 2000), SIGTERM);
    for (int i = 0; i < N; i++) {
        dies(i, SIGTERM, 2100);
    }
    ck_assert_int_eq(supervise_exit_code(&s), 128 + SIGPIPE);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("supervise");
    TCase *cases = tcase_create("supervise");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, all_ranks_ending_well_is_success);
    tcase_add_test(cases, a_killed_rank_is_the_cause_and_the_others_may_report);
    tcase_add_test(cases, ranks_that_do_not_end_get_term_then_kill);
    tcase_add_test(cases, a_rank_that_cannot_be_killed_is_given_up);
    tcase_add_test(cases, the_rank_that_meshd_saw_die_first_is_the_cause);
    tcase_add_test(cases, a_rank_that_ended_before_joining_is_the_cause);
    tcase_add_test(cases, what_meshd_says_may_come_last_and_may_be_wrong);
    tcase_add_test(cases, the_rank_that_said_first_what_went_wrong_is_the_cause);
    tcase_add_test(cases, a_rank_that_ends_well_without_leaving_is_named_and_others_give_the_code);
    tcase_add_test(cases, interrupt_is_forwarded_then_term_then_kill);
    tcase_add_test(cases, a_second_interrupt_kills_at_once);
    tcase_add_test(cases, a_program_that_ends_well_on_the_users_term_is_a_success);
    tcase_add_test(cases, other_signals_are_forwarded_and_change_nothing);
    tcase_add_test(cases, the_time_limit_ends_the_job_with_its_own_code);
    tcase_add_test(cases, output_that_nobody_reads_ends_the_job);
    suite_add_tcase(suite, cases);
    return suite;
}
