/* client/ctl/cmd_status.c - meshctl status: the jobs of meshd.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/util.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include "ctl/say.h"
#include "ctl/watch.h"
#include "wire/codec.h"

struct status_options {
    bool is_watching;
};

static const struct option rows[] = {
    { "watch", 'w', OPTION_FLAG, offsetof(struct status_options, is_watching), NULL, 0, 0,
      "show it again twice a second until Ctrl-C" },
};
static const struct status_options defaults;

const struct command_options options_status = { rows, ARRAY_SIZE(rows), &defaults, sizeof defaults };

#define DAEMON(row) ((const Mesh__V1__StatusReply *)(row))
#define JOB(row)    ((const Mesh__V1__JobInfo *)(row))

static void get_software(const void *row, struct cell *c)
{
    cell_set_text(c, DAEMON(row)->software);
}

static void get_pid(const void *row, struct cell *c)
{
    cell_set_number(c, DAEMON(row)->pid);
}

static void get_address(const void *row, struct cell *c)
{
    cell_set_text(c, DAEMON(row)->address);
}

static void get_uptime(const void *row, struct cell *c)
{
    cell_set_duration(c, DAEMON(row)->uptime_ms);
}

static const struct column daemon_columns[] = {
    { NULL, "software", 0, get_software },
    { NULL, "pid", 0, get_pid },
    { NULL, "address", 0, get_address },
    { NULL, "uptime_ms", 0, get_uptime },
};

static void get_job(const void *row, struct cell *c)
{
    cell_set_text(c, JOB(row)->job);
}

static void get_state(const void *row, struct cell *c)
{
    cell_set_text(c, JOB(row)->state);
}

static void get_joined_of_size(const void *row, struct cell *c)
{
    (void)snprintf(c->buf, sizeof c->buf, "%u/%u", JOB(row)->joined, JOB(row)->size);
    cell_set_text(c, c->buf);
}

static void get_joined(const void *row, struct cell *c)
{
    cell_set_number(c, JOB(row)->joined);
}

static void get_size(const void *row, struct cell *c)
{
    cell_set_number(c, JOB(row)->size);
}

static void get_missing(const void *row, struct cell *c)
{
    c->kind = CELL_NUMBERS;
    c->numbers = JOB(row)->missing;
    c->n = JOB(row)->n_missing;
}

/* An empty list reads better as "-"; JSON wants []. */
static void get_missing_text(const void *row, struct cell *c)
{
    get_missing(row, c);
    c->kind = c->n == 0 ? CELL_NONE : CELL_NUMBERS;
}

static void get_generation(const void *row, struct cell *c)
{
    cell_set_number(c, JOB(row)->generation);
}

static void get_uid(const void *row, struct cell *c)
{
    cell_set_number(c, JOB(row)->uid);
}

static void get_keys(const void *row, struct cell *c)
{
    cell_set_number(c, (int64_t)JOB(row)->keys);
}

static void get_key_bytes(const void *row, struct cell *c)
{
    cell_set_number(c, (int64_t)JOB(row)->key_bytes);
}

static void get_age(const void *row, struct cell *c)
{
    cell_set_duration(c, JOB(row)->age_ms);
}

static void get_reason(const void *row, struct cell *c)
{
    cell_set_text(c, JOB(row)->reason);
}

static const struct column job_columns[] = {
    { "JOB", "job", 0, get_job },
    { "STATE", "state", COLUMN_STATE, get_state },
    { "RANKS", NULL, COLUMN_RIGHT, get_joined_of_size },
    { NULL, "joined", 0, get_joined },
    { NULL, "size", 0, get_size },
    { "MISSING", NULL, 0, get_missing_text },
    { NULL, "missing", 0, get_missing },
    { "GENERATION", "generation", COLUMN_WIDE | COLUMN_RIGHT, get_generation },
    { "UID", "uid", COLUMN_WIDE | COLUMN_RIGHT, get_uid },
    { "KEYS", "keys", COLUMN_WIDE | COLUMN_RIGHT, get_keys },
    { "KEY-BYTES", "key_bytes", COLUMN_WIDE | COLUMN_RIGHT, get_key_bytes },
    { "AGE", "age_ms", COLUMN_RIGHT, get_age },
    { "REASON", "reason", 0, get_reason },
};

static int show(const struct ctl *ctl, const void *arg)
{
    (void)arg;
    Mesh__V1__DaemonMessage *reply = NULL;
    Mesh__V1__GetStatus question = MESH__V1__GET_STATUS__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_GET_STATUS;
    m.get_status = &question;
    int r = client_ask(ctl, &m, MESH__V1__DAEMON_MESSAGE__BODY_STATUS_REPLY, &reply);
    if (r != 0) {
        return r;
    }
    struct view view = {
        .kind = "Status",
        .items_key = "jobs",
        .head = { daemon_columns, ARRAY_SIZE(daemon_columns) },
        .head_row = reply->status_reply,
        .items = { job_columns, ARRAY_SIZE(job_columns) },
        .rows = (const void *const *)reply->status_reply->jobs,
        .n_rows = reply->status_reply->n_jobs,
        .none = "no jobs",
    };
    r = output_view(ctl, &view);
    codec_free_daemon(reply);
    return r;
}

int cmd_status(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    (void)arguments;
    return watch_run(ctl, ((const struct status_options *)options)->is_watching, show, NULL);
}
