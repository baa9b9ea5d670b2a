/* client/ctl/cmd_run.c - meshctl run: a daemon, a job, its ranks, an exit code.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include <mesh/base.h>

#include "base/names.h"
#include "base/util.h"
#include "ctl/commands.h"
#include "ctl/run_job.h"
#include "ctl/say.h"

#define MAX_RANKS 1024 /* on one machine */
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
        if (launch_sets(list->at[i], (size_t)(equals - list->at[i]))) {
            return say_usage("--env is '%.60s': that variable is set by 'meshctl run' itself, for each rank",
                             list->at[i]);
        }
    }
    return EXIT_OK;
}

static void fill_in(struct run_job_options *job, const struct ctl *ctl, const struct run_options *o)
{
    job->launch.n_ranks = (int)o->n_ranks;
    job->launch.environment = &o->environment;
    job->launch.master_port = free_port();
    job->launch.files = launch_raise_limit();
    job->create = (struct run_create_options){
        .ctl = ctl, .job = o->job, .n_ranks = (int)o->n_ranks, .no_autostart = o->no_autostart
    };
    job->limits = (struct supervise_limits){
        .report_ms = REPORT_MS, .grace_ms = o->grace_ms, .kill_ms = KILL_MS, .time_limit_ms = o->time_limit_ms
    };
    job->launch.is_tagged = o->tag == TAG_RANK;
    job->has_color[0] = ctl_wants_color(ctl, STDOUT_FILENO);
    job->has_color[1] = ctl_wants_color(ctl, STDERR_FILENO);
    job->is_verbose = ctl->verbosity > 0;
}

int cmd_run(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    const struct run_options *o = options;
    struct run_job_options job = { .launch = { .argv = arguments->program } };
    int code = check_environment(&o->environment);
    if (code != EXIT_OK) {
        return code;
    }
    if (o->job != NULL && name_check("job name", o->job, false) < 0) {
        return say_usage("%s", mesh_last_error()->message);
    }
    code = program_find(arguments->program[0], job.launch.path, sizeof job.launch.path);
    if (code != EXIT_OK) {
        say("%s", mesh_last_error()->message);
        return code;
    }
    fill_in(&job, ctl, o);
    return run_job(&job);
}
