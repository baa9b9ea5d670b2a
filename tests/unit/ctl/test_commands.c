/* tests/unit/ctl/test_commands.c - finding commands in the table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands.h"

#include <string.h>

#include <mesh/base.h>

#include "base/util.h"
#include "harness/check_main.h"

static const struct command *command;
static int n_words;

#define FIND(...) command_find((char *const[]){ __VA_ARGS__, NULL }, &command, &n_words)

static void expect_error(int r, const char *sentence)
{
    ck_assert_int_eq(r, MESH_EINVAL);
    ck_assert_str_eq(mesh_last_error()->message, sentence);
}

START_TEST(commands_of_one_and_two_words_are_found)
{
    ck_assert_int_eq(FIND("run", "-n", "4"), 0);
    ck_assert_str_eq(command->name, "run");
    ck_assert_int_eq(n_words, 1);
    ck_assert_int_eq(FIND("mesh", "show", "job"), 0);
    ck_assert_str_eq(command->name, "mesh show");
    ck_assert_int_eq(n_words, 2);
}
END_TEST

START_TEST(unknown_commands_name_the_nearest_one)
{
    expect_error(FIND("stauts"), "unknown command 'stauts'; did you mean 'status'?");
    expect_error(FIND("mesh", "shwo"), "unknown command 'mesh shwo'; did you mean 'mesh show'?");
    expect_error(FIND("kv"), "'kv' needs a verb: 'kv get' or 'kv set'");
    expect_error(FIND("mehs", "show"), "unknown command 'mehs'; did you mean 'mesh'?");
    expect_error(FIND("frobnicate"), "unknown command 'frobnicate'");
}
END_TEST

START_TEST(every_command_has_a_name_a_summary_and_room_for_its_options)
{
    for (size_t i = 0; i < n_commands; i++) {
        ck_assert_uint_gt(strlen(commands[i].name), 0);
        ck_assert_uint_gt(strlen(commands[i].summary), 0);
        ck_assert_uint_le(commands[i].options->bytes, COMMAND_MAX_OPTION_BYTES);
        ck_assert(commands[i].options->n == 0 || commands[i].options->defaults != NULL);
        ck_assert_int_le(commands[i].max_operands, OPTIONS_MAX_OPERANDS);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("commands");
    TCase *cases = tcase_create("commands");
    tcase_add_test(cases, commands_of_one_and_two_words_are_found);
    tcase_add_test(cases, unknown_commands_name_the_nearest_one);
    tcase_add_test(cases, every_command_has_a_name_a_summary_and_room_for_its_options);
    suite_add_tcase(suite, cases);
    return suite;
}
