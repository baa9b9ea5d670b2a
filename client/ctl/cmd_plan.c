/* client/ctl/cmd_plan.c - meshctl plan COLLECTIVE: the rounds in which the library would run it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/debug.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/call_words.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/util.h"
#include "base/vec.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include "ctl/say.h"

#define ALL_RANKS (-1)

struct plan_options {
    int64_t n_ranks, count, rank;
    const char *dtype;
};

#define AT(field) offsetof(struct plan_options, field)

/* clang-format off */
static const struct option rows[] = {
    { "ranks", 'n', OPTION_NUMBER, AT(n_ranks), "N", 1, 4096,      "ranks of the group; default 4" },
    { "count", 'c', OPTION_NUMBER, AT(count),   "C", 0, INT64_MAX, "elements, as in the call; default 1024" },
    { "dtype",  0,  OPTION_TEXT,   AT(dtype),   "T", 0, 0,         "their type: f32 f64 f16 bf16 i8 u8 i32 i64 bool; default f32" },
    { "rank",   0,  OPTION_NUMBER, AT(rank),    "R", 0, 4095,      "of one rank; by default of all" },
};
/* clang-format on */
static const struct plan_options defaults = { .n_ranks = 4, .count = 1024, .rank = ALL_RANKS, .dtype = "f32" };

const struct command_options options_plan = { rows, ARRAY_SIZE(rows), &defaults, sizeof defaults };

struct plan_row {
    const char *collective;
    const struct plan_options *options;
    VEC(char *) lines;
};

#define PLAN(row) ((const struct plan_row *)(row))

static void get_collective(const void *row, struct cell *c)
{
    cell_set_text(c, PLAN(row)->collective);
}

static void get_n_ranks(const void *row, struct cell *c)
{
    cell_set_number(c, PLAN(row)->options->n_ranks);
}

static void get_count(const void *row, struct cell *c)
{
    cell_set_number(c, PLAN(row)->options->count);
}

static void get_dtype(const void *row, struct cell *c)
{
    cell_set_text(c, PLAN(row)->options->dtype);
}

static void get_lines(const void *row, struct cell *c)
{
    c->kind = CELL_TEXTS;
    c->texts = PLAN(row)->lines.at;
    c->n = PLAN(row)->lines.n;
}

static const struct column columns[] = {
    { NULL, "collective", 0, get_collective }, { NULL, "ranks", 0, get_n_ranks }, { NULL, "count", 0, get_count },
    { NULL, "dtype", 0, get_dtype },           { NULL, "lines", 0, get_lines },
};

/* Messages between two ranks have none. */
static bool has_plan(mesh_comm_kind kind)
{
    return kind != MESH_COMM_SEND && kind != MESH_COMM_RECV;
}

static mesh_comm_kind find_kind(const char *name)
{
    for (int k = 1; k <= MESH_COMM_BARRIER; k++) {
        if (has_plan((mesh_comm_kind)k) && strcmp(comm_kind_name((mesh_comm_kind)k), name) == 0) {
            return (mesh_comm_kind)k;
        }
    }
    return (mesh_comm_kind)0;
}

static int unknown_collective(const char *name)
{
    const char *known[MESH_COMM_BARRIER];
    char list[160] = "";
    size_t n = 0;
    for (int k = 1; k <= MESH_COMM_BARRIER; k++) {
        if (has_plan((mesh_comm_kind)k)) {
            size_t used = strlen(list);
            known[n] = comm_kind_name((mesh_comm_kind)k);
            (void)snprintf(list + used, sizeof list - used, "%s%s", n > 0 ? ", " : "", known[n]);
            n++;
        }
    }
    const char *near = suggest_nearest(name, known, n);
    return near != NULL ? say_usage("'%.40s' is no collective; did you mean '%s'?", name, near)
                        : say_usage("'%.40s' is no collective that has a plan: %s", name, list);
}

/* Cuts the text into its lines, which stay in it. */
static int print_json(const struct ctl *ctl, const char *collective, const struct plan_options *o, char *text)
{
    struct plan_row row = { .collective = collective, .options = o };
    struct view view = { .kind = "Plan", .head = { columns, ARRAY_SIZE(columns) }, .head_row = &row };
    int r = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL && r == 0; line = strtok_r(NULL, "\n", &rest)) {
        char **place = VEC_PUSH(&row.lines);
        r = place == NULL ? err_no_memory(sizeof *place, "the lines of a plan") : 0;
        if (place != NULL) {
            *place = line;
        }
    }
    r = r == 0 ? output_view(ctl, &view) : r;
    VEC_FINI(&row.lines);
    return r;
}

static int show(const struct ctl *ctl, const char *collective, const struct plan_options *o, mesh_dtype t)
{
    mesh_comm_kind kind = find_kind(collective);
    int n = mesh_plan_text(kind, (int)o->n_ranks, (size_t)o->count, t, (int)o->rank, NULL, 0);
    if (n < 0) {
        return n;
    }
    size_t cap = (size_t)n + 1;
    char *text = mem_alloc(cap);
    if (text == NULL) {
        return err_no_memory(cap, "the text of a plan");
    }
    int r = mesh_plan_text(kind, (int)o->n_ranks, (size_t)o->count, t, (int)o->rank, text, cap);
    bool is_json = ctl->format == FORMAT_JSON || ctl->format == FORMAT_JSONL;
    if (r >= 0 && is_json) {
        r = print_json(ctl, collective, o, text);
    } else if (r >= 0) {
        (void)fputs(text, stdout);
        r = 0;
    }
    mem_free(text);
    return r;
}

int cmd_plan(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    const struct plan_options *o = options;
    mesh_dtype t;
    if ((int)find_kind(arguments->operand[0]) == 0) {
        return unknown_collective(arguments->operand[0]);
    }
    if (!dtype_from_name(o->dtype, &t)) {
        return say_usage("--dtype is '%.20s': f32 f64 f16 bf16 i8 u8 i32 i64 bool", o->dtype);
    }
    if (o->rank >= o->n_ranks) {
        return say_usage("--rank is %lld, but there are %lld ranks", (long long)o->rank, (long long)o->n_ranks);
    }
    int r = show(ctl, arguments->operand[0], o, t);
    return r == 0 ? EXIT_OK : say_failure(r);
}
