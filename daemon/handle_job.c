/* daemon/handle_job.c - requests about jobs and their ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "daemon/handlers.h"
#include "daemon/reply.h"
#include "daemon/sentence.h"
#include "daemon/snapshot.h"

#define SOFTWARE "meshd " MESH_VERSION

struct ticket request_ticket(const struct client *c, const Mesh__V1__ClientMessage *m)
{
    return (struct ticket){ .client = c->id, .request = m->request };
}

int64_t request_deadline(int64_t now_ms, int64_t timeout_ms)
{
    if (timeout_ms < 0) {
        return -1;
    }
    return now_ms + (timeout_ms == 0 ? DEFAULT_TIMEOUT_MS : MIN(timeout_ms, MAX_TIMEOUT_MS));
}

static int64_t from_unsigned(uint64_t timeout_ms)
{
    return (int64_t)MIN(timeout_ms, (uint64_t)MAX_TIMEOUT_MS);
}

int handle_hello(struct client *c, const Mesh__V1__ClientMessage *m)
{
    if (c->has_said_hello) {
        return err_set(MESH_ESTATE, "hello: this connection has said hello already");
    }
    if (m->hello->protocol != MESHD_PROTOCOL) {
        char software[60];
        return err_set(MESH_EPROTO,
                       "meshd %s speaks protocol %d, this client (%s) speaks protocol %u: use matching versions",
                       MESH_VERSION, MESHD_PROTOCOL, sentence_clean(software, sizeof software, m->hello->software),
                       m->hello->protocol);
    }
    c->has_said_hello = true;
    Mesh__V1__HelloReply body = MESH__V1__HELLO_REPLY__INIT;
    body.protocol = MESHD_PROTOCOL;
    body.software = SOFTWARE;
    Mesh__V1__DaemonMessage reply = MESH__V1__DAEMON_MESSAGE__INIT;
    reply.body_case = MESH__V1__DAEMON_MESSAGE__BODY_HELLO;
    reply.hello = &body;
    reply_message(c, m->request, &reply);
    return 0;
}

int handle_create_job(struct client *c, const Mesh__V1__ClientMessage *m)
{
    if (c->job != NULL) {
        return err_set(MESH_ESTATE, "create job: this connection belongs to job %.60s already", c->job->rendezvous.job);
    }
    struct job *job;
    int64_t now_ms = clock_now_ms();
    int r = jobs_create(&c->server->jobs, m->create_job->job, m->create_job->size, c->uid, now_ms, &job);
    if (r == 0) {
        job->keep_until_ms = now_ms + KEEP_CREATED_MS;
        job->liveness.watcher = c->id;
        r = client_attach(c, job);
    }
    if (r < 0) {
        return r;
    }
    log_info("daemon", "job %s created: %u ranks, uid %u", job->rendezvous.job, job->rendezvous.size, c->uid);
    Mesh__V1__JobCreated body = MESH__V1__JOB_CREATED__INIT;
    body.job = job->rendezvous.job;
    body.generation = job->rendezvous.forming;
    Mesh__V1__DaemonMessage reply = MESH__V1__DAEMON_MESSAGE__INIT;
    reply.body_case = MESH__V1__DAEMON_MESSAGE__BODY_JOB_CREATED;
    reply.job_created = &body;
    reply_message(c, m->request, &reply);
    return 0;
}

int handle_end_job(struct client *c, const Mesh__V1__ClientMessage *m)
{
    struct job *job;
    int r = client_find_job(c, m->end_job->job, &job);
    if (r < 0) {
        return r;
    }
    char reason[200];
    sentence_clean(reason, sizeof reason, m->end_job->reason);
    log_info("daemon", "job %s ended%s%s", job->rendezvous.job, reason[0] != 0 ? ": " : "", reason);
    job_end(job, reason, &c->server->actions);
    actions_done(&c->server->actions, request_ticket(c, m));
    server_settle(c->server, job);
    return 0;
}

int handle_rank_ended(struct client *c, const Mesh__V1__ClientMessage *m)
{
    const Mesh__V1__RankEnded *told = m->rank_ended;
    struct ended_rank e = { .rank = told->rank, .pid = told->pid };
    struct job *job;
    int r = client_find_job(c, told->job, &job);
    if (r < 0) {
        return r;
    }
    if (told->signal != 0) {
        snprintf(e.words, sizeof e.words, "was killed by signal %u (%s)", told->signal,
                 told->signal < NSIG ? strsignal((int)told->signal) : "?");
    } else {
        snprintf(e.words, sizeof e.words, "exited with code %d", told->code);
    }
    log_debug("daemon", "job %s: rank %u (pid %u) %s", job->rendezvous.job, e.rank, e.pid, e.words);
    r = job_rank_ended(job, &e, &c->server->actions);
    if (r == 0) {
        uint64_t gone = liveness_client_of(&job->liveness, e.rank);
        actions_done(&c->server->actions, request_ticket(c, m));
        server_settle(c->server, job); /* the job may be over now */
        client_last_word(c->server, gone);
    }
    return r;
}

/* A job nobody created is made by the first who wants to join it with a size. */
static int find_or_create(struct client *c, const Mesh__V1__Join *join, struct job **ret_job)
{
    int r = client_find_job(c, join->job, ret_job);
    if (r != MESH_ENOTFOUND || join->size == 0) {
        return r;
    }
    r = jobs_create(&c->server->jobs, join->job, join->size, c->uid, clock_now_ms(), ret_job);
    if (r == 0) {
        log_info("daemon", "job %s begun by pid %d: %u ranks, uid %u", join->job, (int)c->pid, join->size, c->uid);
    }
    return r;
}

static int join(struct client *c, const Mesh__V1__ClientMessage *m, struct job *job)
{
    uint8_t secret[SECRET_BYTES];
    int r = rng_secret(secret, sizeof secret);
    if (r < 0) {
        return r;
    }
    char host[MAX_HOST_BYTES];
    int64_t now_ms = clock_now_ms();
    const struct join_call call = {
        .who = request_ticket(c, m),
        .size = m->join->size,
        .rank = m->join->rank,
        .slot = m->join->local_slot,
        .pid = m->join->pid != 0 ? m->join->pid : (uint32_t)c->pid,
        .host = sentence_clean(host, sizeof host, m->join->host),
        .address = m->join->address,
        .n_addresses = m->join->n_address,
        .generation = m->join->generation,
        .now_ms = now_ms,
        .deadline_ms = request_deadline(now_ms, from_unsigned(m->join->timeout_ms)),
    };
    uint32_t before = job->rendezvous.running;
    r = job_join(job, &call, secret, &c->server->actions);
    explicit_bzero(secret, sizeof secret);
    if (job->rendezvous.running != before) {
        log_info("daemon", "job %s: generation %u runs with %u ranks", job->rendezvous.job, job->rendezvous.running,
                 job->rendezvous.size);
    }
    return r;
}

int handle_join(struct client *c, const Mesh__V1__ClientMessage *m)
{
    struct job *job;
    const char *name = m->join->job;
    if (c->job != NULL && name[0] != 0 && strcmp(name, c->job->rendezvous.job) != 0) {
        return err_set(MESH_ESTATE, "join: this connection belongs to job %.60s already; use another one for job %.60s",
                       c->job->rendezvous.job, name);
    }
    c->generation = 0; /* joins anew: whatever it was before is no longer asked for */
    int r = find_or_create(c, m->join, &job);
    if (r < 0) {
        return r;
    }
    bool was_attached = c->job == job;
    r = client_attach(c, job);
    if (r < 0) {
        return r;
    }
    r = join(c, m, job);
    if (r < 0 && !was_attached) {
        const mesh_error why = *mesh_last_error();
        c->job = NULL;
        job->n_attached--;
        server_settle(c->server, job);
        err_restore(&why);
    }
    return r;
}

int handle_leave(struct client *c, const Mesh__V1__ClientMessage *m)
{
    if (c->job == NULL) {
        return err_set(MESH_ESTATE, "leave: this connection belongs to no job");
    }
    uint8_t secret[SECRET_BYTES];
    bool has_secret = rng_secret(secret, sizeof secret) == 0;
    struct actions *actions = &c->server->actions;
    int r = job_leave(c->job, c->id, has_secret ? secret : NULL, clock_now_ms(), actions);
    if (r == 0) {
        actions_done(actions, request_ticket(c, m));
    }
    return r;
}

/* The first that was found stands: later there are ranks that gave up. */
static bool find_cause(const struct client *c, const struct report *r, uint32_t rank, struct blame *ret_blame)
{
    struct job *job = c->job;
    bool is_known = job->blame.generation == job->rendezvous.running && job->blame.group == r->group;
    if (!is_known && !snapshot_find_cause(c->server, job, r, rank, &job->blame)) {
        return false;
    }
    *ret_blame = job->blame;
    return job->blame.culprit != (int32_t)rank; /* it would wait for itself */
}

/* A rank that timed out knows only whom it waits for; that one may wait for another itself. */
static void blame_cause(const struct client *c, struct report *r, int rank, char *sentence, size_t cap)
{
    struct blame blame;
    if (r->status != MESH_ETIMEDOUT || rank < 0 || !find_cause(c, r, (uint32_t)rank, &blame)) {
        return;
    }
    size_t used = strlen(sentence);
    if (blame.culprit >= 0 && blame.culprit == r->culprit) { /* its host and pid stand before */
        const char *deeds = strstr(blame.words, "): ");
        snprintf(sentence + used, cap - used, "; rank %d: %s", blame.culprit, deeds != NULL ? deeds + 3 : blame.words);
    } else {
        r->culprit = blame.culprit >= 0 ? blame.culprit : r->culprit;
        snprintf(sentence + used, cap - used, "; %s%s", blame.culprit >= 0 ? "the cause is " : "", blame.words);
    }
}

int handle_report(struct client *c, const Mesh__V1__ClientMessage *m)
{
    char sentence[256];
    struct report report = {
        .status = m->report->status,
        .culprit = m->report->rank < (int64_t)c->job->rendezvous.size ? MAX(m->report->rank, -1) : -1,
        .group = m->report->group,
        .sequence = m->report->sequence,
        .sentence = sentence_clean(sentence, sizeof sentence, m->report->sentence),
    };
    int rank = liveness_rank_of(&c->job->liveness, c->id);
    log_info("daemon", "job %s: rank %d reports %s: %s", c->job->rendezvous.job, rank,
             mesh_status_name((mesh_status)report.status), sentence);
    blame_cause(c, &report, rank, sentence, sizeof sentence);
    int r = liveness_report(&c->job->liveness, request_ticket(c, m), &report, &c->server->actions);
    if (r == 0) {
        server_settle(c->server, c->job); /* the others hear of it first */
    }
    if (r == 0 && c->job != NULL && report.status != MESH_EABORTED) {
        snapshot_log_verdict(c->server, c->job);
    }
    return r;
}

int handle_barrier(struct client *c, const Mesh__V1__ClientMessage *m)
{
    int64_t now_ms = clock_now_ms();
    const struct barrier_call call = {
        .who = request_ticket(c, m),
        .rank = (uint32_t)liveness_rank_of(&c->job->liveness, c->id),
        .name = m->barrier->name,
        .member = m->barrier->member,
        .n_members = m->barrier->n_member,
        .now_ms = now_ms,
        .deadline_ms = request_deadline(now_ms, from_unsigned(m->barrier->timeout_ms)),
    };
    return barrier_arrive(&c->job->barriers, &call, &c->job->liveness, &c->server->actions);
}

int handle_agree(struct client *c, const Mesh__V1__ClientMessage *m)
{
    int64_t now_ms = clock_now_ms();
    const struct agree_call call = {
        .who = request_ticket(c, m),
        .rank = (uint32_t)liveness_rank_of(&c->job->liveness, c->id),
        .key = m->agree->key,
        .member = m->agree->member,
        .n_members = m->agree->n_member,
        .descriptor = m->agree->descriptor,
        .now_ms = now_ms,
        .deadline_ms = request_deadline(now_ms, from_unsigned(m->agree->timeout_ms)),
    };
    return agree_post(&c->job->agreements, &call, &c->job->liveness, &c->server->actions);
}

int handle_group_record(struct client *c, const Mesh__V1__ClientMessage *m)
{
    char name[MAX_NAME_BYTES + 1];
    const struct group_call call = {
        .group = m->group_record->group,
        .name = sentence_clean(name, sizeof name, m->group_record->name),
        .member = m->group_record->member,
        .n_members = m->group_record->n_member,
        .world_size = c->job->rendezvous.size,
    };
    int r = records_group(&c->job->records, &call);
    if (r == 0) {
        actions_done(&c->server->actions, request_ticket(c, m));
    }
    return r;
}
