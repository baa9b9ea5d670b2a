/* tests/unit/ctl/test_output.c - cells, views and mesh drawings.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/output.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "ctl/mesh_view.h"
#include "harness/check_main.h"

struct row {
    const char *name;
    int64_t n, age_ms;
    uint32_t missing[3];
    size_t n_missing;
};

static void get_name(const void *row, struct cell *c)
{
    cell_set_text(c, ((const struct row *)row)->name);
}

static void get_n(const void *row, struct cell *c)
{
    cell_set_number(c, ((const struct row *)row)->n);
}

static void get_age(const void *row, struct cell *c)
{
    cell_set_duration(c, (uint64_t)((const struct row *)row)->age_ms);
}

static void get_missing(const void *row, struct cell *c)
{
    c->kind = CELL_NUMBERS;
    c->numbers = ((const struct row *)row)->missing;
    c->n = ((const struct row *)row)->n_missing;
}

static const struct column columns[] = {
    { "NAME", "name", COLUMN_STATE, get_name },
    { "N", "n", COLUMN_RIGHT, get_n },
    { "AGE", "age_ms", COLUMN_WIDE, get_age },
    { NULL, "missing", 0, get_missing },
};
static const struct row row_a = { "running", 4, 65000, { 1, 3 }, 2 };
static const struct row row_b = { NULL, 16, 900, { 0 }, 0 };
static const void *const rows[] = { &row_a, &row_b };

/* What output_view() prints, into a buffer that the next call overwrites. */
static const char *print(const struct ctl *ctl, size_t n_rows)
{
    static char text[4096];
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);
    struct view view = { .kind = "List",
                         .items_key = "items",
                         .items = { columns, ARRAY_SIZE(columns) },
                         .rows = rows,
                         .n_rows = n_rows,
                         .none = "nothing" };
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(saved, 0);
    ck_assert_int_ge(dup2(fileno(file), STDOUT_FILENO), 0);
    ck_assert_int_eq(output_view(ctl, &view), 0);
    (void)fflush(stdout);
    ck_assert_int_ge(dup2(saved, STDOUT_FILENO), 0);
    (void)close(saved);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    return text;
}

START_TEST(a_table_shows_titles_and_rows)
{
    struct ctl ctl = { .format = FORMAT_TABLE, .color = COLOR_NEVER };
    ck_assert_str_eq(print(&ctl, 2), "NAME     N\nrunning  4\n-       16\n");
    ctl.no_headers = true;
    ck_assert_str_eq(print(&ctl, 1), "running 4\n");
    ctl.format = FORMAT_WIDE;
    ck_assert_str_eq(print(&ctl, 1), "running 4 1m05s\n");
}
END_TEST

START_TEST(json_has_a_version_and_every_column)
{
    struct ctl ctl = { .format = FORMAT_JSON };
    json_error_t why;
    json_t *document = json_loads(print(&ctl, 2), 0, &why);
    ck_assert_ptr_nonnull(document);
    ck_assert_str_eq(json_string_value(json_object_get(document, "apiVersion")), "mesh/v1");
    ck_assert_str_eq(json_string_value(json_object_get(document, "kind")), "List");
    json_t *items = json_object_get(document, "items");
    ck_assert_uint_eq(json_array_size(items), 2);
    json_t *a = json_array_get(items, 0);
    ck_assert_int_eq(json_integer_value(json_object_get(a, "age_ms")), 65000);
    ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(a, "missing"), 1)), 3);
    ck_assert(json_is_null(json_object_get(json_array_get(items, 1), "name")));
    json_decref(document);
    document = json_loads(print(&ctl, 0), 0, &why);
    ck_assert_uint_eq(json_array_size(json_object_get(document, "items")), 0);
    json_decref(document);
}
END_TEST

START_TEST(json_lines_are_one_document_each)
{
    struct ctl ctl = { .format = FORMAT_JSONL };
    const char *text = print(&ctl, 2);
    const char *line = strchr(text, '\n');
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strchr(line + 1, '\n'));
    ck_assert_str_eq(strchr(line + 1, '\n'), "\n");
    json_error_t why;
    json_t *first = json_loads(text, JSON_DISABLE_EOF_CHECK, &why);
    ck_assert_str_eq(json_string_value(json_object_get(first, "name")), "running");
    json_decref(first);
}
END_TEST

START_TEST(colours_are_for_terminals_unless_asked_for)
{
    struct ctl ctl = { .color = COLOR_AUTO };
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert(!ctl_wants_color(&ctl, fds[1]));
    ctl.color = COLOR_ALWAYS;
    ck_assert(ctl_wants_color(&ctl, fds[1]));
    ck_assert_ptr_nonnull(strstr(print(&ctl, 1), "\033["));
    ctl.color = COLOR_NEVER;
    ck_assert(!ctl_wants_color(&ctl, fds[1]));
    ck_assert_ptr_null(strstr(print(&ctl, 1), "\033["));
    (void)close(fds[0]);
    (void)close(fds[1]);
}
END_TEST

START_TEST(durations_read_well)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = { { 0, "0.0s" },       { 3249, "3.2s" },     { 12000, "12s" },
                  { 185000, "3m05s" }, { 7620000, "2h07m" }, { 356400000, "4d03h" } };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[32];
        duration_format(cases[i].ms, text, sizeof text);
        ck_assert_str_eq(text, cases[i].text);
    }
}
END_TEST

START_TEST(a_list_that_is_too_long_is_cut)
{
    uint32_t numbers[100] = { 0 };
    char text[16];
    struct cell c = { .kind = CELL_NUMBERS, .numbers = numbers, .n = 100 };
    cell_format(&c, text, sizeof text);
    ck_assert_str_eq(text, "0,0,0,0,0,0,...");
}
END_TEST

START_TEST(a_mesh_descriptor_is_taken_apart)
{
    static const uint32_t ranks[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    struct mesh_view v;
    char title[64];
    struct buf text = BUF_INIT;
    ck_assert_int_eq(mesh_view_parse(&v, "device=cpu shape=2x2x2 names=dp,,tp extra=1", ranks, 8), 0);
    ck_assert_int_eq(v.ndim, 3);
    ck_assert_str_eq(v.device, "cpu");
    ck_assert_str_eq(v.name[0], "dp");
    ck_assert_str_eq(v.name[1], "dim1");
    ck_assert_str_eq(v.name[2], "tp");
    mesh_view_row_title(&v, 2, title, sizeof title);
    ck_assert_str_eq(title, "dp=1 dim1=0");
    mesh_view_groups(&v, 0, &text);
    ck_assert_str_eq(buf_text(&text), "dp [0 4] [1 5] [2 6] [3 7]");
    buf_clear(&text);
    mesh_view_groups(&v, 2, &text);
    ck_assert_str_eq(buf_text(&text), "tp [0 1] [2 3] [4 5] [6 7]");
    buf_fini(&text);
}
END_TEST

START_TEST(what_describes_no_mesh_is_refused)
{
    static const uint32_t ranks[] = { 0, 1, 2, 3 };
    struct mesh_view v;
    ck_assert_int_lt(mesh_view_parse(&v, "", ranks, 4), 0);
    ck_assert_int_lt(mesh_view_parse(&v, "shape=", ranks, 4), 0);
    ck_assert_int_lt(mesh_view_parse(&v, "shape=2x", ranks, 4), 0);
    ck_assert_int_lt(mesh_view_parse(&v, "shape=2y2", ranks, 4), 0);
    ck_assert_int_lt(mesh_view_parse(&v, "shape=2x3", ranks, 4), 0);
    ck_assert_int_lt(mesh_view_parse(&v, "shape=1x1x1x2x2", ranks, 4), 0);
    ck_assert_int_lt(mesh_view_parse(&v, "shape=4294967295x4294967295x4", ranks, 4), 0);
    ck_assert_int_eq(mesh_view_parse(&v, "shape=4", ranks, 4), 0);
    ck_assert_str_eq(v.name[0], "dim0");
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("output");
    TCase *cases = tcase_create("output");
    tcase_add_test(cases, a_table_shows_titles_and_rows);
    tcase_add_test(cases, json_has_a_version_and_every_column);
    tcase_add_test(cases, json_lines_are_one_document_each);
    tcase_add_test(cases, colours_are_for_terminals_unless_asked_for);
    tcase_add_test(cases, durations_read_well);
    tcase_add_test(cases, a_list_that_is_too_long_is_cut);
    tcase_add_test(cases, a_mesh_descriptor_is_taken_apart);
    tcase_add_test(cases, what_describes_no_mesh_is_refused);
    suite_add_tcase(suite, cases);
    return suite;
}
