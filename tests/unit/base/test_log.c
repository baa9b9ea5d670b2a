/* tests/unit/base/test_log.c - which lines come out, and what they look like; deadlines on the same clock.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

static char line[2048];
static int n_lines;

static void keep(enum log_level level, const char *text, void *arg)
{
    (void)level;
    ck_assert_ptr_eq(arg, &n_lines);
    snprintf(line, sizeof line, "%s", text);
    n_lines++;
}

static void set_up(void)
{
    log_set_sink(keep, &n_lines);
    ck_assert_int_eq(log_configure(NULL), 0);
    n_lines = 0;
}

START_TEST(only_warnings_come_out_by_default)
{
    ck_assert(log_enabled("comm", LOG_ERROR));
    ck_assert(log_enabled("comm", LOG_WARN));
    ck_assert(!log_enabled("comm", LOG_INFO));
    log_info("comm", "not this");
    log_warn("comm", "this rank=%d", 3);
    ck_assert_int_eq(n_lines, 1);
    const char *rest = strchr(line, ' ');
    ck_assert_ptr_nonnull(rest);
    ck_assert_str_eq(rest, " warn comm this rank=3");
    ck_assert_int_gt(atoll(line), 0);
}
END_TEST

START_TEST(a_topic_has_its_own_level)
{
    ck_assert_int_eq(log_configure("error,comm:debug,wire:off"), 0);
    ck_assert(log_enabled("comm", LOG_DEBUG));
    ck_assert(!log_enabled("comm", LOG_TRACE));
    ck_assert(!log_enabled("session", LOG_WARN));
    ck_assert(log_enabled("session", LOG_ERROR));
    ck_assert(!log_enabled("wire", LOG_ERROR));
    ck_assert(!log_enabled("a topic of no layer", LOG_WARN));
    ck_assert(log_enabled("a topic of no layer", LOG_ERROR));
    ck_assert_int_eq(log_configure("TRACE"), 0);
    ck_assert(log_enabled("wire", LOG_TRACE));
    ck_assert_int_eq(log_configure("comm:debug,"), 0);
    ck_assert(log_enabled("wire", LOG_WARN));
    ck_assert(!log_enabled("wire", LOG_INFO));
}
END_TEST

START_TEST(a_word_that_is_not_understood_is_named_and_changes_nothing)
{
    static const struct {
        const char *spec, *word;
    } rows[] = { { "loud", "loud" },
                 { "warn,comm:noisy", "noisy" },
                 { "comms:debug", "comms" },
                 { "comm:", "\"\"" },
                 { ":debug", "\"\"" } };
    ck_assert_int_eq(log_configure("info"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_int_eq(log_configure(rows[i].spec), MESH_EINVAL);
        ck_assert_ptr_nonnull(strstr(err_last()->message, rows[i].word));
        ck_assert(log_enabled("comm", LOG_INFO));
        ck_assert(!log_enabled("comm", LOG_DEBUG));
    }
}
END_TEST

START_TEST(a_name_cannot_forge_a_line)
{
    log_warn("daemon", "job \"%s\" refused", "x\n0 error daemon all is lost\x1b[2J");
    ck_assert_int_eq(n_lines, 1);
    ck_assert_ptr_null(strchr(line, '\n'));
    ck_assert_ptr_null(strchr(line, 0x1b));
}
END_TEST

START_TEST(a_long_line_is_cut)
{
    char text[5000];
    memset(text, 'y', sizeof text);
    text[4999] = '\0';
    log_warn("comm", "%s", text);
    ck_assert_int_eq(n_lines, 1);
    ck_assert_uint_lt(strlen(line), 1100);
}
END_TEST

static void *log_much(void *arg)
{
    for (int i = 0; i < 500; i++) {
        log_warn("comm", "thread %s %d", (const char *)arg, i);
        log_configure(i % 2 ? "warn" : "warn,wire:debug");
    }
    return NULL;
}

START_TEST(threads_log_whole_lines)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, log_much, "t");
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_int_eq(n_lines, 2000);
}
END_TEST

START_TEST(deadlines_saturate)
{
    ck_assert(deadline_in(INT64_MAX) == DEADLINE_NEVER);
    ck_assert(deadline_in(INT64_MAX - 1) == DEADLINE_NEVER);
    ck_assert(deadline_left(DEADLINE_NEVER) == INT32_MAX);
    ck_assert(deadline_left(deadline_in(INT64_MAX / 2)) == INT32_MAX);
    ck_assert(deadline_left(deadline_in(-5)) == 0);
    ck_assert(deadline_left(0) == 0);
    ck_assert(deadline_left(INT64_MIN) == 0);
    int64_t left = deadline_left(deadline_in(60000));
    ck_assert(left > 0 && left <= 60000);
}
END_TEST

START_TEST(the_clock_does_not_go_back)
{
    int64_t ns = clock_now_ns(), us = clock_now_us(), ms = clock_now_ms();
    ck_assert(us >= ns / 1000);
    ck_assert(ms >= us / 1000);
    ck_assert(clock_now_ns() >= ns);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("log");
    TCase *t = tcase_create("log");
    tcase_add_checked_fixture(t, set_up, NULL);
    tcase_add_test(t, only_warnings_come_out_by_default);
    tcase_add_test(t, a_topic_has_its_own_level);
    tcase_add_test(t, a_word_that_is_not_understood_is_named_and_changes_nothing);
    tcase_add_test(t, a_name_cannot_forge_a_line);
    tcase_add_test(t, a_long_line_is_cut);
    tcase_add_test(t, threads_log_whole_lines);
    tcase_add_test(t, deadlines_saturate);
    tcase_add_test(t, the_clock_does_not_go_back);
    suite_add_tcase(s, t);
    return s;
}
