/* tests/fault/test_survivors.c - what is left of a job goes on: after a pause, without its daemon, in a group of the survivors.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "ctl.h"
#include "harness/check_main.h"

enum { SOON_MS = 30000 };

static struct test_daemon meshd;
static struct proc p;

static void setup(void)
{
    test_daemon_start(&meshd);
}

static void teardown(void)
{
    test_daemon_stop(&meshd);
}

static void run_links(const char *link, const char *n, const char *act, const char *rank)
{
    char variable[32];
    (void)snprintf(variable, sizeof variable, "MESH_LINK=%s", link);
    ctl_run(&p, &(struct ctl_line){ .address = meshd.address,
                                    .environment = (const char *[]){ variable, NULL },
                                    .args = (const char *[]){ "run", "-n", n, "--grace", "20s", "--",
                                                              program_path("SURVIVOR_PROGRAM"), act, rank, NULL } });
}

/* How many ranks printed this. */
static void expect_lines(const char *text, int n)
{
    ck_assert_msg(count_text(p.out.text, text) == n, "'%s' stands there %d times, not %d:\n%.3000s%.2000s", text,
                  count_text(p.out.text, text), n, p.out.text, p.err.text);
}

static const char *const links[] = { "unix", "tcp" };

START_TEST(a_rank_that_was_stopped_goes_on_and_nobody_minds)
{
    run_links(links[_i], "4", "pause", "2");
    expect_lines("all steps done", 4);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

START_TEST(a_rank_that_never_calls_is_named_by_all_others)
{
    run_links(links[_i], "3", "idle", "1");
    expect_lines("MESH_ETIMEDOUT", 2);
    expect_lines("all_reduce sum f32[65536] (seq 2 of group world): no answer of rank", 2);
    ck_assert_ptr_nonnull(strstr(p.out.text, "no answer of rank 1 within"));
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

START_TEST(a_rank_that_leaves_early_is_named_by_all_others)
{
    run_links(links[_i], "3", "leave", "1");
    expect_lines("MESH_EPEER", 2);
    ck_assert_ptr_nonnull(strstr(p.out.text, "rank 1"));
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

START_TEST(survivors_go_on_in_a_group_of_their_own)
{
    run_links(links[_i], "4", "die", "1");
    expect_lines("MESH_EPEER", 3);
    expect_lines("the world is poisoned", 3);
    expect_lines("3 survivors, a message of", 3);
    ctl_expect(&p, 137, NULL, NULL);
}
END_TEST

START_TEST(collectives_go_on_when_the_daemon_is_killed)
{
    struct proc run;
    char variable[32];
    (void)snprintf(variable, sizeof variable, "MESH_LINK=%s", links[_i]);
    const char *args[] = { "run", "-n", "3", "--", program_path("SURVIVOR_PROGRAM"), "daemon", "0", NULL };
    ctl_start(&run, &(struct ctl_line){
                        .address = meshd.address, .environment = (const char *[]){ variable, NULL }, .args = args });
    ck_assert(proc_wait_text(&run, "ready", SOON_MS));
    proc_signal(&meshd.proc, SIGKILL);
    ck_assert(proc_wait(&run, SOON_MS));
    ck_assert_msg(count_text(run.out.text, "3 survivors, a message of") == 3, "%.3000s%.3000s", run.out.text,
                  run.err.text);
    ck_assert_int_eq(count_text(run.out.text, "MESH_EDAEMON"), 3);
    ctl_expect(&run, 0, NULL, NULL);
    ck_assert(proc_wait(&meshd.proc, SOON_MS));
    proc_fini(&meshd.proc);
    temp_folder_remove(meshd.folder);
    test_daemon_start(&meshd); /* for the teardown, which wants to see one end well */
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("fault_survivors");
    TCase *cases = tcase_create("fault_survivors");
    tcase_set_timeout(cases, 200);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, a_rank_that_was_stopped_goes_on_and_nobody_minds, 0, 2);
    tcase_add_loop_test(cases, a_rank_that_never_calls_is_named_by_all_others, 0, 2);
    tcase_add_loop_test(cases, a_rank_that_leaves_early_is_named_by_all_others, 0, 2);
    tcase_add_loop_test(cases, survivors_go_on_in_a_group_of_their_own, 0, 2);
    tcase_add_loop_test(cases, collectives_go_on_when_the_daemon_is_killed, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
