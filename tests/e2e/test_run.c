/* tests/e2e/test_run.c - meshctl run with shell scripts as ranks: environment, output, signals, exit codes, no orphans.
 * SPDX-License-Identifier: Apache-2.0 */
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "harness/check_main.h"

enum { SOON_MS = 30000 };

static struct proc p;

#define RUN(script, ...) CTL(&p, NULL, "run", __VA_ARGS__, "--", "sh", "-c", (script))

static void start(const char *script, const char *const *options)
{
    const char *args[32] = { "run" };
    int n = 1;
    for (int i = 0; options[i] != NULL; i++) {
        args[n++] = options[i];
    }
    args[n++] = "--";
    args[n++] = "sh";
    args[n++] = "-c";
    args[n] = script;
    ctl_start(&p, &(struct ctl_line){ .args = args });
}

#define START(script, ...) start((script), (const char *[]){ __VA_ARGS__, NULL })

static void wait_for_end(void)
{
    ck_assert_msg(proc_wait(&p, SOON_MS), "meshctl run does not end; it said:\n%.3000s%.3000s", p.out.text, p.err.text);
}

static int wait_for_texts_of(struct proc *proc, const char *text, int n)
{
    int64_t end_ms = now_ms() + SOON_MS;
    while (count_text(proc->out.text, text) < n && now_ms() < end_ms && !proc->has_ended) {
        (void)proc_wait(proc, 10);
    }
    return count_text(proc->out.text, text);
}

static int wait_for_texts(const char *text, int n)
{
    return wait_for_texts_of(&p, text, n);
}

/* The number after the n-th "pid " of the output. */
static pid_t pid_in_output(int n)
{
    const char *at = p.out.text;
    for (int i = 0; i <= n; i++) {
        at = strstr(i == 0 ? at : at + 1, "pid ");
        ck_assert_ptr_nonnull(at);
    }
    return (pid_t)atoi(at + 4);
}

static void expect_gone(pid_t pid)
{
    int64_t end_ms = now_ms() + SOON_MS;
    while (process_exists(pid) && now_ms() < end_ms) {
        (void)usleep(5000);
    }
    ck_assert_msg(!process_exists(pid), "process %d is still there", (int)pid);
}

START_TEST(ranks_get_both_environments)
{
    RUN("echo $MESH_RANK/$MESH_WORLD_SIZE $MESH_LOCAL_RANK/$MESH_LOCAL_WORLD_SIZE $MESH_NODE_RANK/$MESH_NNODES "
        "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR $OMP_NUM_THREADS "
        "$MESH_TAGGED $MINE=$MESH_JOB",
        "-n", "3", "--job", "envjob", "--env", "MINE=my own", "--env", "OMP_NUM_THREADS=7");
    ck_assert_int_eq(count_text(p.out.text, "\n"), 3);
    ck_assert_ptr_nonnull(strstr(p.out.text, "[0] 0/3 0/3 0/1 0/3 0/3 0 127.0.0.1 7 1 my own=envjob\n"));
    ck_assert_ptr_nonnull(strstr(p.out.text, "[2] 2/3 2/3 0/1 2/3 2/3 0 127.0.0.1 7 1 my own=envjob\n"));
    ctl_expect(&p, 0, NULL, "started a private one for this job");
}
END_TEST

START_TEST(output_is_merged_by_line_and_kept_apart)
{
    RUN("for i in 1 2 3 4 5; do printf 'a%s' $RANK; printf 'b%s\\n' $i; echo \"e$RANK\" >&2; done; printf end", "-n",
        "2");
    ck_assert_int_eq(count_text(p.out.text, "\n"), 12);
    ck_assert_int_eq(count_text(p.out.text, "[0] a0b"), 5);
    ck_assert_int_eq(count_text(p.out.text, "[1] a1b"), 5);
    ck_assert_int_eq(count_text(p.out.text, "] end\n"), 2);
    ck_assert_int_eq(count_text(p.err.text, "[0] e0\n"), 5);
    ck_assert_int_eq(count_text(p.err.text, "[1] e1\n"), 5);
    ctl_expect(&p, 0, NULL, NULL);
    RUN("echo plain", "-n", "2", "--tag", "none");
    ctl_expect(&p, 0, "plain\nplain\n", NULL);
}
END_TEST

START_TEST(an_unfinished_line_is_shown_a_moment_later)
{
    START("printf 'loading...'; sleep 60", "-n", "1");
    ck_assert(proc_wait_text(&p, "[0] loading...", SOON_MS));
    proc_signal(&p, SIGTERM);
    wait_for_end();
    ctl_expect(&p, 143, NULL, "stopped by signal 15");
}
END_TEST

START_TEST(the_exit_code_is_that_of_the_cause)
{
    RUN("[ $RANK = 1 ] && exit 7; sleep 60", "-n", "3", "--grace", "2s");
    ctl_expect(&p, 7, NULL, "exited with code 7");
    RUN("[ $RANK = 2 ] && kill -9 $$; sleep 60", "-n", "4", "--grace", "2s");
    ck_assert_ptr_nonnull(strstr(p.err.text, "rank 2 (pid "));
    ck_assert_ptr_nonnull(strstr(p.err.text, "was killed by signal 9 (Killed) after "));
    ctl_expect(&p, 137, NULL, "; ranks 0, 1, 3 ended because of it");
}
END_TEST

START_TEST(a_rank_that_ends_well_early_is_no_failure)
{
    RUN("[ $RANK = 0 ] && exit 0; sleep 0.3; echo done", "-n", "3");
    ck_assert_int_eq(count_text(p.out.text, "done\n"), 2);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

START_TEST(ranks_that_ignore_term_are_killed_after_the_grace)
{
    RUN("[ $RANK = 0 ] && exit 3; trap '' TERM; while :; do sleep 0.1; done", "-n", "2", "--grace", "300ms");
    ctl_expect(&p, 3, NULL, "rank 0 (pid ");
}
END_TEST

START_TEST(a_time_limit_is_124)
{
    RUN("sleep 60", "-n", "2", "--timeout", "300ms");
    ctl_expect(&p, 124, NULL, "the job ran longer than --timeout; ranks 0, 1 ended because of it");
}
END_TEST

START_TEST(signals_reach_every_rank)
{
    static const struct {
        int number;
        const char *text;
    } signals[] = {
        { SIGUSR1, "got usr1" }, { SIGUSR2, "got usr2" }, { SIGHUP, "got hup" }, { SIGWINCH, "got winch" }
    };
    START("trap 'echo got usr1' USR1; trap 'echo got usr2' USR2; trap 'echo got hup' HUP; trap 'echo got winch' WINCH; "
          "trap 'echo got term; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
          "-n", "2");
    ck_assert_int_eq(wait_for_texts("ready\n", 2), 2);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        proc_signal(&p, signals[i].number);
        ck_assert_int_eq(wait_for_texts(signals[i].text, 2), 2);
    }
    proc_signal(&p, SIGTERM);
    wait_for_end();
    ck_assert_int_eq(count_text(p.out.text, "got term\n"), 2);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

/* A shell whose child was stopped between vfork() and exec() is in 'D' until that goes on. */
static void wait_until_stopped(pid_t pid)
{
    int64_t end_ms = now_ms() + SOON_MS;
    char state = process_state(pid);
    while (state != 'T' && state != 'D' && now_ms() < end_ms) {
        (void)usleep(5000);
        state = process_state(pid);
    }
    ck_assert_msg(state == 'T' || state == 'D', "process %d is in state %c", (int)pid, state);
}

START_TEST(stop_and_continue_reach_every_rank)
{
    START("echo pid $$; echo ready; sleep 0.2; while [ ! -e \"$GO\" ]; do sleep 0.05; done; echo went on", "-n", "2",
          "--env", "GO=/");
    ck_assert_int_eq(wait_for_texts("ready\n", 2), 2);
    pid_t a = pid_in_output(0), b = pid_in_output(1);
    proc_signal(&p, SIGTSTP);
    wait_until_stopped(p.pid);
    wait_until_stopped(a);
    wait_until_stopped(b);
    proc_signal(&p, SIGCONT);
    wait_for_end();
    ck_assert_int_eq(count_text(p.out.text, "went on\n"), 2);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

START_TEST(one_interrupt_asks_and_a_second_one_kills)
{
    START("trap 'echo asked' INT; echo ready; while :; do sleep 0.05; done", "-n", "2");
    ck_assert_int_eq(wait_for_texts("ready\n", 2), 2);
    proc_signal(&p, SIGINT);
    ck_assert_int_eq(wait_for_texts("asked\n", 2), 2);
    proc_signal(&p, SIGINT);
    wait_for_end();
    ctl_expect(&p, 130, NULL, "stopped by signal 2 (Interrupt)");
}
END_TEST

START_TEST(nothing_is_left_when_a_rank_leaves_children_behind)
{
    RUN("sleep 61 & echo pid $!; sleep 61 >/dev/null 2>&1 & echo pid $!; exit 0", "-n", "1");
    pid_t a = pid_in_output(0), b = pid_in_output(1);
    ctl_expect(&p, 0, NULL, NULL);
    expect_gone(a);
    expect_gone(b);
}
END_TEST

static void expect_empty(const char *folder)
{
    char pattern[128];
    glob_t found;
    (void)snprintf(pattern, sizeof pattern, "%s/*", folder);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
}

START_TEST(nothing_is_left_when_meshctl_itself_is_killed)
{
    char folder[96], variable[128];
    temp_folder_make(folder, sizeof folder);
    (void)snprintf(variable, sizeof variable, "TMPDIR=%s", folder);
    ctl_start(&p, &(struct ctl_line){ .environment = (const char *[]){ variable, NULL },
                                      .args = (const char *[]){ "run", "-n", "2", "-v", "--", "sh", "-c",
                                                                "echo pid $$; exec sleep 62", NULL } });
    ck_assert_int_eq(wait_for_texts("pid ", 2), 2);
    pid_t a = pid_in_output(0), b = pid_in_output(1);
    const char *daemon = strstr(p.err.text, "(pid ");
    ck_assert_ptr_nonnull(daemon);
    pid_t c = (pid_t)atoi(daemon + 5);
    ck_assert(process_exists(c));
    proc_signal(&p, SIGKILL);
    wait_for_end();
    expect_gone(a);
    expect_gone(b);
    expect_gone(c);
    proc_fini(&p);
    expect_empty(folder); /* the private daemon has removed what its owner had no time for */
    temp_folder_remove(folder);
}
END_TEST

START_TEST(a_private_daemon_is_found_by_who_looks)
{
    char folder[96], variable[128];
    temp_folder_make(folder, sizeof folder);
    (void)snprintf(variable, sizeof variable, "TMPDIR=%s", folder);
    const char *environment[] = { variable, NULL };
    const char *run_args[] = {
        "run", "-n", "2", "--job", "mine", "--", "sh", "-c", "echo pid $$; exec sleep 62", NULL
    };
    struct proc look, second;
    ctl_start(&p, &(struct ctl_line){ .environment = environment, .args = run_args });
    ck_assert_int_eq(wait_for_texts("pid ", 2), 2);
    ctl_run(&look, &(struct ctl_line){ .environment = environment, .args = (const char *[]){ "status", NULL } });
    ctl_expect(&look, 0, "mine", "");
    ctl_run(&look, &(struct ctl_line){ .environment = environment, .args = (const char *[]){ "ranks", NULL } });
    ctl_expect(&look, 0, "", "no rank has come yet");
    ctl_start(&second, &(struct ctl_line){ .environment = environment, .args = run_args });
    ck_assert_int_eq(wait_for_texts_of(&second, "pid ", 2), 2);
    ctl_run(&look, &(struct ctl_line){ .environment = environment, .args = (const char *[]){ "status", NULL } });
    ctl_expect(&look, 4, "", "several jobs have a private meshd: name one with --address: unix:");
    proc_signal(&second, SIGTERM);
    ck_assert(proc_wait(&second, CTL_TIMEOUT_MS));
    proc_fini(&second);
    proc_signal(&p, SIGTERM);
    wait_for_end();
    proc_fini(&p);
    expect_empty(folder);
    temp_folder_remove(folder);
}
END_TEST

START_TEST(the_private_daemon_and_its_folder_go_with_the_job)
{
    char folder[96], pattern[128], variable[128];
    temp_folder_make(folder, sizeof folder);
    (void)snprintf(variable, sizeof variable, "TMPDIR=%s", folder);
    ctl_run(&p, &(struct ctl_line){
                    .environment = (const char *[]){ variable, NULL },
                    .args = (const char *[]){ "run", "-n", "1", "--", "sh", "-c", "echo $MESH_ADDRESS", NULL } });
    (void)snprintf(pattern, sizeof pattern, "[0] unix:%s/meshd-run-", folder);
    const char *said = strstr(p.err.text, "(pid ");
    ck_assert_ptr_nonnull(said);
    pid_t pid = (pid_t)atoi(said + 5);
    ctl_expect(&p, 0, pattern, NULL);
    ck_assert(!process_exists(pid));
    expect_empty(folder);
    temp_folder_remove(folder);
}
END_TEST

/* Only before it listens to signals may one end it at once: then it has made nothing yet. */
START_TEST(a_signal_at_any_moment_leaves_nothing_behind)
{
    char folder[96], pattern[128], variable[128];
    glob_t found;
    temp_folder_make(folder, sizeof folder);
    (void)snprintf(variable, sizeof variable, "TMPDIR=%s", folder);
    (void)snprintf(pattern, sizeof pattern, "%s/*", folder);
    ctl_start(&p, &(struct ctl_line){ .environment = (const char *[]){ variable, NULL },
                                      .args = (const char *[]){ "run", "-n", "2", "--", "sleep", "0.1", NULL } });
    (void)usleep((useconds_t)_i * 10000);
    proc_signal(&p, _i % 2 == 0 ? SIGTERM : SIGQUIT);
    wait_for_end();
    ck_assert_msg(glob(pattern, 0, NULL, &found) == GLOB_NOMATCH, "%s is left: %s", found.gl_pathv[0], p.err.text);
    proc_fini(&p);
    temp_folder_remove(folder);
}
END_TEST

START_TEST(ranks_go_on_without_a_daemon_that_died)
{
    START("echo ready; sleep 1; echo done", "-n", "2");
    ck_assert_int_eq(wait_for_texts("ready\n", 2), 2);
    const char *said = strstr(p.err.text, "(pid ");
    ck_assert_ptr_nonnull(said);
    ck_assert_int_eq(kill((pid_t)atoi(said + 5), SIGKILL), 0);
    wait_for_end();
    ck_assert_int_eq(count_text(p.out.text, "done\n"), 2);
    ctl_expect(&p, 0, NULL, "is gone; the ranks go on without it");
}
END_TEST

START_TEST(without_autostart_no_daemon_is_started)
{
    CTL(&p, NULL, "run", "--no-autostart", "--", "true");
    ctl_expect(&p, 4, "", "start one with 'meshd'");
}
END_TEST

START_TEST(output_that_nobody_reads_ends_the_job)
{
    const char *meshctl = program_path("MESHCTL_PROGRAM");
    char line[512];
    (void)snprintf(line, sizeof line,
                   "%s run -n 2 --grace 1s -- sh -c 'while :; do echo y; sleep 0.01; done' | head -n 1", meshctl);
    proc_run(&p,
             &(struct proc_options){ .argv = (const char *[]){ "bash", "-c", line, NULL },
                                     .environment = (const char *[]){ "MESH_ADDRESS", "XDG_RUNTIME_DIR", NULL } },
             SOON_MS);
    ctl_expect(&p, 0, "y\n", "nobody reads the output any more");
}
END_TEST

/* Runs `meshctl COMMAND` by bash, which is where pipes and closed descriptors come from. */
static void run_by_shell(const char *command)
{
    char line[512];
    (void)snprintf(line, sizeof line, "set -o pipefail; %s %s", program_path("MESHCTL_PROGRAM"), command);
    proc_run(&p,
             &(struct proc_options){ .argv = (const char *[]){ "bash", "-c", line, NULL },
                                     .environment = (const char *[]){ "MESH_ADDRESS", "XDG_RUNTIME_DIR", NULL } },
             SOON_MS);
}

START_TEST(lines_stay_whole_while_the_reader_is_slow)
{
    run_by_shell("run -n 3 -- seq 100001 160000 | (sleep 0.5; cat)");
    ck_assert_int_eq(count_text(p.out.text, "\n"), 3 * 60000);
    ck_assert_int_eq(count_text(p.out.text, "] 1"), 3 * 60000);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

START_TEST(closed_standard_descriptors_are_no_trouble)
{
    run_by_shell("run -n 2 -- true <&-");
    ctl_expect(&p, 0, "", NULL);
    run_by_shell("run -n 2 -- true <&- >&- 2>&-");
    ctl_expect(&p, 0, "", "");
    run_by_shell("run -n 2 -- echo lost >&-");
    ctl_expect(&p, 141, "", "nobody reads the output any more");
}
END_TEST

START_TEST(many_ranks_and_much_output_come_through_whole)
{
    RUN("i=0; while [ $i -lt 500 ]; do echo line $i of rank $RANK; i=$((i+1)); done", "-n", "12");
    ck_assert_int_eq(count_text(p.out.text, "\n"), 12 * 500);
    ck_assert_int_eq(count_text(p.out.text, "[11] line 499 of rank 11\n"), 1);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("run");
    TCase *cases = tcase_create("run");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, ranks_get_both_environments);
    tcase_add_test(cases, output_is_merged_by_line_and_kept_apart);
    tcase_add_test(cases, an_unfinished_line_is_shown_a_moment_later);
    tcase_add_test(cases, the_exit_code_is_that_of_the_cause);
    tcase_add_test(cases, a_rank_that_ends_well_early_is_no_failure);
    tcase_add_test(cases, ranks_that_ignore_term_are_killed_after_the_grace);
    tcase_add_test(cases, a_time_limit_is_124);
    tcase_add_test(cases, signals_reach_every_rank);
    tcase_add_test(cases, stop_and_continue_reach_every_rank);
    tcase_add_test(cases, one_interrupt_asks_and_a_second_one_kills);
    tcase_add_test(cases, nothing_is_left_when_a_rank_leaves_children_behind);
    tcase_add_test(cases, nothing_is_left_when_meshctl_itself_is_killed);
    tcase_add_test(cases, a_private_daemon_is_found_by_who_looks);
    tcase_add_test(cases, the_private_daemon_and_its_folder_go_with_the_job);
    tcase_add_loop_test(cases, a_signal_at_any_moment_leaves_nothing_behind, 0, 20);
    tcase_add_test(cases, ranks_go_on_without_a_daemon_that_died);
    tcase_add_test(cases, without_autostart_no_daemon_is_started);
    tcase_add_test(cases, output_that_nobody_reads_ends_the_job);
    tcase_add_test(cases, lines_stay_whole_while_the_reader_is_slow);
    tcase_add_test(cases, closed_standard_descriptors_are_no_trouble);
    tcase_add_test(cases, many_ranks_and_much_output_come_through_whole);
    suite_add_tcase(suite, cases);
    return suite;
}
