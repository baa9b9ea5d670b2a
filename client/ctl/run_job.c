/* client/ctl/run_job.c - the processes, signals and timers around the decisions of supervise.c.
 *
 * Happy path   ask meshd for the job; fork all ranks; wait on the loop for their ends, their output, signals to us, the
 *              deadline; when the last rank has ended and its output is read, stop the loop.
 * Failures     a rank that cannot be started ends those that were.  Whatever happens, in the end every rank's process group
 *              gets SIGKILL: before the leader is reaped, so that its number cannot belong to anybody else by then.
 *
 * Ends are seen through pidfds, which the kernel reports in the order in which the processes ended; where it has none, through
 * SIGCHLD.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/run_job.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "ctl/run_folder.h"
#include "ctl/run_output.h"
#include "ctl/say.h"
#include "ctl/summary.h"
#include "wire/loop.h"

#define DRAIN_MS 500 /* after the last rank ended, for output that its own children still hold open */

static const int forwarded[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP };

struct job;

struct rank_slot {
    struct job *job;
    int rank;
    int pid_fd; /* -1: none */
    struct loop_watch *watch;
};

struct signal_slot {
    struct job *job;
    int signal_number;
    struct loop_signal *handle;
};

struct job {
    const struct run_job_options *options;
    struct loop *loop;
    struct run_output *output;
    struct supervise supervise;
    struct rank_fate *fates; /* [n_ranks] */
    pid_t *pids;             /* [n_ranks]; 0: not started */
    struct rank_slot *slots; /* [n_ranks] */
    struct run_create create;
    struct private_folder folder;
    struct signal_slot signals[ARRAY_SIZE(forwarded) + 1];
    struct loop_timer *deadline, *drain;
    bool is_running; /* the ranks were started, supervise decides */
    bool has_finished;
    int code;
    int reporter; /* the first rank that told meshd of an error; -1: none */
    char report[256];
};

static int n_ranks(const struct job *job)
{
    return job->options->launch.n_ranks;
}

static void signal_ranks(const struct job *job, int signal_number)
{
    for (int i = 0; i < n_ranks(job); i++) {
        if (job->pids[i] > 0) {
            (void)kill(-job->pids[i], signal_number);
            if (signal_number == SIGTERM || signal_number == SIGINT || signal_number == SIGQUIT) {
                (void)kill(-job->pids[i], SIGCONT); /* a stopped process would never get it */
            }
        }
    }
}

/* Nobody hears signals any more.  From here to the end of run_job() there is nothing to interrupt, but much to clean up. */
static void stop_signals(struct job *job)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before);
    for (size_t i = 0; i < ARRAY_SIZE(job->signals); i++) {
        job->signals[i].handle = loop_signal_stop(job->signals[i].handle);
    }
    for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++) {
        (void)signal(forwarded[i], SIG_IGN);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

static void restore_signals(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++) {
        (void)signal(forwarded[i], SIG_DFL);
    }
}

static void finish(struct job *job)
{
    if (job->has_finished) {
        return;
    }
    job->has_finished = true;
    job->code = job->is_running ? supervise_exit_code(&job->supervise) : job->code;
    run_create_end(&job->create, job->code);
    job->deadline = loop_timer_stop(job->deadline);
    job->drain = loop_timer_stop(job->drain);
    for (int i = 0; i < n_ranks(job); i++) {
        job->slots[i].watch = loop_watch_stop(job->slots[i].watch);
    }
    stop_signals(job);
    job->output = run_output_free(job->output);
    loop_stop(job->loop);
}

static void drained_cb(void *arg)
{
    finish(arg);
}

static void step(struct job *job, struct supervise_event event);

static void deadline_cb(void *arg)
{
    struct job *job = arg;
    job->deadline = loop_timer_stop(job->deadline);
    step(job, (struct supervise_event){ .kind = EVENT_TIME });
}

static void step(struct job *job, struct supervise_event event)
{
    if (job->has_finished || !job->is_running) {
        return;
    }
    event.now_ms = clock_now_ms();
    int signal_number = supervise_step(&job->supervise, &event);
    if (signal_number != 0) {
        signal_ranks(job, signal_number);
    }
    job->deadline = loop_timer_stop(job->deadline);
    if (job->supervise.phase == PHASE_OVER) {
        if (run_output_has_ended(job->output)) {
            finish(job);
        } else if (job->drain == NULL) {
            job->drain = loop_timer_start(job->loop, DRAIN_MS, 0, drained_cb, job);
        }
    } else if (job->supervise.deadline_ms != DEADLINE_NEVER) {
        int64_t left_ms = MAX(job->supervise.deadline_ms - event.now_ms, 0);
        job->deadline = loop_timer_start(job->loop, left_ms, 0, deadline_cb, job);
    }
}

static void output_broken_cb(void *arg)
{
    step(arg, (struct supervise_event){ .kind = EVENT_OUTPUT_CLOSED });
}

static void output_ended_cb(void *arg)
{
    struct job *job = arg;
    if (job->is_running && job->supervise.phase == PHASE_OVER) {
        finish(job);
    }
}

/* Ends of processes -------------------------------------------------------------------------------------------------- */

/* The leader stays a zombie until the end of the job, so that its group's number stays its own. */
static void look_at_rank(struct job *job, int rank)
{
    struct rank_slot *slot = &job->slots[rank];
    siginfo_t info = { .si_pid = 0 };
    if (job->has_finished || job->fates[rank].has_ended ||
        waitid(P_PID, (id_t)job->pids[rank], &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
        return;
    }
    int status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status);
    slot->watch = loop_watch_stop(slot->watch);
    run_create_rank_ended(&job->create, rank, job->pids[rank], status);
    step(job, (struct supervise_event){ .kind = EVENT_RANK_ENDED, .rank = rank, .wait_status = status });
}

static void rank_ended_cb(bool readable, bool writable, void *arg)
{
    const struct rank_slot *slot = arg;
    (void)readable, (void)writable;
    look_at_rank(slot->job, slot->rank);
}

static void child_cb(void *arg)
{
    struct job *job = ((struct signal_slot *)arg)->job;
    for (int i = 0; i < n_ranks(job); i++) {
        look_at_rank(job, i);
    }
}

static int watch_rank(struct job *job, int rank)
{
    struct rank_slot *slot = &job->slots[rank];
    struct signal_slot *child = &job->signals[ARRAY_SIZE(forwarded)];
    slot->pid_fd = pidfd_open(job->pids[rank], 0);
    if (slot->pid_fd >= 0) {
        slot->watch = loop_watch_start(job->loop, slot->pid_fd, true, false, rank_ended_cb, slot);
        return slot->watch != NULL ? 0 : mesh_last_error()->status;
    }
    if (child->handle == NULL) {
        *child = (struct signal_slot){ job, SIGCHLD, loop_signal_start(job->loop, SIGCHLD, child_cb, child) };
    }
    return child->handle != NULL ? 0 : mesh_last_error()->status;
}

/* Signals to us ------------------------------------------------------------------------------------------------------ */

static void signal_cb(void *arg)
{
    struct signal_slot *slot = arg;
    struct job *job = slot->job;
    if (!job->is_running && supervise_asks_to_stop(slot->signal_number)) {
        job->code = EXIT_SIGNAL + slot->signal_number; /* while we still look for a meshd */
        finish(job);
        return;
    }
    step(job, (struct supervise_event){ .kind = EVENT_USER_SIGNAL, .signal_number = slot->signal_number });
    if (slot->signal_number == SIGTSTP) {
        (void)raise(SIGSTOP); /* the shell's `fg` sends us SIGCONT, which goes on to the ranks */
    }
}

static int watch_signals(struct job *job)
{
    for (size_t i = 0; i < ARRAY_SIZE(forwarded); i++) {
        struct signal_slot *slot = &job->signals[i];
        slot->job = job;
        slot->signal_number = forwarded[i];
        slot->handle = loop_signal_start(job->loop, forwarded[i], signal_cb, slot);
        if (slot->handle == NULL) {
            return mesh_last_error()->status;
        }
    }
    return 0;
}

/* Beginning and end ------------------------------------------------------------------------------------------------ */

/* An exit code: of the launcher when it is its fault. */
static int start_ranks(struct job *job, const struct launch *launch)
{
    sigset_t all, before;
    int code = EXIT_OK;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all,
                      &before); /* until exec a child has our handlers, which would write to our loop */
    for (int i = 0; i < n_ranks(job) && code == EXIT_OK; i++) {
        struct rank_process p;
        code = launch_rank(launch, i, &p);
        if (code == EXIT_OK) {
            job->pids[i] = p.pid;
            bool is_seen = run_output_add(job->output, i, p.output) == 0 && watch_rank(job, i) == 0;
            code = is_seen ? EXIT_OK : EXIT_LAUNCHER;
        }
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

static void created_cb(int code, void *arg)
{
    struct job *job = arg;
    job->code = code;
    if (code == EXIT_OK) {
        struct launch launch = job->options->launch;
        launch.job = job->create.job;
        launch.address = job->create.client.text;
        launch.folder = job->folder.path;
        job->code = start_ranks(job, &launch);
        if (job->code != EXIT_OK) {
            say("%s", mesh_last_error()->message);
        }
    }
    if (job->code != EXIT_OK) {
        finish(job);
        return;
    }
    job->is_running = true;
    supervise_init(&job->supervise, job->fates, n_ranks(job), &job->options->limits, clock_now_ms());
    step(job, (struct supervise_event){ .kind = EVENT_TIME });
}

static void died_cb(int rank, void *arg)
{
    step(arg, (struct supervise_event){ .kind = EVENT_DEATH_TOLD, .rank = rank });
}

static void absent_cb(int rank, void *arg)
{
    step(arg, (struct supervise_event){ .kind = EVENT_ABSENCE_TOLD, .rank = rank });
}

static void reported_cb(int rank, const char *sentence, void *arg)
{
    struct job *job = arg;
    if (job->reporter < 0) {
        job->reporter = rank;
        (void)snprintf(job->report, sizeof job->report, "%s", sentence);
    }
    step(job, (struct supervise_event){ .kind = EVENT_REPORT_TOLD, .rank = rank });
}

static void lost_cb(void *arg)
{
    const struct job *job = arg;
    say("meshd at %s is gone; the ranks go on without it", job->create.client.text);
}

static int job_init(struct job *job)
{
    size_t n = (size_t)n_ranks(job);
    job->fates = mem_zalloc(n * sizeof *job->fates);
    job->pids = mem_zalloc(n * sizeof *job->pids);
    job->slots = mem_zalloc(n * sizeof *job->slots);
    if (job->fates == NULL || job->pids == NULL || job->slots == NULL) {
        return err_no_memory(n * sizeof *job->slots, "the ranks of a job");
    }
    for (int i = 0; i < n_ranks(job); i++) {
        job->slots[i] = (struct rank_slot){ .job = job, .rank = i, .pid_fd = -1 };
    }
    job->loop = loop_new();
    if (job->loop == NULL) {
        return mesh_last_error()->status;
    }
    struct run_output_options output = {
        .loop = job->loop,
        .n_ranks = n_ranks(job),
        .is_tagged = job->options->launch.is_tagged,
        .has_color = { job->options->has_color[0], job->options->has_color[1] },
        .broken = output_broken_cb,
        .ended = output_ended_cb,
        .arg = job,
    };
    job->output = run_output_new(&output);
    return job->output != NULL ? watch_signals(job) : mesh_last_error()->status;
}

static void kill_and_reap(struct job *job)
{
    for (int i = 0; i < n_ranks(job) && job->slots != NULL; i++) {
        if (job->pids[i] > 0) {
            bool is_stuck = job->supervise.is_given_up && !job->fates[i].has_ended;
            (void)kill(-job->pids[i], SIGKILL);
            while (waitpid(job->pids[i], NULL, is_stuck ? WNOHANG : 0) < 0 && errno == EINTR) {
            }
        }
        if (job->slots[i].pid_fd >= 0) {
            (void)close(job->slots[i].pid_fd);
        }
    }
}

static void say_how_it_ended(const struct job *job)
{
    struct buf text = BUF_INIT;
    for (int i = 0; i < n_ranks(job) && job->options->is_verbose; i++) {
        buf_clear(&text);
        summary_write_rank(&job->supervise, job->pids, i, &text);
        say("%s", buf_text(&text));
    }
    buf_clear(&text);
    summary_write(&job->supervise, job->pids, &text);
    if (text.len > 0) {
        say("%s", buf_text(&text));
    }
    if (text.len > 0 && job->reporter >= 0) {
        say("rank %d reported: %s", job->reporter, job->report);
    }
    buf_fini(&text);
}

int run_job(const struct run_job_options *options)
{
    struct job job = { .options = options, .code = EXIT_LAUNCHER, .reporter = -1, .folder = PRIVATE_FOLDER_NONE };
    job.create = (struct run_create){ .options = options->create,
                                      .done = created_cb,
                                      .died = died_cb,
                                      .absent = absent_cb,
                                      .reported = reported_cb,
                                      .lost = lost_cb,
                                      .arg = &job };
    int r = job_init(&job);
    r = r == 0 ? run_folder_make(&job.folder) : r;
    job.create.loop = job.loop;
    job.create.options.folder = job.folder.path;
    if (r == 0) {
        run_create_start(&job.create);
    } else {
        say("%s", mesh_last_error()->message);
    }
    if (r != 0 && job.loop != NULL) {
        finish(&job);
    }
    if (job.loop != NULL && loop_run(job.loop) != 0) {
        say("%s", mesh_last_error()->message);
        job.code = EXIT_LAUNCHER;
    }
    kill_and_reap(&job);
    (void)loop_free(job.loop);
    if (job.is_running) {
        say_how_it_ended(&job);
    }
    run_create_fini(&job.create);
    private_folder_remove(&job.folder);
    mem_free(job.fates);
    mem_free(job.pids);
    mem_free(job.slots);
    restore_signals();
    return job.code;
}
