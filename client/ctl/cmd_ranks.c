/* client/ctl/cmd_ranks.c - meshctl ranks JOB.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include "ctl/say.h"
#include "ctl/watch.h"
#include "wire/codec.h"

struct ranks_options {
    bool is_watching;
};

static const struct option rows[] = {
    { "watch", 'w', OPTION_FLAG, offsetof(struct ranks_options, is_watching), NULL, 0, 0,
      "show it again twice a second until Ctrl-C" },
};
static const struct ranks_options defaults;

const struct command_options options_ranks = { rows, ARRAY_SIZE(rows), &defaults, sizeof defaults };

#define LIST(row) ((const Mesh__V1__RankList *)(row))
#define RANK(row) ((const Mesh__V1__RankInfo *)(row))

static void get_job(const void *row, struct cell *c)
{
    cell_set_text(c, LIST(row)->job != NULL ? LIST(row)->job->job : NULL);
}

static void get_job_state(const void *row, struct cell *c)
{
    cell_set_text(c, LIST(row)->job != NULL ? LIST(row)->job->state : NULL);
}

static void get_generation(const void *row, struct cell *c)
{
    if (LIST(row)->job != NULL) {
        cell_set_number(c, LIST(row)->job->generation);
    }
}

static const struct column job_columns[] = {
    { NULL, "job", 0, get_job },
    { NULL, "state", 0, get_job_state },
    { NULL, "generation", 0, get_generation },
};

static void get_rank(const void *row, struct cell *c)
{
    cell_set_number(c, RANK(row)->rank);
}

static void get_host(const void *row, struct cell *c)
{
    cell_set_text(c, RANK(row)->host);
}

static void get_pid(const void *row, struct cell *c)
{
    cell_set_number(c, RANK(row)->pid);
}

static void get_local_rank(const void *row, struct cell *c)
{
    cell_set_number(c, RANK(row)->local_rank);
}

static void get_state(const void *row, struct cell *c)
{
    cell_set_text(c, RANK(row)->state);
}

static void get_age(const void *row, struct cell *c)
{
    cell_set_duration(c, RANK(row)->age_ms);
}

#define STANDING(row) (RANK(row)->standing)

static void get_process(const void *row, struct cell *c)
{
    cell_set_text(c, STANDING(row) != NULL ? STANDING(row)->process : NULL);
}

static bool has_call(const void *row)
{
    return STANDING(row) != NULL && STANDING(row)->call[0] != 0;
}

static void get_call(const void *row, struct cell *c)
{
    cell_set_text(c, has_call(row) ? STANDING(row)->call : NULL);
}

static void get_group(const void *row, struct cell *c)
{
    cell_set_text(c, has_call(row) ? STANDING(row)->group : NULL);
}

static void get_sequence(const void *row, struct cell *c)
{
    if (has_call(row) && STANDING(row)->sequence != 0) { /* messages have none */
        cell_set_number(c, (int64_t)STANDING(row)->sequence);
    }
}

static void get_call_state(const void *row, struct cell *c)
{
    cell_set_text(c, has_call(row) ? STANDING(row)->call_state : NULL);
}

static void get_call_age(const void *row, struct cell *c)
{
    if (has_call(row)) {
        cell_set_duration(c, STANDING(row)->call_age_ms);
    }
}

static void get_waits_for(const void *row, struct cell *c)
{
    if (STANDING(row) != NULL) {
        c->kind = CELL_NUMBERS;
        c->numbers = STANDING(row)->waits_for;
        c->n = STANDING(row)->n_waits_for;
    }
}

/* Ranks, or what it waits for at meshd. */
static void get_waits_for_text(const void *row, struct cell *c)
{
    if (STANDING(row) != NULL && STANDING(row)->n_waits_for > 0) {
        get_waits_for(row, c);
    } else if (STANDING(row) != NULL) {
        cell_set_text(c, STANDING(row)->elsewhere);
    }
}

static void get_elsewhere(const void *row, struct cell *c)
{
    cell_set_text(c, STANDING(row) != NULL ? STANDING(row)->elsewhere : NULL);
}

static void get_addresses(const void *row, struct cell *c)
{
    c->kind = CELL_TEXTS;
    c->texts = RANK(row)->address;
    c->n = RANK(row)->n_address;
}

static const struct column rank_columns[] = {
    { "RANK", "rank", COLUMN_RIGHT, get_rank },        { "HOST", "host", 0, get_host },
    { "PID", "pid", COLUMN_RIGHT, get_pid },           { "LOCAL", "local_rank", COLUMN_RIGHT, get_local_rank },
    { "STATE", "state", COLUMN_STATE, get_state },     { "HEARD", "age_ms", COLUMN_RIGHT, get_age },
    { "PROCESS", "process", 0, get_process },          { "CALL", "call", 0, get_call },
    { "SEQ", "sequence", COLUMN_RIGHT, get_sequence }, { "GROUP", "group", 0, get_group },
    { "CALL-STATE", "call_state", 0, get_call_state }, { "FOR", "call_age_ms", COLUMN_RIGHT, get_call_age },
    { "WAITS-FOR", NULL, 0, get_waits_for_text },      { NULL, "waits_for", 0, get_waits_for },
    { NULL, "waits_at_meshd_for", 0, get_elsewhere },  { "ADDRESS", "addresses", COLUMN_WIDE, get_addresses },
};

static int show(const struct ctl *ctl, const void *arg)
{
    Mesh__V1__DaemonMessage *reply = NULL;
    Mesh__V1__ListRanks question = MESH__V1__LIST_RANKS__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    question.job = *(char *const *)arg;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_LIST_RANKS;
    m.list_ranks = &question;
    int r = client_ask(ctl, &m, MESH__V1__DAEMON_MESSAGE__BODY_RANKS, &reply);
    if (r != 0) {
        return r;
    }
    struct view view = {
        .kind = "RankList",
        .items_key = "ranks",
        .head = { job_columns, ARRAY_SIZE(job_columns) },
        .head_row = reply->ranks,
        .items = { rank_columns, ARRAY_SIZE(rank_columns) },
        .rows = (const void *const *)reply->ranks->ranks,
        .n_rows = reply->ranks->n_ranks,
        .none = "no rank has come yet",
    };
    r = output_view(ctl, &view);
    codec_free_daemon(reply);
    return r;
}

int cmd_ranks(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    const char *job = arguments_job(arguments);
    return watch_run(ctl, ((const struct ranks_options *)options)->is_watching, show, &job);
}
