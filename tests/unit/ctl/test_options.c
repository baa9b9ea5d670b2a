/* tests/unit/ctl/test_options.c - command lines, right and wrong ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/options.h"

#include <mesh/base.h>

#include "base/util.h"
#include "harness/check_main.h"

struct values {
    bool is_on;
    int loudness, format;
    const char *name;
    int64_t count, wait_ms;
    struct text_list list;
};

static const struct option rows[] = {
    { "on", 'x', OPTION_FLAG, offsetof(struct values, is_on), NULL, 0, 0, "" },
    { "verbose", 'v', OPTION_COUNT, offsetof(struct values, loudness), NULL, 0, 0, "" },
    { "output", 'o', OPTION_CHOICE, offsetof(struct values, format), "table|wide|json", 0, 0, "" },
    { "name", 0, OPTION_TEXT, offsetof(struct values, name), "NAME", 0, 0, "" },
    { "count", 'n', OPTION_NUMBER, offsetof(struct values, count), "N", 1, 100, "" },
    { "wait", 0, OPTION_DURATION, offsetof(struct values, wait_ms), "TIME", 0, 3600000, "" },
    { "env", 'e', OPTION_LIST, offsetof(struct values, list), "K=V", 0, 0, "" },
};

static struct values values;
static struct arguments arguments;

static int parse(char *const *argv)
{
    struct option_table table = { rows, ARRAY_SIZE(rows), &values };
    values = (struct values){ .count = 7 };
    return options_parse(&table, 1, argv, &arguments);
}

#define PARSE(...) parse((char *const[]){ __VA_ARGS__, NULL })

static void expect_error(int r, const char *sentence)
{
    ck_assert_int_lt(r, 0);
    ck_assert_str_eq(mesh_last_error()->message, sentence);
}

START_TEST(all_spellings_of_a_value_are_read)
{
    ck_assert_int_eq(PARSE("-n", "4", "--name=a b", "-vxv", "-ojson"), 0);
    ck_assert_int_eq(values.count, 4);
    ck_assert_str_eq(values.name, "a b");
    ck_assert_int_eq(values.loudness, 2);
    ck_assert(values.is_on);
    ck_assert_int_eq(values.format, 2);
    ck_assert_int_eq(PARSE("--count", "9", "-n5", "--output=wide", "--name", ""), 0);
    ck_assert_int_eq(values.count, 5);
    ck_assert_int_eq(values.format, 1);
    ck_assert_str_eq(values.name, "");
}
END_TEST

START_TEST(what_follows_the_two_dashes_is_left_alone)
{
    static char *const argv[] = { "a", "-x", "b", "--", "prog", "-n", "--", NULL };
    ck_assert_int_eq(parse(argv), 0);
    ck_assert_int_eq(arguments.n_operands, 2);
    ck_assert_str_eq(arguments.operand[1], "b");
    ck_assert_str_eq(arguments.program[0], "prog");
    ck_assert_str_eq(arguments.program[1], "-n");
    ck_assert_str_eq(arguments.program[2], "--");
    ck_assert_int_eq(values.count, 7);
    ck_assert_int_eq(PARSE("-"), 0);
    ck_assert_str_eq(arguments.operand[0], "-");
    ck_assert_ptr_null(arguments.program);
}
END_TEST

START_TEST(lists_keep_their_order)
{
    ck_assert_int_eq(PARSE("-e", "A=1", "--env=B=2", "-eC=3"), 0);
    ck_assert_uint_eq(values.list.n, 3);
    ck_assert_str_eq(values.list.at[1], "B=2");
    ck_assert_str_eq(values.list.at[2], "C=3");
}
END_TEST

START_TEST(durations_have_units)
{
    int64_t ms = 0;
    ck_assert(duration_parse("250", &ms) && ms == 250);
    ck_assert(duration_parse("250ms", &ms) && ms == 250);
    ck_assert(duration_parse("5s", &ms) && ms == 5000);
    ck_assert(duration_parse("2m", &ms) && ms == 120000);
    ck_assert(duration_parse("1h", &ms) && ms == 3600000);
    ck_assert(!duration_parse("", &ms) && !duration_parse("s", &ms) && !duration_parse("5 s", &ms));
    ck_assert(!duration_parse("5d", &ms) && !duration_parse("9223372036854775807s", &ms));
    ck_assert(!duration_parse("99999999999999999999", &ms));
}
END_TEST

START_TEST(wrong_lines_get_one_clear_sentence)
{
    expect_error(PARSE("-n", "0"), "-n is 0: it goes from 1 to 100");
    expect_error(PARSE("-n", "-1"), "-n is -1: it goes from 1 to 100");
    expect_error(PARSE("-n", "four"), "-n is 'four': a number is wanted");
    expect_error(PARSE("--count=4x"), "--count is '4x': a number is wanted");
    expect_error(PARSE("-n"), "-n needs a value: -n N");
    expect_error(PARSE("--name"), "--name needs a value: --name NAME");
    expect_error(PARSE("--wait", "soon"), "--wait is 'soon': a time like 500ms, 5s or 2m is wanted");
    expect_error(PARSE("--wait", "2h"), "--wait is 7200000 ms: it goes from 0 to 3600000");
    expect_error(PARSE("-o", "xml"), "-o is 'xml': it is one of table|wide|json");
    expect_error(PARSE("-o", "tab"), "-o is 'tab': it is one of table|wide|json");
    expect_error(PARSE("--on=1"), "--on takes no value");
    expect_error(PARSE("--cuont", "3"), "unknown option '--cuont'; did you mean '--count'?");
    expect_error(PARSE("--zebra"), "unknown option '--zebra'");
    expect_error(PARSE("-xq"), "unknown option '-q'");
    expect_error(PARSE("1", "2", "3", "4", "5", "6", "7", "8", "9"), "'9' is one word too many");
}
END_TEST

START_TEST(leading_options_end_at_the_first_operand)
{
    struct option_table table = { rows, ARRAY_SIZE(rows), &values };
    char *const argv[] = { "-v", "-n", "3", "run", "-x", NULL };
    values = (struct values){ .count = 7 };
    ck_assert_int_eq(options_parse_leading(&table, argv), 3);
    ck_assert_int_eq(values.count, 3);
    ck_assert(!values.is_on);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("options");
    TCase *cases = tcase_create("options");
    tcase_add_test(cases, all_spellings_of_a_value_are_read);
    tcase_add_test(cases, what_follows_the_two_dashes_is_left_alone);
    tcase_add_test(cases, lists_keep_their_order);
    tcase_add_test(cases, durations_have_units);
    tcase_add_test(cases, wrong_lines_get_one_clear_sentence);
    tcase_add_test(cases, leading_options_end_at_the_first_operand);
    suite_add_tcase(suite, cases);
    return suite;
}
