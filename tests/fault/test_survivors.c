/* tests/fault/test_survivors.c - what is left of a job goes on: whatever one rank does, in whatever call the others
 * need it.
 *
 * Each row is a way to break; it runs over unix and tcp links, in a collective that is waited for, one that runs by
 * itself, and in messages.  survivor.c checks status, time, poison and the group of the survivors; here, that the
 * sentences name all.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon_fixture.h"
#include "harness/check_main.h"

enum { ODD = 1 };

static struct proc p;

static const char *const links[] = { "unix", "tcp" };
static const char *const calls[] = { "sync", "async", "recv", "irecv" };

static void start_survivors(const char *n, const char *act, const char *link, const char *call)
{
    char variable[32];
    (void)snprintf(variable, sizeof variable, "MESH_LINK=%s", link);
    ctl_start(&p,
              &(struct ctl_line){ .address = meshd.address,
                                  .environment = (const char *[]){ variable, NULL },
                                  .args = (const char *[]){ "run", "-n", n, "--grace", "20s", "--",
                                                            program_path("SURVIVOR_PROGRAM"), act, "1", call, NULL } });
}

/* How many ranks printed this. */
static void expect_lines(const char *text, int n)
{
    ck_assert_msg(count_text(p.out.text, text) == n, "'%s' stands there %d times, not %d:\n%.3000s%.2000s", text,
                  count_text(p.out.text, text), n, p.out.text, p.err.text);
}

static const struct {
    const char *act, *status;
    const char *collective, *message; /* what the sentences of both kinds of calls say */
    int n_hit, n_survivors, code;
    bool is_slow;
} breaks[] = {
    { "before", "MESH_EPEER", "was killed by signal 9 (Killed), which ", "was killed by signal 9 (Killed), ", 2, 2,
      137 },
    { "during", "MESH_EPEER", "was killed by signal 9 (Killed), which all_reduce sum f32[4194304] (seq ",
      "was killed by signal 9 (Killed), ", 2, 2, 137 },
    { "after", "MESH_EPEER", "was killed by signal 9 (Killed), which ", "was killed by signal 9 (Killed), ", 2, 2,
      137 },
    { "leave", "MESH_EPEER", "left, which all_reduce sum f32[65536] (seq 2 of group world) needs",
      "has left the job, before the receive of f32[65536]", 2, 2, 0 },
    { "never", "MESH_ETIMEDOUT", "all_reduce sum f32[65536] (seq 2 of group world): no answer of rank ",
      "the receive of f32[65536] from rank 1 (", 2, 2, 0, true },
    { "stop", "MESH_ETIMEDOUT", "all_reduce sum f32[65536] (seq 2 of group world): no answer of rank ",
      "the receive of f32[65536] from rank 1 (", 2, 2, 0, true },
    { "reset", "MESH_EPEER", "ended its stream during all_reduce sum f32[65536] (seq ",
      "has ended its stream, before the ", 3, 3, 0 },
};

enum { N_BREAKS = sizeof breaks / sizeof breaks[0], N_CALLS = sizeof calls / sizeof calls[0], N_WAYS = 2 * N_CALLS };

/* "rank 0: MESH_EPEER about rank 1 in mesh_all_reduce: rank 1 (host, pid 12) ..." */
static void expect_named(const char *status, const char *says, const char *host)
{
    int n = 0;
    char begin[64];
    (void)snprintf(begin, sizeof begin, ": %s about rank ", status);
    for (const char *at = p.out.text; (at = strstr(at, begin)) != NULL; at += strlen(begin)) {
        char line[512];
        (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        bool is_whole = strstr(line, says) != NULL && strstr(line, host) != NULL && strstr(line, "group world") != NULL;
        ck_assert_msg(is_whole, "no '%s', host or group in: %s; in all:\n%.3000s", says, line, p.out.text);
        n++;
    }
    ck_assert_int_gt(n, 0);
}

START_TEST(whatever_one_rank_does_the_others_hear_of_it_and_go_on)
{
    int row = _i / N_WAYS, way = _i % N_WAYS;
    if (breaks[row].is_slow && (way + way / 2) % 2 != 0) {
        return; /* each link and each call once is enough of what takes seconds */
    }
    bool is_message = way / 2 >= 2;
    start_survivors("3", breaks[row].act, links[way % 2], calls[way / 2]);
    ck_assert_msg(proc_wait(&p, 2 * SOON_MS), "%s over %s in %s does not end: %.3000s", breaks[row].act, links[way % 2],
                  calls[way / 2], p.out.text);
    char status[64];
    (void)snprintf(status, sizeof status, ": %s about rank ", breaks[row].status);
    expect_lines(status, breaks[row].n_hit);
    expect_named(breaks[row].status, is_message ? breaks[row].message : breaks[row].collective, ", pid ");
    expect_lines(": MESH_EPOISONED about rank ", breaks[row].n_hit);
    expect_lines("group world failed earlier: ", breaks[row].n_hit);
    expect_lines(" survivors, a message of ", breaks[row].n_survivors);
    ctl_expect(&p, breaks[row].code, NULL, NULL);
}
END_TEST

static const struct {
    const char *what, *one, *other;
} differences[] = {
    { "kind", "all_reduce", "all_gather" },
    { "dtype", "f32", "i32" },
    { "op", "sum", "max" },
    { "count", "[16]", "[17]" },
    { "root", "barrier", "broadcast f32[16] from root " },
    { "splits", "all_gather f32[16 split as #", "split as #" },
};

enum { N_DIFFERENCES = sizeof differences / sizeof differences[0] };

START_TEST(different_calls_are_a_mismatch_that_names_both_and_all_go_on)
{
    int row = _i / 2;
    start_survivors("3", "differ", links[_i % 2], differences[row].what);
    ck_assert(proc_wait(&p, SOON_MS));
    expect_lines(": MESH_EMISMATCH about rank ", 3);
    expect_named("MESH_EMISMATCH", differences[row].one, " calls ");
    expect_named("MESH_EMISMATCH", differences[row].other, " (seq 2");
    expect_lines("group world failed earlier: ", 3);
    expect_lines("3 survivors, a message of ", 3);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

/* Of ranks that wait for one another only some wait for the one that never came: meshd says which it is. */
START_TEST(a_rank_that_waits_itself_is_not_told_that_it_is_the_cause)
{
    start_survivors("4", "never", links[_i], "sync");
    ck_assert(proc_wait(&p, SOON_MS));
    for (int rank = 0; rank < 4; rank++) {
        char blames_itself[64];
        (void)snprintf(blames_itself, sizeof blames_itself, "rank %d: MESH_ETIMEDOUT about rank %d ", rank, rank);
        ck_assert_msg(rank == 1 || strstr(p.out.text, blames_itself) == NULL, "%.3000s", p.out.text);
    }
    ck_assert_msg(strstr(p.out.text, ": MESH_ETIMEDOUT about rank 1 ") != NULL, "%.3000s", p.out.text);
    expect_lines("3 survivors, a message of ", 3);
}
END_TEST

START_TEST(two_groups_in_another_order_are_a_time_out_that_names_who_waits_where)
{
    start_survivors("3", "order", links[_i], "sync");
    ck_assert(proc_wait(&p, SOON_MS));
    expect_lines(": MESH_ETIMEDOUT about rank ", 3);
    expect_lines("all_reduce sum f32[65536] (seq 1 of group ", 3);
    expect_lines("3 survivors, a message of ", 3);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

START_TEST(a_rank_that_was_stopped_goes_on_and_nobody_minds)
{
    start_survivors("4", "pause", links[_i % 2], calls[_i / 2]);
    ck_assert(proc_wait(&p, SOON_MS));
    expect_lines("all steps done", 4);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

START_TEST(collectives_and_messages_go_on_when_the_daemon_is_killed)
{
    start_survivors("3", "daemon", links[_i % 2], calls[_i / 2]);
    ck_assert(proc_wait_text(&p, "ready", SOON_MS));
    proc_signal(&meshd.proc, SIGKILL);
    ck_assert(proc_wait(&p, SOON_MS));
    expect_lines("3 survivors, a message of", 3);
    expect_lines("MESH_EDAEMON", 3);
    ctl_expect(&p, 0, NULL, NULL);
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
    tcase_add_checked_fixture(cases, meshd_setup, meshd_teardown);
    tcase_add_loop_test(cases, whatever_one_rank_does_the_others_hear_of_it_and_go_on, 0, N_BREAKS * N_WAYS);
    tcase_add_loop_test(cases, different_calls_are_a_mismatch_that_names_both_and_all_go_on, 0, 2 * N_DIFFERENCES);
    tcase_add_loop_test(cases, a_rank_that_waits_itself_is_not_told_that_it_is_the_cause, 0, 2);
    tcase_add_loop_test(cases, two_groups_in_another_order_are_a_time_out_that_names_who_waits_where, 0, 2);
    tcase_add_loop_test(cases, a_rank_that_was_stopped_goes_on_and_nobody_minds, 0, N_WAYS);
    tcase_add_loop_test(cases, collectives_and_messages_go_on_when_the_daemon_is_killed, 0, N_WAYS);
    suite_add_tcase(suite, cases);
    return suite;
}
