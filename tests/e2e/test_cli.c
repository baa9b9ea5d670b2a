/* tests/e2e/test_cli.c - meshctl's command line as a user types it: what is wrong gets one sentence and the right exit
 * code.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl.h"
#include "harness/check_main.h"

static struct proc p;

static void one_line_on_stderr(const char *const *args, int code, const char *sentence)
{
    ctl_run(&p, &(struct ctl_line){ .args = args });
    ck_assert_msg(count_text(p.err.text, "\n") == 1, "not one line:\n%s", p.err.text);
    ctl_expect(&p, code, "", sentence);
}

#define WRONG(code, sentence, ...) one_line_on_stderr((const char *[]){ __VA_ARGS__, NULL }, (code), (sentence))

START_TEST(unknown_words_name_the_near_ones)
{
    WRONG(2, "unknown command 'stauts'; did you mean 'status'?", "stauts");
    WRONG(2, "unknown command 'mesh shwo'; did you mean 'mesh show'?", "mesh", "shwo");
    WRONG(2, "'kv' needs a verb", "kv");
    WRONG(2, "unknown option '--adress'; did you mean '--address'?", "--adress", "x", "status");
    WRONG(2, "-o is 'yaml': it is one of table|wide|json|jsonl", "status", "-o", "yaml");
    WRONG(2, "no command given", "-v");
    WRONG(2, "unknown command 'stat'; did you mean 'status'?", "stat");
    WRONG(2, "meshctl kv get JOB KEY", "kv", "get");
    WRONG(2, "'b' is one word too many", "ranks", "a", "b");
}
END_TEST

START_TEST(run_refuses_what_makes_no_sense)
{
    WRONG(2, "-n is 0", "run", "-n", "0", "--", "true");
    WRONG(2, "-n is -3", "run", "-n", "-3", "--", "true");
    WRONG(2, "-n is 'four'", "run", "-n", "four", "--", "true");
    WRONG(2, "no program to run", "run", "-n", "4");
    WRONG(2, "no program to run", "run", "-n", "4", "--");
    WRONG(2, "'true' stands before '--'", "run", "-n", "4", "true");
    WRONG(2, "--env is 'NAME'", "run", "--env", "NAME", "--", "true");
    WRONG(2, "--env is 'MESH_RANK=7': that variable is set by 'meshctl run' itself", "run", "-e", "MESH_RANK=7", "--",
          "true");
    WRONG(2, "the job name \"a b\" has a character other than", "run", "--job", "a b", "--", "true");
}
END_TEST

START_TEST(a_program_that_is_not_there_is_127)
{
    WRONG(127, "'no-such-program' was not found in PATH", "run", "-n", "2", "--", "no-such-program");
    WRONG(127, "'./no/such/program' was not found", "run", "--", "./no/such/program");
}
END_TEST

START_TEST(a_program_that_cannot_be_executed_is_126)
{
    char folder[96], path[160];
    temp_folder_make(folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/program", folder);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    (void)fputs("no program\n", file);
    (void)fclose(file);
    WRONG(126, "is not executable: try 'chmod +x", "run", "--", path);
    WRONG(126, "is a folder", "run", "--", folder);
    /* executable by its mode, but nothing the kernel can run: found out by exec itself, after a daemon was started */
    ck_assert_int_eq(chmod(path, 0700), 0);
    CTL(&p, NULL, "run", "-n", "2", "--", path);
    ctl_expect(&p, 126, "", "cannot be executed");
    temp_folder_remove(folder);
}
END_TEST

START_TEST(a_daemon_that_does_not_answer_is_4)
{
    static const char *const lines[][6] = {
        { "status" },           { "ping" }, { "ranks", "j" }, { "mesh", "show", "j" }, { "kv", "get", "j", "k" },
        { "run", "--", "true" }
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ctl_run(&p, &(struct ctl_line){ .address = "unix:/no/such/meshd.sock", .args = lines[i] });
        ck_assert_int_eq(count_text(p.err.text, "\n"), 1);
        ck_assert_ptr_nonnull(strstr(p.err.text, "start one with 'meshd'"));
        ctl_expect(&p, 4, "", "unix:/no/such/meshd.sock");
    }
    WRONG(2, "--address", "ping", "--address", "foo");
}
END_TEST

START_TEST(a_daemon_at_its_usual_place_is_found_without_being_named)
{
    struct proc meshd;
    char folder[96], variable[128], address[160];
    temp_folder_make(folder, sizeof folder);
    (void)snprintf(variable, sizeof variable, "XDG_RUNTIME_DIR=%s", folder);
    (void)snprintf(address, sizeof address, "unix:%s/meshd/meshd.sock", folder);
    proc_start(&meshd, &(struct proc_options){
                           .argv = (const char *[]){ program_path("MESHD_PROGRAM"), "--ready-fd", "1", NULL },
                           .environment = (const char *[]){ variable, NULL } });
    ck_assert_msg(proc_wait_text(&meshd, "meshd.sock\n", 20000), "%.3000s", meshd.err.text);
    ctl_run(&p, &(struct ctl_line){ .environment = (const char *[]){ variable, NULL },
                                    .args = (const char *[]){ "ping", NULL } });
    ctl_expect(&p, 0, address, "");
    ctl_run(&p, &(struct ctl_line){ .environment = (const char *[]){ variable, NULL },
                                    .args = (const char *[]){ "run", "--no-autostart", "--", "sh", "-c",
                                                              "echo $MESH_ADDRESS", NULL } });
    ctl_expect(&p, 0, address, "");
    proc_signal(&meshd, SIGTERM);
    ck_assert(proc_wait(&meshd, 20000));
    ck_assert_int_eq(proc_code(&meshd), 0);
    proc_fini(&meshd);
    temp_folder_remove(folder);
}
END_TEST

START_TEST(help_comes_from_the_table_and_goes_to_standard_output)
{
    static const char *const commands[] = { "run", "status", "ranks", "mesh show", "kv get", "kv set", "ping", "help" };
    CTL(&p, NULL, "--help");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        ck_assert_msg(strstr(p.out.text, commands[i]) != NULL, "%s", commands[i]);
    }
    ctl_expect(&p, 0, "Usage: meshctl", "");
    CTL(&p, NULL, "help", "run");
    ck_assert_int_eq(count_text(p.out.text, "  --timeout "), 1); /* its own, not also the general one */
    ctl_expect(&p, 0, "--no-autostart", "");
    CTL(&p, NULL, "mesh", "show", "--help");
    ctl_expect(&p, 0, "Usage: meshctl mesh show", "");
    CTL(&p, NULL, "version");
    ctl_expect(&p, 0, "meshctl ", "");
    CTL(&p, NULL, "--version");
    ctl_expect(&p, 0, "meshctl ", "");
    CTL(&p, NULL, "completion", "bash");
    ctl_expect(&p, 0, "complete -F _meshctl meshctl", "");
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("cli");
    TCase *cases = tcase_create("cli");
    tcase_set_timeout(cases, 100);
    tcase_add_test(cases, unknown_words_name_the_near_ones);
    tcase_add_test(cases, run_refuses_what_makes_no_sense);
    tcase_add_test(cases, a_program_that_is_not_there_is_127);
    tcase_add_test(cases, a_program_that_cannot_be_executed_is_126);
    tcase_add_test(cases, a_daemon_that_does_not_answer_is_4);
    tcase_add_test(cases, a_daemon_at_its_usual_place_is_found_without_being_named);
    tcase_add_test(cases, help_comes_from_the_table_and_goes_to_standard_output);
    suite_add_tcase(suite, cases);
    return suite;
}
