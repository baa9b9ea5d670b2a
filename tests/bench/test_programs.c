/* tests/bench/test_programs.c - every benchmark runs for a moment and prints sane rows; how fast things are decides nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "ctl.h"
#include "harness/check_main.h"

#define LIMIT_MS 90000

static struct proc p;
static char path[512];

/* The path of a benchmark program, until the next call. */
static const char *program(const char *name)
{
    (void)snprintf(path, sizeof path, "%s/%s", program_path("BENCH_FOLDER"), name);
    return path;
}

static void run(const char *const *argv)
{
    proc_run(&p, &(struct proc_options){ .argv = argv }, LIMIT_MS);
    ck_assert_msg(proc_code(&p) == 0, "%s: code %d\n%s%s", argv[0], proc_code(&p), p.out.text, p.err.text);
}
#define RUN(...) run((const char *[]){ __VA_ARGS__, NULL })

/* A number of the nth JSON line of standard output. */
static double number_in(int n, const char *name)
{
    const char *at = p.out.text;
    for (int i = 0; i < n && at != NULL; i++) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    json_t *line = at != NULL ? json_loads(at, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    ck_assert_msg(line != NULL, "no JSON line %d in\n%s", n, p.out.text);
    json_t *found = json_object_get(line, name);
    ck_assert_msg(json_is_number(found), "no number '%s' in line %d of\n%s", name, n, p.out.text);
    double value = json_number_value(found);
    json_decref(line);
    return value;
}

/* Rows of rows.h: so many, right ones all, with times in order. */
static void expect_rows(int n_rows)
{
    double median, best, worst;
    int n = 0;
    for (char *line = strtok(p.out.text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *peer_to_iters = "%*[^,],%*[^,],%*[^,],%*d,%*d,%*d,%*d,%lf,%lf,%lf";
        if (strncmp(line, "peer,mode,op,", 13) == 0) {
            continue;
        }
        ck_assert_msg(sscanf(line, peer_to_iters, &median, &best, &worst) == 3, "no row: %s", line);
        ck_assert_msg(0 < best && best <= median && median <= worst, "times out of order: %s", line);
        ck_assert_msg(strstr(line, ",ok") != NULL, "a wrong result: %s", line);
        n++;
    }
    ck_assert_int_eq(n, n_rows);
    proc_fini(&p);
}

#define SHORT "--sizes", "8,5000,400000", "--reps", "3", "--batch-ms", "1"

START_TEST(collectives_of_processes_print_a_right_row_per_op_and_size)
{
    static const char ops[] =
        "all_reduce,all_gather,reduce_scatter,broadcast,all_to_all,barrier,reduce,gather,scatter,ping_pong,"
        "all_reduce_f16,all_reduce_bf16";
    CTL(&p, NULL, "run", "-n", "3", "--tag", "none", "--", program("collectives"), "--ops", ops, SHORT);
    ck_assert_msg(proc_code(&p) == 0, "%s", p.err.text);
    expect_rows(11 * 3 + 1);
}
END_TEST

START_TEST(collectives_of_threads_print_the_same_rows)
{
    RUN(program("collectives"), "--ranks", "2", "--link", "sim", SHORT);
    expect_rows(5 * 3 + 1);
}
END_TEST

START_TEST(the_floor_gives_right_results_over_every_kind_of_socket)
{
    static const char *const modes[] = { "tcp", "unix" };
    static const char *const ranks[] = { "2", "4", "8" };
    for (size_t i = 0; i < ARRAY_SIZE(modes) * ARRAY_SIZE(ranks); i++) {
        RUN(program("floor"), ranks[i / 2], modes[i % 2], SHORT);
        expect_rows(5 * 3 + 1);
    }
}
END_TEST

START_TEST(unknown_words_are_refused)
{
    const char *const argv[] = { program("floor"), "2", "tcp", "--ops", "all_redice", NULL };
    proc_run(&p, &(struct proc_options){ .argv = argv }, LIMIT_MS);
    ck_assert_int_eq(proc_code(&p), 2);
    ck_assert_ptr_nonnull(strstr(p.err.text, "'--ops'"));
    proc_fini(&p);
}
END_TEST

START_TEST(the_canary_prints_a_time)
{
    RUN(program("canary"));
    double us = strtod(p.out.text, NULL);
    ck_assert_msg(us >= 0 && us < 1e6, "%s", p.out.text);
    proc_fini(&p);
}
END_TEST

START_TEST(operators_and_kernels_print_their_rows)
{
    RUN(program("bench_ops"), "1");
    ck_assert_double_gt(number_in(0, "op_median_ns"), 0);
    proc_fini(&p);
    RUN(program("bench_kernels"), "1", "add");
    ck_assert_int_ge(count_text(p.out.text, "\n"), 1);
    proc_fini(&p);
}
END_TEST

/* With one processor for two ranks that compute and two threads that move bytes. */
START_TEST(an_all_reduce_beside_a_matmul_ends_on_one_processor)
{
    cpu_set_t before, one;
    CPU_ZERO(&one);
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
        }
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    static const char *const layouts[] = { "0", "1" };
    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        CTL(&p, NULL, "run", "-n", "2", "--tag", "none", "--", program("bench_overlap"), "--bytes", "1000000",
            "--rounds", "3", "--free", layouts[i]);
        ck_assert_msg(proc_code(&p) == 0, "%s", p.err.text);
        ck_assert_double_gt(number_in(0, "both_us"), 0);
        proc_fini(&p);
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
}
END_TEST

START_TEST(a_redistribution_sends_just_the_bytes_of_its_collective)
{
    static const struct {
        const char *n_ranks;
        int n_lines;
    } runs[] = { { "2", 2 }, { "4", 1 } };
    for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
        CTL(&p, NULL, "run", "-n", runs[i].n_ranks, "--tag", "none", "--", program("bench_redistribute"), "1");
        ck_assert_msg(proc_code(&p) == 0, "%s", p.err.text);
        for (int line = 0; line < runs[i].n_lines; line++) {
            ck_assert_double_gt(number_in(line, "bare_bytes_sent"), 0);
            ck_assert_double_eq(number_in(line, "bytes_sent"), number_in(line, "bare_bytes_sent"));
            ck_assert_double_gt(number_in(line, "median_us"), 0);
        }
        proc_fini(&p);
    }
}
END_TEST

START_TEST(vs_peers_puts_its_tables_between_the_marks)
{
    char folder[96], file[128], text[1 << 16] = "";
    temp_folder_make(folder, sizeof folder);
    (void)snprintf(file, sizeof file, "%s/results.md", folder);
    FILE *f = fopen(file, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs("before\n<!-- vs_peers: begin -->\nold\n<!-- vs_peers: end -->\nafter\n", f);
    (void)fclose(f);
    RUN("python3", program_path("VS_PEERS"), "--build", program_path("BUILD_FOLDER"), "--out", folder, "--into", file,
        "--peers", "floor", "--ranks", "2", "--rounds", "2", "--ops", "all_reduce,barrier", "--sizes", "8", "--reps",
        "3", "--batch-ms", "1", "--congestion", "system");
    proc_fini(&p);
    f = fopen(file, "r");
    ck_assert_ptr_nonnull(f);
    (void)fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    ck_assert_msg(strncmp(text, "before\n", 7) == 0 && strstr(text, "-->\nafter\n") && !strstr(text, "old"), "%s",
                  text);
    ck_assert_msg(strstr(text, "| all_reduce | 8 B | ") && strstr(text, "| barrier | - | "), "%s", text);
    ck_assert_msg(strstr(text, "within 1.3 times the floor"), "%s", text);
    temp_folder_remove(folder);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("bench_programs");
    TCase *cases = tcase_create("bench_programs");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, collectives_of_processes_print_a_right_row_per_op_and_size);
    tcase_add_test(cases, collectives_of_threads_print_the_same_rows);
    tcase_add_test(cases, the_floor_gives_right_results_over_every_kind_of_socket);
    tcase_add_test(cases, unknown_words_are_refused);
    tcase_add_test(cases, the_canary_prints_a_time);
    tcase_add_test(cases, operators_and_kernels_print_their_rows);
    tcase_add_test(cases, an_all_reduce_beside_a_matmul_ends_on_one_processor);
    tcase_add_test(cases, a_redistribution_sends_just_the_bytes_of_its_collective);
    tcase_add_test(cases, vs_peers_puts_its_tables_between_the_marks);
    suite_add_tcase(suite, cases);
    return suite;
}
