/* tests/e2e/test_bench.c - `meshctl plan` and `meshctl bench`, which look at the library instead of a job.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ctl.h"
#include "harness/check_main.h"

static struct proc p;

START_TEST(a_plan_is_printed_round_by_round)
{
    CTL(&p, NULL, "plan", "all_reduce", "--ranks", "5", "--count", "13", "--rank", "4");
    ctl_expect(&p, 0, "all_reduce f32[13] on 5 ranks: ", "");
    CTL(&p, NULL, "plan", "barrier", "-n", "2", "-o", "json");
    json_t *d = ctl_json(&p);
    ck_assert_str_eq(json_string_value(json_object_get(d, "collective")), "barrier");
    ck_assert_uint_eq(json_array_size(json_object_get(d, "lines")), 5);
    json_decref(d);
    ctl_expect(&p, 0, NULL, "");
    CTL(&p, NULL, "plan", "all_reduse");
    ctl_expect(&p, 2, "", "'all_reduse' is no collective; did you mean 'all_reduce'?");
    CTL(&p, NULL, "plan", "send");
    ctl_expect(&p, 2, "", "'send' is no collective that has a plan: all_reduce, ");
    CTL(&p, NULL, "plan", "broadcast", "--dtype", "f31");
    ctl_expect(&p, 2, "", "f31");
    CTL(&p, NULL, "plan", "broadcast", "-n", "2", "--rank", "2");
    ctl_expect(&p, 2, "", "--rank is 2");
}
END_TEST

/* The nth line of what was printed, as JSON. */
static json_t *line_of(const struct proc *proc, int n)
{
    const char *at = proc->out.text;
    for (int i = 0; i < n && at != NULL; i++) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    ck_assert_msg(at != NULL && *at != 0, "no line %d in\n%s", n, proc->out.text);
    json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
    ck_assert_msg(line != NULL, "no JSON: %s", at);
    return line;
}

START_TEST(bench_prints_a_json_line_per_collective_and_size)
{
    CTL(&p, NULL, "bench", "-n", "2", "--sizes", "8,4096", "--collectives", "all_gather,barrier");
    ck_assert_msg(count_text(p.out.text, "\n") == 4, "%s%s", p.out.text, p.err.text);
    json_t *roof = line_of(&p, 0), *gather = line_of(&p, 2), *barrier = line_of(&p, 3);
    ck_assert_str_eq(json_string_value(json_object_get(roof, "roof")), "unix");
    ck_assert_double_gt(json_real_value(json_object_get(roof, "gb_per_s")), 0);
    ck_assert_str_eq(json_string_value(json_object_get(gather, "collective")), "all_gather");
    ck_assert_int_eq(json_integer_value(json_object_get(gather, "bytes")), 4096);
    ck_assert_ptr_null(json_object_get(gather, "asked_bytes"));
    ck_assert_int_eq(json_integer_value(json_object_get(gather, "ranks")), 2);
    ck_assert_double_gt(json_real_value(json_object_get(gather, "median_us")), 0);
    ck_assert_double_gt(json_real_value(json_object_get(gather, "percent_of_roof")), 0);
    ck_assert_str_eq(json_string_value(json_object_get(barrier, "collective")), "barrier");
    json_decref(roof);
    json_decref(gather);
    json_decref(barrier);
    ctl_expect(&p, 0, NULL, NULL);
    CTL(&p, NULL, "bench", "--sizes", "8,x");
    ctl_expect(&p, 2, "", "--sizes has 'x'");
    CTL(&p, NULL, "bench", "--collectives", "sum");
    ctl_expect(&p, 2, "", "--collectives has 'sum'");
    CTL(&p, NULL, "bench", "--collectives", "allreduce");
    ctl_expect(&p, 2, "", "did you mean 'all_reduce'?");
}
END_TEST

START_TEST(bench_times_other_calls_when_they_are_asked_for)
{
    CTL(&p, NULL, "bench", "-n", "2", "--link", "tcp", "--sizes", "4095", "--collectives",
        "scatter,ping_pong,all_reduce_bf16");
    ck_assert_msg(count_text(p.out.text, "\n") == 4, "%s%s", p.out.text, p.err.text);
    json_t *message = line_of(&p, 2), *narrow = line_of(&p, 3);
    ck_assert_str_eq(json_string_value(json_object_get(message, "collective")), "ping_pong");
    ck_assert_str_eq(json_string_value(json_object_get(narrow, "collective")), "all_reduce_bf16");
    ck_assert_int_eq(json_integer_value(json_object_get(narrow, "bytes")), 4096);
    ck_assert_int_eq(json_integer_value(json_object_get(narrow, "asked_bytes")), 4095);
    ck_assert_double_gt(json_real_value(json_object_get(narrow, "percent_of_roof")), 0);
    json_decref(message);
    json_decref(narrow);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

START_TEST(sums_of_many_ranks_are_right_in_16_bits)
{
    CTL(&p, NULL, "bench", "-n", "18", "--sizes", "72", "--collectives", "all_reduce_bf16"); /* 18 ranks: over 2^8 */
    ck_assert_msg(count_text(p.out.text, "\n") == 2, "%s%s", p.out.text, p.err.text);
    ctl_expect(&p, 0, NULL, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("bench");
    TCase *cases = tcase_create("bench");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, a_plan_is_printed_round_by_round);
    tcase_add_test(cases, bench_prints_a_json_line_per_collective_and_size);
    tcase_add_test(cases, bench_times_other_calls_when_they_are_asked_for);
    tcase_add_test(cases, sums_of_many_ranks_are_right_in_16_bits);
    suite_add_tcase(suite, cases);
    return suite;
}
