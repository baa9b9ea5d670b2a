/* client/ctl/output.c - a view as a table (libsmartcols), a JSON document, or JSON lines (jansson).
 *
 * JSON is versioned: every document says "apiVersion": "mesh/v1", and within v1 no member is removed or changes its meaning.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/output.h"

#include <jansson.h>
#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"

#define API_VERSION "mesh/v1"

static int no_memory(void)
{
    return err_set(MESH_ENOMEM, "out of memory while printing");
}

static const char *state_color(const char *state)
{
    static const struct {
        const char *state, *color;
    } rows[] = { { "running", "green" }, { "joined", "green" }, { "waiting", "brown" }, { "joining", "brown" },
                 { "degraded", "red" },  { "failed", "red" },   { "dead", "red" } };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].state, state) == 0) {
            return rows[i].color;
        }
    }
    return NULL;
}

/* Tables ------------------------------------------------------------------------------------------------------------- */

static bool is_shown(const struct ctl *ctl, const struct column *c)
{
    return c->title != NULL && ((c->flags & COLUMN_WIDE) == 0 || ctl->format == FORMAT_WIDE);
}

static struct libscols_table *table_new(const struct ctl *ctl)
{
    struct libscols_table *t = scols_new_table();
    if (t != NULL) {
        (void)scols_table_enable_noheadings(t, ctl->no_headers);
        (void)scols_table_enable_colors(t, ctl_wants_color(ctl, STDOUT_FILENO));
        (void)scols_table_enable_nowrap(t, 1);
    }
    return t;
}

static int table_add_row(struct libscols_table *t, const struct ctl *ctl, const struct column_table *columns,
                         const void *row)
{
    struct libscols_line *line = scols_table_new_line(t, NULL);
    size_t at = 0;
    for (size_t i = 0; line != NULL && i < columns->n; i++) {
        const struct column *c = &columns->columns[i];
        if (!is_shown(ctl, c)) {
            continue;
        }
        struct cell cell = { .kind = CELL_NONE };
        char text[1024];
        c->get(row, &cell);
        cell_format(&cell, text, sizeof text);
        if (scols_line_set_data(line, at, text) != 0) {
            return no_memory();
        }
        if ((c->flags & COLUMN_STATE) != 0 && state_color(text) != NULL) {
            (void)scols_cell_set_color(scols_line_get_cell(line, at), state_color(text));
        }
        at++;
    }
    return line != NULL ? 0 : no_memory();
}

static int print_table(const struct ctl *ctl, const struct column_table *columns, const void *const *rows,
                       size_t n_rows)
{
    int r = 0;
    struct libscols_table *t = table_new(ctl);
    if (t == NULL) {
        return no_memory();
    }
    for (size_t i = 0; i < columns->n && r == 0; i++) {
        const struct column *c = &columns->columns[i];
        int flags = (c->flags & COLUMN_RIGHT) != 0 ? SCOLS_FL_RIGHT : 0;
        if (is_shown(ctl, c) && scols_table_new_column(t, c->title, 0, flags) == NULL) {
            r = no_memory();
        }
    }
    for (size_t i = 0; i < n_rows && r == 0; i++) {
        r = table_add_row(t, ctl, columns, rows[i]);
    }
    if (r == 0) {
        (void)scols_print_table(t);
    }
    scols_unref_table(t);
    return r;
}

int output_grid(const struct ctl *ctl, const char *const *titles, const char *const *cells, size_t n_rows,
                size_t n_columns)
{
    int r = 0;
    struct libscols_table *t = table_new(ctl);
    if (t == NULL) {
        return no_memory();
    }
    for (size_t c = 0; c < n_columns && r == 0; c++) {
        r = scols_table_new_column(t, titles[c], 0, 0) != NULL ? 0 : no_memory();
    }
    for (size_t i = 0; i < n_rows && r == 0; i++) {
        struct libscols_line *line = scols_table_new_line(t, NULL);
        r = line != NULL ? 0 : no_memory();
        for (size_t c = 0; c < n_columns && r == 0; c++) {
            r = scols_line_set_data(line, c, cells[i * n_columns + c]) == 0 ? 0 : no_memory();
        }
    }
    if (r == 0) {
        (void)scols_print_table(t);
    }
    scols_unref_table(t);
    return r;
}

/* JSON --------------------------------------------------------------------------------------------------------------- */

static json_t *json_of_cell(const struct cell *c)
{
    switch (c->kind) {
    case CELL_NONE:
        return json_null();
    case CELL_TEXT: {
        json_t *text = json_string(c->text);
        return text != NULL ? text : json_string("(not UTF-8)");
    }
    case CELL_NUMBER:
    case CELL_DURATION:
        return json_integer((json_int_t)c->number);
    case CELL_NUMBERS:
    case CELL_TEXTS:
        break;
    }
    json_t *array = json_array();
    for (size_t i = 0; i < c->n; i++) {
        json_t *item = c->kind == CELL_NUMBERS ? json_integer(c->numbers[i]) : json_string(c->texts[i]);
        (void)json_array_append_new(array, item);
    }
    return array;
}

static void json_add_row(json_t *object, const struct column_table *columns, const void *row)
{
    for (size_t i = 0; i < columns->n; i++) {
        struct cell cell = { .kind = CELL_NONE };
        if (columns->columns[i].key != NULL) {
            columns->columns[i].get(row, &cell);
            (void)json_object_set_new(object, columns->columns[i].key, json_of_cell(&cell));
        }
    }
}

static json_t *json_document(const char *kind)
{
    return json_pack("{s:s, s:s}", "apiVersion", API_VERSION, "kind", kind);
}

/* Takes the document. */
static int json_print(json_t *document, size_t flags)
{
    int r = document != NULL && json_dumpf(document, stdout, flags | JSON_ENSURE_ASCII) == 0 ? 0 : no_memory();
    (void)putchar('\n');
    json_decref(document);
    return r;
}

static int print_json(const struct view *v)
{
    json_t *document = json_document(v->kind);
    json_add_row(document, &v->head, v->head_row);
    if (v->items_key != NULL) {
        json_t *items = json_array();
        for (size_t i = 0; i < v->n_rows; i++) {
            json_t *item = json_object();
            json_add_row(item, &v->items, v->rows[i]);
            (void)json_array_append_new(items, item);
        }
        (void)json_object_set_new(document, v->items_key, items);
    }
    return json_print(document, JSON_INDENT(2));
}

static int print_json_lines(const struct view *v)
{
    int r = 0;
    if (v->items_key == NULL) {
        json_t *document = json_document(v->kind);
        json_add_row(document, &v->head, v->head_row);
        return json_print(document, JSON_COMPACT);
    }
    for (size_t i = 0; i < v->n_rows && r == 0; i++) {
        json_t *document = json_document(v->kind);
        json_add_row(document, &v->items, v->rows[i]);
        r = json_print(document, JSON_COMPACT);
    }
    return r;
}

int output_view(const struct ctl *ctl, const struct view *v)
{
    if (ctl->format == FORMAT_JSON) {
        return print_json(v);
    }
    if (ctl->format == FORMAT_JSONL) {
        return print_json_lines(v);
    }
    if (v->items_key == NULL) {
        return print_table(ctl, &v->head, &v->head_row, 1);
    }
    if (v->n_rows == 0) {
        (void)fprintf(stderr, "%s\n", v->none);
        return 0;
    }
    return print_table(ctl, &v->items, v->rows, v->n_rows);
}
