/* client/ctl/cmd_run.c - meshctl run: a daemon, a job, its ranks, an exit code.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/run_job.h"
#include "ctl/say.h"
#include "wire/codec.h"

#define MAX_RANKS 1024 /* on one machine: each takes four descriptors */
#define REPORT_MS 3000 /* the others need up to 2 s to hear of a failure and say so */
#define KILL_MS   5000

enum { TAG_RANK, TAG_NONE };

struct run_options {
    int64_t n_ranks;
    const char *job;
    struct text_list environment;
    int tag;
    int64_t grace_ms, time_limit_ms;
    bool no_autostart;
};

#define AT(field) offsetof(struct run_options, field)

/* clang-format off */
static const struct option rows[] = {
    { "ranks",        'n', OPTION_NUMBER,   AT(n_ranks),       "N",         1, MAX_RANKS, "how many ranks to start; default 1" },
    { "job",          'j', OPTION_TEXT,     AT(job),           "NAME",      0, 0,         "the job's name; by default meshd picks one" },
    { "env",          'e', OPTION_LIST,     AT(environment),   "NAME=VALUE", 0, 0,        "set a variable for all ranks; may be given again" },
    { "tag",           0,  OPTION_CHOICE,   AT(tag),           "rank|none", 0, 0,         "begin each line of output with [rank], or with nothing" },
    { "grace",         0,  OPTION_DURATION, AT(grace_ms),      "TIME",      0, INT32_MAX, "how long ranks may take to end before the next, stronger signal; default 5s" },
    { "timeout",       0,  OPTION_DURATION, AT(time_limit_ms), "TIME",      1, INT32_MAX, "end the job after this time, with code 124; default: never" },
    { "no-autostart",  0,  OPTION_FLAG,     AT(no_autostart),  NULL,        0, 0,         "fail when no meshd answers rather than start a private one" },
};
/* clang-format on */
static const struct run_options defaults = { .n_ranks = 1, .grace_ms = 5000 };

const struct command_options options_run = { rows, ARRAY_SIZE(rows), &defaults, sizeof defaults };

static int check_environment(const struct text_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *equals = strchr(list->at[i], '=');
        if (equals == NULL || equals == list->at[i] || equals - list->at[i] > 200) {
            return say_usage("--env is '%.60s': it has the form NAME=VALUE", list->at[i]);
        }
    }
    return EXIT_OK;
}

static int create_job(struct client *client, const struct run_options *o, char *ret_job, size_t cap)
{
    Mesh__V1__CreateJob create = MESH__V1__CREATE_JOB__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    Mesh__V1__DaemonMessage *reply = NULL;
    create.job = (char *)(o->job != NULL ? o->job : "");
    create.size = (uint32_t)o->n_ranks;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_CREATE_JOB;
    m.create_job = &create;
    int r = client_call(client, &m, &reply);
    if (r != 0) {
        return r;
    }
    bool is_created = reply->body_case == MESH__V1__DAEMON_MESSAGE__BODY_JOB_CREATED;
    if (is_created) {
        (void)snprintf(ret_job, cap, "%s", reply->job_created->job);
    }
    codec_free_daemon(reply);
    return is_created ? 0 : err_set(MESH_EPROTO, "meshd at %s did not say which job it made", client->text);
}

/* A daemon that lives on should not keep the job; that it is gone already is no failure of ours. */
static void end_job(struct client *client, const char *job, int code)
{
    char reason[64];
    Mesh__V1__EndJob end = MESH__V1__END_JOB__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    Mesh__V1__DaemonMessage *reply = NULL;
    (void)snprintf(reason, sizeof reason, "meshctl run ended with code %d", code);
    end.job = (char *)job;
    end.reason = code == 0 ? (char *)"" : reason;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_END_JOB;
    m.end_job = &end;
    (void)client_call(client, &m, &reply);
    codec_free_daemon(reply);
}

/* Asks for the job at the daemon that is there; when none is, and none was named, at one of our own. */
static int find_daemon_and_create(const struct ctl *ctl, const struct run_options *o, struct client *client,
                                  struct private_daemon *daemon, char *job, size_t cap)
{
    int r = client_find(ctl, client);
    r = r == 0 ? create_job(client, o, job, cap) : r;
    if (r != MESH_EDAEMON || client->is_named || client->was_reached) {
        return r == 0 ? EXIT_OK : say_failure(r);
    }
    if (o->no_autostart) {
        return say_failure(r);
    }
    r = private_daemon_start(daemon, ctl->verbosity > 0);
    if (r != 0) {
        (void)say_failure(r);
        return EXIT_LAUNCHER;
    }
    client->address = daemon->address;
    address_format(&client->address, client->text, sizeof client->text);
    say("no meshd runs here: started a private one for this job (pid %d)", (int)daemon->pid);
    r = create_job(client, o, job, cap);
    return r == 0 ? EXIT_OK : say_failure(r);
}

static int run_ranks(const struct ctl *ctl, const struct run_options *o, struct run_job_options *job)
{
    job->launch.n_ranks = (int)o->n_ranks;
    job->launch.environment = &o->environment;
    job->launch.master_port = free_port();
    job->is_tagged = o->tag == TAG_RANK;
    job->has_color[0] = ctl_wants_color(ctl, STDOUT_FILENO);
    job->has_color[1] = ctl_wants_color(ctl, STDERR_FILENO);
    job->is_verbose = ctl->verbosity > 0;
    job->limits = (struct supervise_limits){
        .report_ms = REPORT_MS, .grace_ms = o->grace_ms, .kill_ms = KILL_MS, .time_limit_ms = o->time_limit_ms
    };
    return run_job(job);
}

int cmd_run(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    const struct run_options *o = options;
    struct run_job_options job = { .launch = { .argv = arguments->program } };
    struct private_daemon daemon = { .life_fd = -1 };
    struct client client = { .timeout_ms = ctl->timeout_ms };
    char name[256];
    int code = check_environment(&o->environment);
    if (code != EXIT_OK) {
        return code;
    }
    code = program_find(arguments->program[0], job.launch.path, sizeof job.launch.path);
    if (code != EXIT_OK) {
        say("%s", mesh_last_error()->message);
        return code;
    }
    code = find_daemon_and_create(ctl, o, &client, &daemon, name, sizeof name);
    if (code == EXIT_OK) {
        job.launch.job = name;
        job.launch.address = client.text;
        job.daemon = &daemon;
        code = run_ranks(ctl, o, &job);
        if (daemon.pid == 0) {
            end_job(&client, name, code);
        }
    }
    private_daemon_stop(&daemon);
    return code;
}
