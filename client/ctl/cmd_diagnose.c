/* client/ctl/cmd_diagnose.c - meshctl diagnose JOB: who holds the job up, in which call.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include "ctl/say.h"
#include "wire/codec.h"

struct diagnose_options {
    int64_t after_ms;
};

static const struct option rows[] = {
    { "after", 0, OPTION_DURATION, offsetof(struct diagnose_options, after_ms), "TIME", 1, INT32_MAX,
      "who waits for less is not held up; default 1s" },
};
static const struct diagnose_options defaults = { .after_ms = 1000 };

const struct command_options options_diagnose = { rows, ARRAY_SIZE(rows), &defaults, sizeof defaults };

#define DIAGNOSIS(row) ((const Mesh__V1__Diagnosis *)(row))
#define FINDING(row)   (((const struct finding_row *)(row))->finding)

/* A finding, and its calls in words. */
struct finding_row {
    const Mesh__V1__Finding *finding;
    char **calls; /* [finding->n_calls] "all_reduce sum f32[8]: 0 1 3" */
};

/* JSON ------------------------------------------------------------------------------------------------------------- */

static void get_job(const void *row, struct cell *c)
{
    cell_set_text(c, DIAGNOSIS(row)->job);
}

static void get_verdict(const void *row, struct cell *c)
{
    cell_set_text(c, DIAGNOSIS(row)->is_well ? "well" : "unwell");
}

static void get_sentence(const void *row, struct cell *c)
{
    cell_set_text(c, DIAGNOSIS(row)->sentence);
}

static const struct column head_columns[] = {
    { NULL, "job", 0, get_job },
    { NULL, "verdict", 0, get_verdict },
    { NULL, "sentence", 0, get_sentence },
};

static void get_kind(const void *row, struct cell *c)
{
    cell_set_text(c, FINDING(row)->kind);
}

static void get_role(const void *row, struct cell *c)
{
    cell_set_text(c, FINDING(row)->is_knock_on ? "knock-on" : "cause");
}

static void get_group(const void *row, struct cell *c)
{
    cell_set_text(c, FINDING(row)->name);
}

static void get_sequence(const void *row, struct cell *c)
{
    if (FINDING(row)->group != 0) {
        cell_set_number(c, (int64_t)FINDING(row)->sequence);
    }
}

static void get_call(const void *row, struct cell *c)
{
    cell_set_text(c, FINDING(row)->call);
}

static void get_age(const void *row, struct cell *c)
{
    if (FINDING(row)->group != 0) {
        cell_set_duration(c, FINDING(row)->age_ms);
    }
}

static void set_ranks(struct cell *c, const uint32_t *ranks, size_t n)
{
    c->kind = CELL_NUMBERS;
    c->numbers = ranks;
    c->n = n;
}

static void get_entered(const void *row, struct cell *c)
{
    set_ranks(c, FINDING(row)->entered, FINDING(row)->n_entered);
}

static void get_waiting(const void *row, struct cell *c)
{
    set_ranks(c, FINDING(row)->waiting, FINDING(row)->n_waiting);
}

static void get_culprits(const void *row, struct cell *c)
{
    set_ranks(c, FINDING(row)->culprit, FINDING(row)->n_culprit);
}

static void get_calls(const void *row, struct cell *c)
{
    c->kind = CELL_TEXTS;
    c->texts = ((const struct finding_row *)row)->calls;
    c->n = FINDING(row)->n_calls;
}

static void get_lines(const void *row, struct cell *c)
{
    c->kind = CELL_TEXTS;
    c->texts = FINDING(row)->line;
    c->n = FINDING(row)->n_line;
}

static const struct column finding_columns[] = {
    { "KIND", "kind", 0, get_kind },
    { "ROLE", "role", 0, get_role },
    { "GROUP", "group", 0, get_group },
    { "SEQ", "sequence", COLUMN_RIGHT, get_sequence },
    { "CALL", "call", 0, get_call },
    { "FOR", "age_ms", COLUMN_RIGHT, get_age },
    { "ENTERED", "entered", 0, get_entered },
    { "WAITING", "waiting", 0, get_waiting },
    { "CULPRITS", "culprits", 0, get_culprits },
    { NULL, "calls", 0, get_calls },
    { NULL, "lines", 0, get_lines },
};

/* Text ------------------------------------------------------------------------------------------------------------- */

/* "0 1 3", and "0-3 5" for runs of three and more. */
static void write_ranks(struct buf *text, const uint32_t *ranks, size_t n)
{
    for (size_t i = 0, end = 0; i < n; i = end) {
        for (end = i + 1; end < n && ranks[end] == ranks[end - 1] + 1; end++) {
        }
        if (end - i < 3) {
            end = i + 1;
        }
        buf_printf(text, "%s%u", i > 0 ? " " : "", ranks[i]);
        if (end - i >= 3) {
            buf_printf(text, "-%u", ranks[end - 1]);
        }
    }
    if (n == 0) {
        buf_printf(text, "nobody");
    }
}

static void write_list(struct buf *text, const char *title, const uint32_t *ranks, size_t n)
{
    buf_printf(text, "%s ", title);
    write_ranks(text, ranks, n);
}

static const char *title_of(const Mesh__V1__Finding *f)
{
    static const struct {
        const char *kind, *title;
    } titles[] = {
        { "mismatch", "MISMATCH" }, { "stall", "STALL" },   { "circle", "CIRCLE" },   { "dead", "DEAD" },
        { "stopped", "STOPPED" },   { "failed", "FAILED" }, { "unknown", "UNKNOWN" }, { "slow", "SLOW" },
    };
    for (size_t i = 0; i < ARRAY_SIZE(titles); i++) {
        if (strcmp(titles[i].kind, f->kind) == 0) {
            return titles[i].title;
        }
    }
    return "FINDING";
}

/* "MISSING", but who entered and then stopped is not missing. */
static const char *culprit_title(const Mesh__V1__Finding *f)
{
    if (strcmp(f->kind, "unknown") == 0) {
        return "UNKNOWN";
    }
    return f->n_culprit > 0 && f->n_entered > f->n_waiting ? "HELD UP BY" : "MISSING";
}

static void write_knock_on(struct buf *text, const Mesh__V1__Finding *f)
{
    write_list(text, f->n_waiting == 1 ? "  knock-on: rank" : "  knock-on: ranks", f->waiting, f->n_waiting);
    buf_printf(text, f->n_waiting == 1 ? " waits" : " wait");
    if (f->sequence != 0) {
        buf_printf(text, " at seq %llu", (unsigned long long)f->sequence);
    }
    buf_printf(text, " %s group %s, %s", f->sequence != 0 ? "of" : "in", f->name, f->call);
    write_list(text, " (depends on", f->culprit, f->n_culprit);
    buf_printf(text, ")\n");
}

static void write_finding(struct buf *text, const struct finding_row *row)
{
    const Mesh__V1__Finding *f = row->finding;
    char age[24];
    if (f->is_knock_on) {
        write_knock_on(text, f);
        return;
    }
    buf_printf(text, "%s", title_of(f));
    if (f->group != 0) {
        duration_format((int64_t)f->age_ms, age, sizeof age);
        buf_printf(text, " in group %s for %s\n  ", f->name, age);
        if (f->sequence != 0) {
            buf_printf(text, "seq %llu ", (unsigned long long)f->sequence);
        }
        buf_printf(text, "%s: ", f->n_calls > 0 ? "was entered with different calls" : f->call);
        write_list(text, "entered", f->entered, f->n_entered);
        if (f->n_culprit > 0 && f->n_calls == 0) {
            buf_printf(text, "   ");
            write_list(text, culprit_title(f), f->culprit, f->n_culprit);
        }
    }
    buf_printf(text, "\n");
    for (size_t i = 0; i < f->n_calls; i++) {
        buf_printf(text, "  %s\n", row->calls[i]);
    }
    for (size_t i = 0; i < f->n_line; i++) {
        buf_printf(text, "  %s\n", f->line[i]);
    }
}

static int print_text(const Mesh__V1__Diagnosis *d, const struct finding_row *row)
{
    struct buf text = BUF_INIT;
    if (d->n_findings == 0) {
        buf_printf(&text, "%s\n", d->sentence);
    }
    for (size_t i = 0; i < d->n_findings; i++) {
        write_finding(&text, &row[i]);
    }
    int r = buf_status(&text);
    if (r == 0) {
        (void)fputs(buf_text(&text), stdout);
    }
    buf_fini(&text);
    return r;
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static void free_rows(struct finding_row *row, size_t n)
{
    for (size_t i = 0; row != NULL && i < n; i++) {
        for (size_t k = 0; row[i].calls != NULL && k < row[i].finding->n_calls; k++) {
            mem_free(row[i].calls[k]);
        }
        mem_free((void *)row[i].calls);
    }
    mem_free(row);
}

static int name_calls(struct finding_row *row)
{
    const Mesh__V1__Finding *f = row->finding;
    row->calls = mem_zalloc(f->n_calls * sizeof *row->calls);
    if (row->calls == NULL) {
        return err_no_memory(f->n_calls * sizeof *row->calls, "the calls of a mismatch");
    }
    for (size_t i = 0; i < f->n_calls; i++) {
        struct buf text = BUF_INIT;
        buf_printf(&text, "%s:", f->calls[i]->call);
        write_list(&text, f->calls[i]->n_rank == 1 ? " rank" : " ranks", f->calls[i]->rank, f->calls[i]->n_rank);
        row->calls[i] = mem_strdup(buf_text(&text));
        int r = row->calls[i] == NULL ? err_no_memory(text.len, "the calls of a mismatch") : buf_status(&text);
        buf_fini(&text);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int print(const struct ctl *ctl, const Mesh__V1__Diagnosis *d)
{
    size_t n = d->n_findings;
    struct finding_row *row = mem_zalloc(n * sizeof *row);
    const void **items = mem_alloc_array(n, sizeof *items);
    int r = row == NULL || items == NULL ? err_no_memory(n * sizeof *row, "a diagnosis") : 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        row[i].finding = d->findings[i];
        items[i] = &row[i];
        r = name_calls(&row[i]);
    }
    struct view view = { .kind = "Diagnosis",
                         .items_key = "findings",
                         .head = { head_columns, ARRAY_SIZE(head_columns) },
                         .head_row = d,
                         .items = { finding_columns, ARRAY_SIZE(finding_columns) },
                         .rows = items,
                         .n_rows = n,
                         .none = d->sentence };
    if (r == 0) {
        r = ctl->format == FORMAT_TABLE ? print_text(d, row) : output_view(ctl, &view);
    }
    free_rows(row, row == NULL ? 0 : n);
    mem_free((void *)items);
    return r;
}

int cmd_diagnose(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    Mesh__V1__DaemonMessage *reply = NULL;
    Mesh__V1__Diagnose question = MESH__V1__DIAGNOSE__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    question.job = arguments_job(arguments);
    question.after_ms = (uint64_t)((const struct diagnose_options *)options)->after_ms;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_DIAGNOSE;
    m.diagnose = &question;
    int r = client_ask(ctl, &m, MESH__V1__DAEMON_MESSAGE__BODY_DIAGNOSIS, &reply);
    if (r != 0) {
        return say_failure(r);
    }
    bool is_well = reply->diagnosis->is_well;
    r = print(ctl, reply->diagnosis);
    codec_free_daemon(reply);
    return r != 0 ? say_failure(r) : is_well ? EXIT_OK : EXIT_UNHEALTHY;
}
