/* client/ctl/run_create.c - finds or starts a meshd and asks it for a job.
 *
 *      FINDING --somebody is named or there--> ASKING --answered--> done
 *         |                                      |
 *         '--- nobody is there, nobody was named, autostart: STARTING one's own, then ASKING it
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/run_create.h"

#include <stdio.h>
#include <sys/wait.h>

#include "base/error.h"
#include "ctl/say.h"
#include "wire/codec.h"

static void ask(struct run_create *c);

static void give_up(struct run_create *c, int status, int code)
{
    int said = say_failure(status);
    c->done(code != EXIT_OK ? code : said, c->arg);
}

static void start_private(struct run_create *c)
{
    int r = private_daemon_start(&c->daemon, c->options.folder, c->options.ctl->verbosity > 0);
    if (r != 0) {
        give_up(c, r, EXIT_LAUNCHER);
        return;
    }
    c->client.address = c->daemon.address;
    address_format(&c->client.address, c->client.text, sizeof c->client.text);
    say("no meshd runs here: started a private one for this job (pid %d)", (int)c->daemon.pid);
    ask(c);
}

static void not_found(struct run_create *c, int status)
{
    bool may_start = status == MESH_EDAEMON && !c->client.is_named && !c->client.was_reached && c->daemon.pid == 0;
    if (may_start && !c->options.no_autostart) {
        start_private(c);
    } else {
        give_up(c, status, EXIT_OK);
    }
}

static void answered_cb(int status, Mesh__V1__DaemonMessage *m, void *arg)
{
    struct run_create *c = arg;
    if (status != 0) {
        mesh_error why = *mesh_last_error();
        c->call = call_close(c->call);
        (void)err_restore(&why);
        not_found(c, status);
        return;
    }
    bool is_created = m->body_case == MESH__V1__DAEMON_MESSAGE__BODY_JOB_CREATED;
    if (is_created) {
        (void)snprintf(c->job, sizeof c->job, "%s", m->job_created->job);
    }
    codec_free_daemon(m);
    if (is_created) {
        c->done(EXIT_OK, c->arg);
    } else {
        give_up(c, err_set(MESH_EPROTO, "meshd at %.150s did not say which job it made", c->client.text), EXIT_OK);
    }
}

static void notice_cb(const Mesh__V1__Notice *notice, void *arg)
{
    struct run_create *c = arg;
    if (notice->kind == MESH__V1__NOTICE__KIND__RANK_DIED) {
        c->died(notice->rank, c->arg);
    } else if (notice->kind == MESH__V1__NOTICE__KIND__RANK_ABSENT) {
        c->absent(notice->rank, c->arg);
    } else if (notice->kind == MESH__V1__NOTICE__KIND__REPORT && notice->rank >= 0) {
        c->reported(notice->rank, notice->sentence, c->arg);
    } else if (notice->kind == MESH__V1__NOTICE__KIND__STILL_JOINING) {
        say("%s", notice->sentence);
    }
}

static void lost_cb(void *arg)
{
    struct run_create *c = arg;
    c->lost(c->arg);
}

static void ask(struct run_create *c)
{
    c->call =
        call_start(c->loop, &c->client, &c->message,
                   &(struct call_events){ .answered = answered_cb, .notice = notice_cb, .lost = lost_cb, .arg = c });
    if (c->call == NULL) {
        give_up(c, mesh_last_error()->status, EXIT_LAUNCHER);
    }
}

void run_create_start(struct run_create *c)
{
    mesh__v1__create_job__init(&c->question);
    mesh__v1__client_message__init(&c->message);
    c->question.job = (char *)(c->options.job != NULL ? c->options.job : "");
    c->question.size = (uint32_t)c->options.n_ranks;
    c->message.body_case = MESH__V1__CLIENT_MESSAGE__BODY_CREATE_JOB;
    c->message.create_job = &c->question;
    c->daemon = (struct private_daemon){ .life_fd = -1 };
    c->client = (struct client){ .timeout_ms = c->options.ctl->timeout_ms };
    int r = client_find(c->options.ctl, &c->client);
    if (r == 0) {
        ask(c);
    } else {
        not_found(c, r);
    }
}

/* That meshd is gone already is no failure of ours. */
static void tell(struct run_create *c, Mesh__V1__ClientMessage *m)
{
    if (c->call != NULL && c->job[0] != '\0') {
        (void)call_send(c->call, m);
    }
}

void run_create_rank_ended(struct run_create *c, int rank, pid_t pid, int wait_status)
{
    Mesh__V1__RankEnded ended = MESH__V1__RANK_ENDED__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    ended.job = c->job;
    ended.rank = (uint32_t)rank;
    ended.pid = (uint32_t)pid;
    ended.code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    ended.signal = WIFSIGNALED(wait_status) ? (uint32_t)WTERMSIG(wait_status) : 0;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_RANK_ENDED;
    m.rank_ended = &ended;
    tell(c, &m);
}

void run_create_end(struct run_create *c, int code)
{
    char reason[64] = "";
    Mesh__V1__EndJob end = MESH__V1__END_JOB__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    if (code != EXIT_OK) {
        (void)snprintf(reason, sizeof reason, "meshctl run ended with code %d", code);
    }
    end.job = c->job;
    end.reason = reason;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_END_JOB;
    m.end_job = &end;
    tell(c, &m);
    c->call = call_close(c->call);
}

void run_create_fini(struct run_create *c)
{
    private_daemon_stop(&c->daemon);
}
