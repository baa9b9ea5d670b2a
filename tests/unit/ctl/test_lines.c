/* tests/unit/ctl/test_lines.c - merging lines of several processes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/lines.h"

#include <stdlib.h>
#include <string.h>

#include <mesh/base.h>

#include "harness/check_main.h"

static struct buf out;
static struct line_sink sink;
static struct line_source a, b;
static int write_status;

static int keep(const void *data, size_t len, void *arg)
{
    (void)arg;
    buf_append(&out, data, len);
    return write_status;
}

static void setup(void)
{
    out = BUF_INIT;
    write_status = 0;
    sink = (struct line_sink){ .write = keep };
    a = (struct line_source){ .sink = &sink, .tag = "[0] " };
    b = (struct line_source){ .sink = &sink, .tag = "[1] " };
}

static void teardown(void)
{
    lines_end(&a);
    lines_end(&b);
    buf_fini(&out);
}

static void feed(struct line_source *s, const char *text)
{
    lines_feed(s, text, strlen(text));
}

START_TEST(whole_lines_are_tagged_at_once)
{
    feed(&a, "one\ntwo\n");
    feed(&b, "\n");
    ck_assert_str_eq(buf_text(&out), "[0] one\n[0] two\n[1] \n");
}
END_TEST

START_TEST(pieces_of_lines_of_two_processes_do_not_mix)
{
    feed(&a, "left ");
    feed(&b, "right ");
    feed(&a, "one\n");
    feed(&b, "two\n");
    ck_assert_str_eq(buf_text(&out), "[0] left one\n[1] right two\n");
}
END_TEST

START_TEST(a_flushed_piece_goes_on_in_the_same_line)
{
    feed(&a, "loading");
    ck_assert(lines_has_held(&a));
    lines_flush(&a);
    ck_assert(!lines_has_held(&a));
    feed(&a, " done\nnext\n");
    ck_assert_str_eq(buf_text(&out), "[0] loading done\n[0] next\n");
}
END_TEST

START_TEST(a_flushed_piece_is_closed_when_another_process_speaks)
{
    feed(&a, "loading");
    lines_flush(&a);
    feed(&b, "hello\n");
    feed(&a, " done\n");
    ck_assert_str_eq(buf_text(&out), "[0] loading\n[1] hello\n[0]  done\n");
}
END_TEST

START_TEST(the_last_line_gets_its_newline)
{
    feed(&a, "no newline");
    lines_end(&a);
    feed(&b, "half");
    lines_flush(&b);
    lines_end(&b);
    ck_assert_str_eq(buf_text(&out), "[0] no newline\n[1] half\n");
}
END_TEST

START_TEST(an_endless_line_is_written_in_pieces)
{
    char *x = malloc(LINES_MAX_HELD_BYTES);
    ck_assert_ptr_nonnull(x);
    memset(x, 'x', LINES_MAX_HELD_BYTES);
    lines_feed(&a, x, LINES_MAX_HELD_BYTES);
    free(x);
    ck_assert(!lines_has_held(&a));
    feed(&a, "end\n");
    ck_assert_uint_eq(out.len, 4 + LINES_MAX_HELD_BYTES + 4);
    ck_assert_str_eq(buf_text(&out) + out.len - 5, "xend\n");
}
END_TEST

START_TEST(after_a_failed_write_nothing_is_written)
{
    write_status = MESH_EIO;
    feed(&a, "one\n");
    size_t len = out.len;
    feed(&a, "two\n");
    ck_assert_uint_eq(out.len, len);
    ck_assert_int_eq(sink.status, MESH_EIO);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("lines");
    TCase *cases = tcase_create("lines");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, whole_lines_are_tagged_at_once);
    tcase_add_test(cases, pieces_of_lines_of_two_processes_do_not_mix);
    tcase_add_test(cases, a_flushed_piece_goes_on_in_the_same_line);
    tcase_add_test(cases, a_flushed_piece_is_closed_when_another_process_speaks);
    tcase_add_test(cases, the_last_line_gets_its_newline);
    tcase_add_test(cases, an_endless_line_is_written_in_pieces);
    tcase_add_test(cases, after_a_failed_write_nothing_is_written);
    suite_add_tcase(suite, cases);
    return suite;
}
