/* daemon/server.c - the listener, all clients, the one timer, the end.
 *
 * Happy path   listen, tell ready_fd, serve; SIGTERM: everyone who waits is answered MESH_EABORTED, all are told SHUTDOWN,
 *              connections are flushed and closed, the socket file is removed, the loop ends.
 * Failures     The address cannot be had: an error at once.  A second signal ends without flushing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/client_conn.h"
#include "daemon/folder.h"
#include "daemon/reply.h"
#include "daemon/reply_joined.h"
#include "daemon/rings.h"

#define STOPPING "meshd is stopping"

static void arm_timer(struct server *s, int64_t deadline_ms);

/* The end of what server_stop() began. */
static void finish(struct server *s)
{
    s->timer = loop_timer_stop(s->timer);
    s->idle = loop_timer_stop(s->idle);
    s->life = loop_watch_stop(s->life);
    s->term = loop_signal_stop(s->term);
    s->interrupt = loop_signal_stop(s->interrupt);
    for (size_t i = 0; i < ARRAY_SIZE(s->meaningless); i++) {
        s->meaningless[i] = loop_signal_stop(s->meaningless[i]);
    }
    loop_stop(s->loop);
}

static void idle_cb(void *arg)
{
    struct server *s = arg;
    s->idle = loop_timer_stop(s->idle);
    if (s->clients.n == 0) {
        server_stop(s, "nobody has been connected for a while");
    }
}

static void watch_idleness(struct server *s)
{
    if (s->config.idle_ms > 0 && s->clients.n == 0 && !s->is_stopping) {
        s->idle = loop_timer_stop(s->idle);
        s->idle = loop_timer_start(s->loop, s->config.idle_ms, 0, idle_cb, s);
    }
}

int server_add_client(struct server *s, struct client *c)
{
    return map_set(&s->clients, &c->id, sizeof c->id, c, NULL);
}

void server_remove_client(struct server *s, struct client *c)
{
    map_remove(&s->clients, &c->id, sizeof c->id);
    if (s->is_stopping && s->clients.n == 0) {
        finish(s);
    }
    watch_idleness(s);
}

struct client *server_client(const struct server *s, uint64_t id)
{
    return map_get(&s->clients, &id, sizeof id);
}

/* Somebody may wait for an answer that could not be written down: its connection must not stay open without it. */
static void close_all_of(struct server *s, const struct job *job)
{
    log_error("daemon", "out of memory, closing all connections of job %s",
              job != NULL ? job->rendezvous.job : "(none)");
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&s->clients, &i)) != NULL;) {
        struct client *c = slot->value;
        if (job == NULL || c->job == job) {
            client_close(c);
        }
    }
}

static void send_actions(struct server *s, struct job *job)
{
    for (size_t i = 0; i < s->actions.list.n; i++) {
        reply_action(s, job, &s->actions.list.at[i]);
    }
    if (s->actions.failed) {
        close_all_of(s, job);
    }
    actions_clear(&s->actions);
    packed_table_forget(&s->packed_table);
}

static void forget_job(struct server *s, const struct job *job)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&s->clients, &i)) != NULL;) {
        struct client *c = slot->value;
        if (c->job == job) {
            c->job = NULL;
            c->generation = 0;
        }
    }
}

void server_settle(struct server *s, struct job *job)
{
    send_actions(s, job);
    if (job == NULL) {
        return;
    }
    char name[MAX_NAME_BYTES + 1];
    snprintf(name, sizeof name, "%s", job->rendezvous.job);
    uid_t uid = job->uid;
    uint64_t number = job->number;
    if (jobs_drop_if_over(&s->jobs, job, clock_now_ms(), &s->actions)) {
        const struct finished_job *f = &s->jobs.finished[(s->jobs.n_finished - 1) % MAX_FINISHED_JOBS];
        log_info("daemon", "job %s is over: %s%s%s", name, job_state_name(f->state), f->reason[0] != 0 ? ", " : "",
                 f->reason);
        forget_job(s, job);
        rings_remove(s, uid, number);
        send_actions(s, NULL);
        return;
    }
    arm_timer(s, job_next_deadline(job));
}

static void timer_cb(void *arg)
{
    struct server *s = arg;
    s->timer = loop_timer_stop(s->timer);
    s->timer_ms = INT64_MAX;
    int64_t now_ms = clock_now_ms();
    for (size_t i = s->jobs.list.n; i-- > 0;) { /* backwards: a job that is over leaves the list */
        struct job *job = s->jobs.list.at[i];
        job_tick(job, now_ms, &s->actions);
        server_settle(s, job);
    }
}

static void arm_timer(struct server *s, int64_t deadline_ms)
{
    if (deadline_ms >= s->timer_ms || s->is_stopping) {
        return;
    }
    loop_timer_stop(s->timer);
    int64_t delay_ms = MAX(deadline_ms - clock_now_ms(), 0);
    s->timer = loop_timer_start(s->loop, delay_ms, 0, timer_cb, s);
    s->timer_ms = s->timer != NULL ? deadline_ms : INT64_MAX;
}

void server_stop(struct server *s, const char *why)
{
    if (s->is_stopping) {
        _exit(EXIT_FAILURE); /* asked twice: at once */
    }
    log_info("daemon", "stopping: %s", why);
    s->is_stopping = true;
    for (size_t i = 0; i < s->jobs.list.n; i++) {
        job_stop(s->jobs.list.at[i], STOPPING, &s->actions);
        send_actions(s, s->jobs.list.at[i]);
    }
    const struct notice shutdown = { .kind = NOTICE_SHUTDOWN, .rank = -1, .culprit = -1, .status = MESH_EDAEMON };
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&s->clients, &i)) != NULL;) {
        struct client *c = slot->value;
        if (c->has_said_hello && !c->is_closing) {
            reply_notice(c, 0, &shutdown, STOPPING);
        }
        client_close(c);
    }
    s->listener = listener_free(s->listener);
    if (s->clients.n == 0) {
        finish(s);
    }
}

static void term_cb(void *arg)
{
    server_stop(arg, "SIGTERM");
}

static void interrupt_cb(void *arg)
{
    server_stop(arg, "SIGINT");
}

/* They would end a process that knows nothing of them; of a daemon people expect that it reloads, or says something. */
static const int meaningless[] = { SIGHUP, SIGUSR1, SIGUSR2 };

static void meaningless_cb(void *arg)
{
    (void)arg;
    log_info("daemon", "SIGHUP, SIGUSR1 and SIGUSR2 mean nothing here: options are read at the start, `meshctl status` "
                       "shows what runs");
}

static int watch_signals(struct server *s)
{
    s->term = loop_signal_start(s->loop, SIGTERM, term_cb, s);
    s->interrupt = loop_signal_start(s->loop, SIGINT, interrupt_cb, s);
    bool are_watched = s->term != NULL && s->interrupt != NULL;
    for (size_t i = 0; i < ARRAY_SIZE(meaningless) && are_watched; i++) {
        s->meaningless[i] = loop_signal_start(s->loop, meaningless[i], meaningless_cb, s);
        are_watched = s->meaningless[i] != NULL;
    }
    return are_watched ? 0 : mesh_last_error()->status;
}

static void life_cb(bool readable, bool writable, void *arg)
{
    (void)readable, (void)writable;
    struct server *s = arg;
    char byte;
    ssize_t n = read(s->config.life_fd, &byte, 1);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
        return;
    }
    s->life = loop_watch_stop(s->life);
    s->is_abandoned = true;
    server_stop(s, "the other end of --life-fd was closed");
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        log_debug("daemon", "up to %lu descriptors", (unsigned long)limit.rlim_cur);
    }
}

static int start(struct server *s)
{
    s->loop = loop_new();
    if (s->loop == NULL) {
        return mesh_last_error()->status;
    }
    s->listener = listener_new(s->loop, &s->config.address, client_accept, s);
    if (s->listener == NULL) {
        return mesh_last_error()->status;
    }
    struct address bound;
    rings_begin(s);
    listener_address(s->listener, &bound);
    address_format(&bound, s->address, sizeof s->address);
    if (watch_signals(s) < 0) {
        return mesh_last_error()->status;
    }
    if (s->config.life_fd >= 0) {
        s->life = loop_watch_start(s->loop, s->config.life_fd, true, false, life_cb, s);
        if (s->life == NULL) {
            return mesh_last_error()->status;
        }
    }
    watch_idleness(s);
    return 0;
}

static int tell_ready(const struct server *s)
{
    int fd = s->config.ready_fd;
    if (fd < 0) {
        return 0;
    }
    char line[sizeof s->address + 1];
    int len = snprintf(line, sizeof line, "%s\n", s->address);
    ssize_t n = write(fd, line, (size_t)len);
    close(fd);
    if (n != len) {
        return err_set(MESH_EIO, "--ready-fd %d: cannot write to it: %s", fd, strerror(errno));
    }
    return 0;
}

/* Also after a start that failed half way: what is left of handles is closed by the loop. */
static void server_fini(struct server *s)
{
    s->listener = listener_free(s->listener);
    if (s->loop != NULL && !s->is_stopping) {
        finish(s);
        loop_run(s->loop);
    }
    rings_end(s);
    loop_free(s->loop);
    map_fini(&s->clients);
    jobs_fini(&s->jobs);
    actions_fini(&s->actions);
}

int server_run(const struct server_config *config)
{
    struct server s = { .config = *config, .timer_ms = INT64_MAX, .started_ms = clock_now_ms(), .clients = MAP_INIT };
    jobs_init(&s.jobs, config->max_jobs);
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    int r = start(&s);
    if (r == 0) {
        log_info("daemon", "meshd %s listens on %s, pid %d", MESH_VERSION, s.address, (int)getpid());
        r = tell_ready(&s);
    }
    if (r == 0) {
        r = loop_run(s.loop);
    }
    const mesh_error why = *mesh_last_error();
    server_fini(&s);
    if (r < 0) {
        err_restore(&why);
    } else {
        log_info("daemon", "stopped");
    }
    if (s.is_abandoned) {
        folder_remove_orphan(config->address.path);
    }
    return r;
}
