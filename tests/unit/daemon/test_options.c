/* tests/unit/daemon/test_options.c - where options come from, and what is wrong with them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "daemon/folder.h"
#include "harness/check_main.h"
#include "seen.h"

static char folder[64];
static char path[80];
static struct options options;

static void set_up(void)
{
    strcpy(folder, "/tmp/meshd-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/meshd.conf", folder);
    unsetenv("MESHD_LOG");
    unsetenv("MESHD_CONFIG");
    unsetenv("MESHD_MAX_JOBS");
}

static void tear_down(void)
{
    unlink(path);
    rmdir(folder);
}

static void write_file(const char *content)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(content, file);
    fclose(file);
}

static int load(char *a, char *b)
{
    return options_load(&options, (char *[]){ "meshd", a, a != NULL ? b : NULL, NULL });
}

START_TEST(flags_win_over_environment_over_file_over_defaults)
{
    ck_assert_int_eq(load(NULL, NULL), 0);
    ck_assert_int_eq(options_number(&options, OPTION_MAX_JOBS), 64);
    write_file("[meshd]\nmax-jobs = 5\nlog = warn\n");
    ck_assert_int_eq(setenv("MESHD_CONFIG", path, 1), 0);
    ck_assert_int_eq(load(NULL, NULL), 0);
    ck_assert_int_eq(options_number(&options, OPTION_MAX_JOBS), 5);
    ck_assert_str_eq(options.value[OPTION_MAX_JOBS].origin, path);
    ck_assert_int_eq(setenv("MESHD_MAX_JOBS", "6", 1), 0);
    ck_assert_int_eq(load(NULL, NULL), 0);
    ck_assert_int_eq(options_number(&options, OPTION_MAX_JOBS), 6);
    ck_assert_int_eq(load("--max-jobs", "7"), 0);
    ck_assert_int_eq(options_number(&options, OPTION_MAX_JOBS), 7);
    ck_assert_str_eq(options.value[OPTION_MAX_JOBS].origin, "flag");
    ck_assert_str_eq(options_text(&options, OPTION_LOG), "warn");
}
END_TEST

START_TEST(a_wrong_line_is_named_with_file_and_number)
{
    static const struct {
        const char *content, *says;
    } cases[] = {
        { "log = info\nmax-clints = 4\n", "meshd.conf:2: there is no key max-clints; did you mean max-clients?" },
        { "[meshd]\nmax-jobs = many\n", "meshd.conf:2: max-jobs: \"many\" is not a number" },
        { "[mesh]\nlog = info\n", "meshd.conf:2: there is no section [mesh]" },
        { "[meshd]\nready-fd = 3\n", "not of the file" },
        { "[meshd]\nlog info\n", "meshd.conf:2: this line is neither" },
    };
    char flag[100];
    snprintf(flag, sizeof flag, "--config=%s", path);
    write_file(cases[_i].content);
    ck_assert_int_eq(load(flag, NULL), MESH_EINVAL);
    assert_says(mesh_last_error()->message, cases[_i].says);
}
END_TEST

START_TEST(wrong_flags_are_named)
{
    ck_assert_int_eq(load("--sokcet", "x"), MESH_EINVAL);
    assert_says(mesh_last_error()->message, "did you mean --socket?");
    ck_assert_int_eq(load("--socket", NULL), MESH_EINVAL);
    assert_says(mesh_last_error()->message, "--socket PATH");
    ck_assert_int_eq(load("now", NULL), MESH_EINVAL);
    ck_assert_int_eq(load("--help=yes", NULL), MESH_EINVAL);
    ck_assert_int_eq(load("--max-jobs", "-1"), MESH_EINVAL);
    ck_assert_int_eq(load("--config", "/nowhere/at/all"), MESH_EINVAL);
    ck_assert_int_eq(setenv("MESHD_MAX_JOBS", "x", 1), 0);
    ck_assert_int_eq(load(NULL, NULL), MESH_EINVAL);
    assert_says(mesh_last_error()->message, "MESHD_MAX_JOBS");
}
END_TEST

START_TEST(help_answers_next_to_a_broken_file)
{
    write_file("nonsense = 1\n");
    ck_assert_int_eq(setenv("MESHD_CONFIG", path, 1), 0);
    ck_assert_int_eq(load("--help", NULL), 0);
    ck_assert(options_is_set(&options, OPTION_HELP));
    ck_assert_int_eq(load("--check-config", NULL), MESH_EINVAL);
}
END_TEST

START_TEST(the_socket_folder_is_made_private_or_refused)
{
    char socket[120];
    snprintf(socket, sizeof socket, "%s/run/meshd.sock", folder);
    ck_assert_int_eq(folder_make(socket, true), 0);
    char made[100];
    snprintf(made, sizeof made, "%s/run", folder);
    struct stat st;
    ck_assert_int_eq(stat(made, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    ck_assert_int_eq(folder_make(socket, true), 0);
    ck_assert_int_eq(chmod(made, 0755), 0);
    ck_assert_int_eq(folder_make(socket, true), MESH_EAUTH);
    ck_assert_int_eq(folder_make(socket, false), 0);
    rmdir(made);
    ck_assert_int_eq(symlink("/tmp", made), 0);
    ck_assert_int_eq(folder_make(socket, true), MESH_EAUTH);
    unlink(made);
    snprintf(socket, sizeof socket, "%s/a/b/meshd.sock", folder);
    ck_assert_int_eq(folder_make(socket, true), MESH_EIO);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("options");
    TCase *tc = tcase_create("options");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, flags_win_over_environment_over_file_over_defaults);
    tcase_add_loop_test(tc, a_wrong_line_is_named_with_file_and_number, 0, 5);
    tcase_add_test(tc, wrong_flags_are_named);
    tcase_add_test(tc, help_answers_next_to_a_broken_file);
    tcase_add_test(tc, the_socket_folder_is_made_private_or_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
