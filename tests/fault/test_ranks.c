/* tests/fault/test_ranks.c - ranks that die or never come: everybody else gets a named error in time, and the daemon
 * serves the next job.
 * SPDX-License-Identifier: Apache-2.0 */
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon_fixture.h"
#include "harness/check_main.h"

enum { NAMED_WITHIN_MS = 2000 };

static struct proc p;

/* meshctl run -n N -- rank ACT..., with variables for the ranks. */
static void run_ranks(const char *n, const char *const *environment, const char *const *act)
{
    const char *args[24] = { "run", "-n", n, "--", program_path("RANK_PROGRAM") };
    for (int i = 0; act[i] != NULL; i++) {
        args[5 + i] = act[i];
    }
    ctl_run(&p, &(struct ctl_line){ .address = meshd.address, .environment = environment, .args = args });
}

#define RANKS(n, ...) run_ranks((n), NULL, (const char *[]){ __VA_ARGS__, NULL })

/* What the rank printed about its failing call: "[2] rank 2: MESH_EPEER at 123: ..."; NULL: nothing. */
static const char *failure_of(int rank)
{
    char begin[48];
    (void)snprintf(begin, sizeof begin, "[%d] rank %d: MESH_E", rank, rank);
    return strstr(p.out.text, begin);
}

static void expect_failure(int rank, const char *status, const char *named)
{
    const char *line = failure_of(rank);
    ck_assert_msg(line != NULL, "rank %d printed no error:\n%.3000s%.3000s", rank, p.out.text, p.err.text);
    size_t len = strcspn(line, "\n");
    char text[1024];
    (void)snprintf(text, sizeof text, "%.*s", (int)len, line);
    ck_assert_msg(strstr(text, status) != NULL, "no %s in: %s", status, text);
    ck_assert_msg(strstr(text, named) != NULL, "no '%s' in: %s", named, text);
}

static long long time_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    ck_assert_msg(at != NULL, "no '%s' in:\n%.3000s", word, text);
    return atoll(at + strlen(word));
}

static void expect_next_job_works(void)
{
    RANKS("3", "reduce");
    ck_assert_int_eq(count_text(p.out.text, "sum 3\n"), 3);
    ctl_expect(&p, 0, NULL, "");
}

START_TEST(ranks_print_who_they_are)
{
    RANKS("4", "print");
    for (int i = 0; i < 4; i++) {
        char line[48];
        (void)snprintf(line, sizeof line, "[%d] rank %d of 4\n", i, i);
        ck_assert_ptr_nonnull(strstr(p.out.text, line));
    }
    ctl_expect(&p, 0, NULL, "");
}
END_TEST

START_TEST(a_rank_killed_during_an_all_reduce_is_named_by_all_others_in_time)
{
    RANKS("4", "die", "2");
    long long killed_ms = time_after(p.out.text, "killed at ");
    for (int i = 0; i < 4; i++) {
        if (i != 2) {
            expect_failure(i, "MESH_E", " was killed by signal 9 (Killed)");
            ck_assert_int_le(time_after(failure_of(i), " at ") - killed_ms, NAMED_WITHIN_MS);
        }
    }
    ck_assert_ptr_nonnull(strstr(p.err.text, "rank 2 (pid "));
    ck_assert_ptr_nonnull(strstr(p.err.text, "was killed by signal 9 (Killed) after "));
    ctl_expect(&p, 137, NULL, "ranks 0, 1, 3 ended because of it");
    expect_next_job_works();
}
END_TEST

START_TEST(a_killed_rank_leaves_no_files_behind)
{
    char folder[96], variable[128], pattern[128];
    glob_t found;
    temp_folder_make(folder, sizeof folder);
    (void)snprintf(variable, sizeof variable, "TMPDIR=%s", folder);
    run_ranks("2", (const char *[]){ variable, NULL }, (const char *[]){ "die", "1", NULL });
    ctl_expect(&p, 137, NULL, NULL);
    (void)snprintf(pattern, sizeof pattern, "%s/*", folder);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    temp_folder_remove(folder);
}
END_TEST

START_TEST(a_rank_that_exits_without_a_word_is_the_cause)
{
    RANKS("3", "exit", "1", "42");
    expect_failure(0, "MESH_E", "rank 1");
    expect_failure(2, "MESH_E", "rank 1");
    ck_assert_ptr_nonnull(strstr(p.err.text, "rank 1 (pid "));
    ctl_expect(&p, 42, NULL, "exited with code 42");
    expect_next_job_works();
}
END_TEST

START_TEST(a_rank_that_exits_well_without_leaving_is_named)
{
    RANKS("3", "exit", "1", "0");
    expect_failure(0, "MESH_E", " exited with code 0 without mesh_finalize()");
    expect_failure(2, "MESH_E", " exited with code 0 without mesh_finalize()");
    ck_assert_ptr_nonnull(strstr(p.err.text, "exited with code 0 after "));
    ctl_expect(&p, 16, NULL, " without leaving the job (mesh_finalize()); ranks 0, 2 ended because of it");
    expect_next_job_works();
}
END_TEST

START_TEST(a_call_in_which_a_rank_did_its_part_ends_well_without_it)
{
    RANKS("4", "last", "2", "0");
    ck_assert_msg(count_text(p.out.text, "sum 6\n") == 3, "%.3000s%.3000s", p.out.text, p.err.text);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

START_TEST(the_call_after_it_names_the_rank_that_is_gone)
{
    RANKS("4", "last", "2", "1");
    ck_assert_msg(count_text(p.out.text, "sum 6\n") == 3, "%.3000s%.3000s", p.out.text, p.err.text);
    long long gone_ms = time_after(p.out.text, "gone at ");
    for (int i = 0; i < 4; i++) {
        if (i != 2) {
            expect_failure(i, "MESH_EPEER", ": rank 2 (");
            ck_assert_int_le(time_after(failure_of(i), " at ") - gone_ms, NAMED_WITHIN_MS);
        }
    }
    ctl_expect(&p, 16, NULL, NULL);
}
END_TEST

START_TEST(a_stopped_rank_is_named_when_the_time_is_over)
{
    run_ranks("3", (const char *[]){ "RANK_TIMEOUT_MS=1500", NULL }, (const char *[]){ "stop", "1", NULL });
    expect_failure(0, "MESH_E", "rank 1");
    expect_failure(2, "MESH_E", "rank 1");
    ck_assert_ptr_nonnull(strstr(p.out.text, "MESH_ETIMEDOUT"));
    ck_assert_ptr_nonnull(strstr(p.err.text, " ended because of it"));
    ctl_expect(&p, 17, NULL, " reported: all_reduce sum f32[65536] (seq 21 of group world): no answer of rank 1 (");
    expect_next_job_works();
}
END_TEST

START_TEST(a_rank_that_never_comes_is_named_at_the_deadline)
{
    int64_t begin_ms = now_ms();
    run_ranks("3", (const char *[]){ "RANK_ABSENT=1", "RANK_JOIN_MS=4500", NULL }, (const char *[]){ "print", NULL });
    ck_assert_int_ge(now_ms() - begin_ms, 4500);
    ck_assert_ptr_nonnull(strstr(p.err.text, " waits for rank 1 to join, for 4 s now; 2 of 3 are here\n"));
    expect_failure(0, "MESH_ETIMEDOUT", "rank 1");
    expect_failure(2, "MESH_ETIMEDOUT", "rank 1");
    ctl_expect(&p, 17, NULL, NULL);
    expect_next_job_works();
}
END_TEST

START_TEST(a_rank_that_ends_before_it_joins_fails_the_others_at_once)
{
    static const struct {
        const char *how, *words;
        int code; /* of the job */
    } ends[] = {
        { "RANK_ABSENT_CODE=0", "exited with code 0", 16 },
        { "RANK_ABSENT_CODE=7", "exited with code 7", 7 },
        { "RANK_ABSENT_CODE=-9", "was killed by signal 9", 137 },
    };
    static const char *const when[][2] = { { "RANK_ABSENT_MS=400", "RANK_LATE_MS=0" },
                                           { "RANK_ABSENT_MS=0", "RANK_LATE_MS=400" } };
    const char *const *order = when[_i % 2];
    const char *environment[] = { "RANK_ABSENT=1", ends[_i / 2].how, order[0], order[1], "RANK_JOIN_MS=60000", NULL };
    int64_t begin_ms = now_ms();
    run_ranks("3", environment, (const char *[]){ "print", NULL });
    ck_assert_int_le(now_ms() - begin_ms, SOON_MS);
    expect_failure(0, "MESH_EPEER", "rank 1 of job ");
    expect_failure(2, "MESH_EPEER", ends[_i / 2].words);
    ck_assert_msg(strstr(p.err.text, "without having joined the job (mesh_init()); ranks 0, 2 ended because of it") !=
                      NULL,
                  "%.3000s", p.err.text);
    ck_assert_ptr_nonnull(strstr(p.err.text, "meshctl run: rank 1 (pid "));
    ctl_expect(&p, ends[_i / 2].code, NULL, ends[_i / 2].words);
    expect_next_job_works();
}
END_TEST

START_TEST(status_names_who_is_missing)
{
    const char *args[] = {
        "run", "-n", "3", "--job", "waiting", "--grace", "500ms", "--", program_path("RANK_PROGRAM"), "print", NULL
    };
    struct proc run;
    ctl_start(&run, &(struct ctl_line){ .address = meshd.address,
                                        .environment = (const char *[]){ "RANK_ABSENT=1", NULL },
                                        .args = args });
    json_int_t missing = -1;
    int64_t end_ms = now_ms() + SOON_MS;
    bool is_seen = false;
    while (!is_seen && now_ms() < end_ms) {
        CTL(&p, meshd.address, "status", "-o", "json");
        json_t *d = ctl_json(&p);
        json_t *job = json_array_get(json_object_get(d, "jobs"), 0);
        json_t *list = json_object_get(job, "missing");
        is_seen = json_array_size(list) == 1;
        missing = json_integer_value(json_array_get(list, 0));
        json_decref(d);
        proc_fini(&p);
    }
    ck_assert(is_seen);
    ck_assert_int_eq(missing, 1);
    proc_signal(&run, SIGTERM);
    ck_assert(proc_wait(&run, SOON_MS));
    ctl_expect(&run, 143, NULL, NULL);
    expect_next_job_works();
}
END_TEST

START_TEST(meshes_that_do_not_fit_get_a_sentence)
{
    RANKS("2", "badmesh");
    expect_failure(0, "MESH_E", "4");
    expect_failure(1, "MESH_E", "4");
    proc_fini(&p);
    RANKS("2", "unlike");
    expect_failure(0, "MESH_EMISMATCH", "shape");
    expect_failure(1, "MESH_EMISMATCH", "shape");
    proc_fini(&p);
    expect_next_job_works();
}
END_TEST

START_TEST(ranks_finish_without_a_daemon_that_was_stopped)
{
    struct proc run;
    const char *args[] = { "run", "-n", "2", "--", program_path("RANK_PROGRAM"), "wait", "1000", NULL };
    ctl_start(&run, &(struct ctl_line){ .address = meshd.address, .args = args });
    ck_assert(proc_wait_text(&run, "[0] ready", SOON_MS));
    ck_assert(proc_wait_text(&run, "[1] ready", SOON_MS));
    proc_signal(&meshd.proc, SIGTERM); /* it ends with 0 in time, ranks or not, and blames none of them */
    ck_assert(proc_wait(&meshd.proc, SOON_MS));
    ck_assert_msg(strstr(meshd.proc.err.text, " died") == NULL, "%.3000s", meshd.proc.err.text);
    test_daemon_stop(&meshd);
    ck_assert(proc_wait(&run, SOON_MS));
    ctl_expect(&run, 0, NULL, "is gone; the ranks go on without it");
    test_daemon_start(&meshd);
    expect_next_job_works();
}
END_TEST

START_TEST(a_world_asked_for_without_a_daemon_gets_a_sentence)
{
    static const char *const alone[] = { "MESH_ADDRESS",    "MESH_JOB",     "MESH_RANK",
                                         "MESH_WORLD_SIZE", "RANK_WORLD=4", NULL };
    proc_run(&p,
             &(struct proc_options){ .argv = (const char *[]){ program_path("RANK_PROGRAM"), "print", NULL },
                                     .environment = alone },
             SOON_MS);
    ck_assert_int_ne(proc_code(&p), 0);
    ck_assert_msg(strstr(p.out.text, "4") != NULL && strstr(p.out.text, "meshctl run") != NULL, "%s", p.out.text);
    ck_assert_int_eq(count_text(p.out.text, "\n"), 1);
    proc_fini(&p);
    proc_run(&p,
             &(struct proc_options){ .argv = (const char *[]){ program_path("RANK_PROGRAM"), "print", NULL },
                                     .environment = (const char *[]){ "MESH_ADDRESS", "MESH_JOB", "MESH_RANK=2",
                                                                      "MESH_WORLD_SIZE", NULL } },
             SOON_MS);
    ck_assert_int_ne(proc_code(&p), 0);
    ck_assert_msg(strstr(p.out.text, "this is to be rank 2, but no meshd") != NULL, "%s", p.out.text);
    proc_fini(&p);
}
END_TEST

START_TEST(a_daemon_named_but_gone_gets_a_sentence)
{
    static const char *const named[] = { "MESH_ADDRESS=unix:/no/such/meshd.sock",
                                         "MESH_JOB=j",
                                         "MESH_RANK=0",
                                         "MESH_WORLD_SIZE=2",
                                         "RANK_JOIN_MS=2000",
                                         NULL };
    proc_run(&p,
             &(struct proc_options){ .argv = (const char *[]){ program_path("RANK_PROGRAM"), "print", NULL },
                                     .environment = named },
             SOON_MS);
    ck_assert_int_ne(proc_code(&p), 0);
    ck_assert_msg(strstr(p.out.text, "/no/such/meshd.sock") != NULL, "%s", p.out.text);
    proc_fini(&p);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("fault_ranks");
    TCase *cases = tcase_create("fault_ranks");
    tcase_set_timeout(cases, 200);
    tcase_add_checked_fixture(cases, meshd_setup, meshd_teardown);
    tcase_add_test(cases, ranks_print_who_they_are);
    tcase_add_test(cases, a_rank_killed_during_an_all_reduce_is_named_by_all_others_in_time);
    tcase_add_test(cases, a_killed_rank_leaves_no_files_behind);
    tcase_add_test(cases, a_rank_that_exits_without_a_word_is_the_cause);
    tcase_add_test(cases, a_rank_that_exits_well_without_leaving_is_named);
    tcase_add_loop_test(cases, a_call_in_which_a_rank_did_its_part_ends_well_without_it, 0, 5);
    tcase_add_loop_test(cases, the_call_after_it_names_the_rank_that_is_gone, 0, 5);
    tcase_add_test(cases, a_stopped_rank_is_named_when_the_time_is_over);
    tcase_add_test(cases, a_rank_that_never_comes_is_named_at_the_deadline);
    tcase_add_loop_test(cases, a_rank_that_ends_before_it_joins_fails_the_others_at_once, 0, 6);
    tcase_add_test(cases, status_names_who_is_missing);
    tcase_add_test(cases, meshes_that_do_not_fit_get_a_sentence);
    tcase_add_test(cases, ranks_finish_without_a_daemon_that_was_stopped);
    tcase_add_test(cases, a_world_asked_for_without_a_daemon_gets_a_sentence);
    tcase_add_test(cases, a_daemon_named_but_gone_gets_a_sentence);
    suite_add_tcase(suite, cases);
    return suite;
}
