/* tests/e2e/test_diagnose.c - `meshctl diagnose` and `meshctl ranks` on jobs that are stuck in every way.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon_fixture.h"
#include "harness/check_main.h"

enum { N = 4, CULPRIT = 2 };

static struct proc p;
static const char *const at = meshd.address;

static void job_start(struct proc *run, const char *way)
{
    ctl_start(run, &(struct ctl_line){ .address = at,
                                       .args = (const char *[]){ "run", "-n", "4", "--job", "train7", "--",
                                                                 program_path("STUCK_PROGRAM"), way, NULL } });
    wait_until_printed(run, "] ready", N);
}

static void job_stop(struct proc *run)
{
    proc_signal(run, SIGTERM);
    ck_assert_msg(proc_wait(run, SOON_MS), "the job does not end: %s%s", run->out.text, run->err.text);
    proc_fini(run);
}

static pid_t pid_of_culprit(const struct proc *run)
{
    const char *line = strstr(run->out.text, "[2] ready pid ");
    ck_assert_ptr_nonnull(line);
    return (pid_t)atoi(line + strlen("[2] ready pid "));
}

/* Asks until the verdict has this text: a job takes a moment to get stuck.  p holds the answer. */
static void diagnose_until(const char *text, const char *after)
{
    int64_t end_ms = now_ms() + SOON_MS;
    for (;;) {
        CTL(&p, at, "diagnose", "train7", "--after", after);
        if (strstr(p.out.text, text) != NULL) {
            return;
        }
        ck_assert_msg(now_ms() < end_ms, "'%s' is not in\n%s%s", text, p.out.text, p.err.text);
        proc_fini(&p);
        (void)usleep(20000);
    }
}

static json_t *first_finding(json_t **ret_document)
{
    CTL(&p, at, "diagnose", "train7", "--after", "50ms", "-o", "json");
    *ret_document = ctl_json(&p);
    json_t *f = json_array_get(json_object_get(*ret_document, "findings"), 0);
    ck_assert_msg(f != NULL, "no finding: %s", p.out.text);
    return f;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    ck_assert_msg(text != NULL, "no text '%s'", key);
    return text;
}

static void expect_ranks(const json_t *object, const char *key, const char *wanted)
{
    char text[64] = "";
    const json_t *list = json_object_get(object, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "%s%lld", i > 0 ? " " : "",
                       (long long)json_integer_value(json_array_get(list, i)));
    }
    ck_assert_str_eq(text, wanted);
}

START_TEST(a_rank_that_sleeps_before_its_7th_call_is_named)
{
    struct proc run;
    job_start(&run, "sleep");
    diagnose_until("MISSING 2", "50ms");
    ck_assert_ptr_nonnull(strstr(p.out.text, "seq 7 all_reduce sum f32[1024]: entered 0 1 3   MISSING 2"));
    ck_assert_ptr_nonnull(strstr(p.out.text, "last finished seq 6, in application code for "));
    ctl_expect(&p, 6, "STALL", "");
    json_t *d, *f = first_finding(&d);
    ck_assert_str_eq(text_of(d, "verdict"), "unwell");
    ck_assert_str_eq(text_of(f, "kind"), "stall");
    ck_assert_int_eq(json_integer_value(json_object_get(f, "sequence")), 7);
    expect_ranks(f, "entered", "0 1 3");
    expect_ranks(f, "culprits", "2");
    json_decref(d);
    ctl_expect(&p, 6, NULL, "");
    CTL(&p, at, "diagnose", "train7", "--after", "1h");
    ctl_expect(&p, 0, "all is well", "");
    job_stop(&run);
}
END_TEST

START_TEST(ranks_shows_where_each_one_stands)
{
    struct proc run;
    job_start(&run, "sleep");
    diagnose_until("MISSING 2", "50ms");
    proc_fini(&p);
    CTL(&p, at, "ranks", "train7", "-o", "json");
    json_t *d = ctl_json(&p);
    for (size_t i = 0; i < N; i++) {
        const json_t *r = json_array_get(json_object_get(d, "ranks"), i);
        ck_assert_str_eq(text_of(r, "process"), "running");
        ck_assert_str_eq(text_of(r, "call"), "all_reduce sum f32[1024]");
        ck_assert_str_eq(text_of(r, "call_state"), i == CULPRIT ? "done" : "running");
        ck_assert_int_eq(json_integer_value(json_object_get(r, "sequence")), i == CULPRIT ? 6 : 7);
    }
    json_decref(d);
    ctl_expect(&p, 0, NULL, "");
    job_stop(&run);
}
END_TEST

START_TEST(a_stopped_rank_is_named_without_its_help)
{
    struct proc run;
    job_start(&run, "together");
    pid_t culprit = pid_of_culprit(&run);
    ck_assert_int_eq(kill(culprit, SIGSTOP), 0);
    diagnose_until("process is stopped", "50ms");
    ctl_expect(&p, 6, "rank 2 (", "");
    CTL(&p, at, "ranks", "train7");
    ctl_expect(&p, 0, "stopped", "");
    ck_assert_int_eq(kill(culprit, SIGCONT), 0);
    diagnose_until("all is well", "10s");
    ctl_expect(&p, 0, NULL, "");
    job_stop(&run);
}
END_TEST

/* Ranks without `meshctl run`, which would end the survivors. */
static void start_ranks(struct proc *rank, const char *way)
{
    char address[160], number[32], folder[128];
    (void)snprintf(address, sizeof address, "MESH_ADDRESS=%s", at);
    (void)snprintf(folder, sizeof folder, "MESH_RUN_DIR=%s",
                   meshd.folder); /* it goes with what killed ranks leave in it */
    for (int i = 0; i < N; i++) {
        (void)snprintf(number, sizeof number, "MESH_RANK=%d", i);
        proc_start(&rank[i],
                   &(struct proc_options){ .argv = (const char *[]){ program_path("STUCK_PROGRAM"), way, NULL },
                                           .environment = (const char *[]){ address, number, folder, "MESH_JOB=train7",
                                                                            "MESH_WORLD_SIZE=4", NULL } });
    }
    for (int i = 0; i < N; i++) {
        ck_assert_msg(proc_wait_text(&rank[i], "ready", SOON_MS), "rank %d: %s", i, rank[i].err.text);
    }
}

START_TEST(a_killed_rank_is_named_with_its_last_call)
{
    struct proc rank[N];
    start_ranks(rank, "mourn");
    proc_signal(&rank[CULPRIT], SIGKILL);
    diagnose_until("died; last finished seq", "10s");
    ck_assert_ptr_nonnull(strstr(p.out.text, "rank 2 ("));
    ctl_expect(&p, 6, "group world", "");
    for (int i = 0; i < N; i++) {
        proc_fini(&rank[i]);
    }
}
END_TEST

START_TEST(a_mismatch_is_shown_with_the_majority_first)
{
    struct proc run;
    job_start(&run, "differ");
    diagnose_until("MISMATCH", "10s");
    const char *most = strstr(p.out.text, "all_reduce sum f32[1024]: ranks 0 1 3");
    const char *other = strstr(p.out.text, "all_reduce sum f32[512]: rank 2");
    ck_assert_msg(most != NULL && other > most, "%s", p.out.text);
    ctl_expect(&p, 6, "seq 7", "");
    json_t *d, *f = first_finding(&d);
    ck_assert_str_eq(text_of(f, "kind"), "mismatch");
    expect_ranks(f, "culprits", "2");
    json_decref(d);
    ctl_expect(&p, 6, NULL, "");
    job_stop(&run);
    ck_assert(proc_wait_text(&meshd.proc, "different calls: all_reduce sum f32[1024]", 1000)); /* in the log */
}
END_TEST

START_TEST(the_cause_stands_before_the_knock_on)
{
    struct proc run;
    job_start(&run, "knock");
    diagnose_until("knock-on: ranks 0 1 wait at seq 1", "50ms");
    const char *cause = strstr(p.out.text, "MISSING 2"), *knock_on = strstr(p.out.text, "knock-on");
    ck_assert_msg(cause != NULL && cause < knock_on, "%s", p.out.text);
    ctl_expect(&p, 6, "(depends on 3)", "");
    job_stop(&run);
}
END_TEST

START_TEST(a_rank_that_waits_for_a_key_says_so)
{
    struct proc run;
    job_start(&run, "key");
    diagnose_until("waits at meshd for key \"go\" of the store", "50ms");
    ctl_expect(&p, 6, "MISSING 2", "");
    job_stop(&run);
}
END_TEST

START_TEST(a_receive_that_nobody_sends_to_is_named)
{
    struct proc run;
    job_start(&run, "recv");
    diagnose_until("recv f32[8] from group rank 2, tag 7", "50ms");
    ctl_expect(&p, 6, "MISSING 2", "");
    CTL(&p, at, "ranks", "train7");
    ctl_expect(&p, 0, "recv f32[8] from group rank 2, tag 7", "");
    job_stop(&run);
}
END_TEST

START_TEST(a_circle_of_receives_is_the_cause_and_who_waits_for_it_a_knock_on)
{
    static const char *const waiting[N] = { "1", "2", "3", "0" };
    struct proc run;
    job_start(&run, "circle");
    diagnose_until("knock-on: ", "50ms");
    ctl_expect(&p, 6, "CIRCLE in group world", "");
    json_t *d, *f = first_finding(&d);
    for (size_t i = 0; i < N; i++) {
        f = json_array_get(json_object_get(d, "findings"), i);
        ck_assert_str_eq(text_of(f, "kind"), i < 3 ? "circle" : "stall");
        ck_assert_str_eq(text_of(f, "role"), i < 3 ? "cause" : "knock-on");
        expect_ranks(f, "waiting", waiting[i]);
    }
    json_decref(d);
    proc_fini(&p);
    job_stop(&run);
}
END_TEST

/* Runs until all have given up. */
static void run_into_time_out(const char *way)
{
    const char *args[] = { "run", "-n", "4", "--job", "train7", "--grace", "500ms", "--", program_path("STUCK_PROGRAM"),
                           way,   NULL };
    ctl_run(&p, &(struct ctl_line){
                    .address = at, .environment = (const char *[]){ "STUCK_TIMEOUT_MS=1500", NULL }, .args = args });
}

static void expect_on_line(const char *begin, const char *part)
{
    const char *line = strstr(p.err.text, begin), *found = line != NULL ? strstr(line, part) : NULL;
    ck_assert_msg(found != NULL && found < strchr(line, '\n'), "no '%s' on the line '%s' of\n%s", part, begin,
                  p.err.text);
}

START_TEST(a_circle_that_times_out_is_said_to_be_one_by_all_in_it)
{
    run_into_time_out("circle");
    for (int i = 1; i < N; i++) {
        char begin[64];
        (void)snprintf(begin, sizeof begin, "[%d] the receive of f32[8] from rank ",
                       i); /* its own, or the first of them */
        expect_on_line(begin, "ranks 1-3 wait for each other in a circle");
    }
    ctl_expect(&p, 1, NULL, NULL);
}
END_TEST

START_TEST(a_call_that_times_out_for_another_one_names_the_cause)
{
    run_into_time_out("knock");
    expect_on_line("[0] all_reduce sum f32[1024] ", "began on rank 2]");
    expect_on_line("[1] all_reduce sum f32[1024] ", "began on rank 2]");
    ctl_expect(&p, 1, NULL, NULL);
}
END_TEST

START_TEST(a_job_that_works_is_well)
{
    struct proc run;
    job_start(&run, "together");
    CTL(&p, at, "diagnose", "train7", "--after", "10s");
    ctl_expect(&p, 0, "all is well", "");
    CTL(&p, at, "diagnose", "nobody");
    ctl_expect(&p, 3, "", "nobody");
    job_stop(&run);
}
END_TEST

/* Recorders beside the socket: how many; ret_path, when wanted, is that of the culprit. */
static int count_rings(char *ret_path, size_t cap)
{
    int n = 0;
    DIR *folder = opendir(meshd.folder);
    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        bool is_ring = strstr(e->d_name, ".ring") != NULL;
        n += is_ring;
        if (is_ring && ret_path != NULL && strstr(e->d_name, ".2.ring") != NULL) {
            (void)snprintf(ret_path, cap, "%s/%s", meshd.folder, e->d_name);
        }
    }
    (void)closedir(folder);
    return n;
}

START_TEST(a_recorder_cut_short_is_unknown_and_harms_nobody)
{
    struct proc run;
    char path[400] = "";
    job_start(&run, "sleep");
    diagnose_until("MISSING 2", "50ms");
    proc_fini(&p);
    ck_assert_int_eq(count_rings(path, sizeof path), N);
    ck_assert_int_eq(truncate(path, 5000), 0);
    diagnose_until("its calls are not known", "50ms");
    ctl_expect(&p, 6, "UNKNOWN", "");
    job_stop(&run);
}
END_TEST

START_TEST(recorders_go_with_their_job)
{
    struct proc run;
    job_start(&run, "together");
    ck_assert_int_eq(count_rings(NULL, 0), N);
    job_stop(&run);
    int64_t end_ms = now_ms() + SOON_MS;
    while (count_rings(NULL, 0) > 0 && now_ms() < end_ms) {
        (void)usleep(10000);
    }
    ck_assert_int_eq(count_rings(NULL, 0), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("diagnose");
    TCase *cases = tcase_create("diagnose");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, meshd_setup, meshd_teardown);
    tcase_add_test(cases, a_rank_that_sleeps_before_its_7th_call_is_named);
    tcase_add_test(cases, ranks_shows_where_each_one_stands);
    tcase_add_test(cases, a_stopped_rank_is_named_without_its_help);
    tcase_add_test(cases, a_killed_rank_is_named_with_its_last_call);
    tcase_add_test(cases, a_mismatch_is_shown_with_the_majority_first);
    tcase_add_test(cases, the_cause_stands_before_the_knock_on);
    tcase_add_test(cases, a_rank_that_waits_for_a_key_says_so);
    tcase_add_test(cases, a_receive_that_nobody_sends_to_is_named);
    tcase_add_test(cases, a_circle_of_receives_is_the_cause_and_who_waits_for_it_a_knock_on);
    tcase_add_test(cases, a_circle_that_times_out_is_said_to_be_one_by_all_in_it);
    tcase_add_test(cases, a_call_that_times_out_for_another_one_names_the_cause);
    tcase_add_test(cases, a_job_that_works_is_well);
    tcase_add_test(cases, a_recorder_cut_short_is_unknown_and_harms_nobody);
    tcase_add_test(cases, recorders_go_with_their_job);
    suite_add_tcase(suite, cases);
    return suite;
}
