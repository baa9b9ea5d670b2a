/* daemon/client_conn.c - one client: hello first, then a request at a time to its handler.
 *
 * Happy path   accepted, credentials read, hello, requests; the connection ends: its rank (if it still is one) has died,
 *              which is told once who started it has said how, or LAST_WORD_MS later.
 * Failures     No frame within HELLO_TIMEOUT_MS, bytes that are no frames of ours, a message that does not decode, a
 *              first request other than hello: one log line, the connection is closed.  A request that is refused: its
 *              answer says why, the connection goes on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/client_conn.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "daemon/handlers.h"
#include "daemon/reply.h"
#include "daemon/snapshot.h"
#include "wire/codec.h"

enum need { ANYONE, KNOWN, RANK };

static const struct request_row {
    Mesh__V1__ClientMessage__BodyCase body_case;
    const char *name;
    request_handler handler;
    enum need need;
} rows[] = {
#define REQUEST(CASE, member, handler, need) { MESH__V1__CLIENT_MESSAGE__BODY_##CASE, #member, handler, need },
#include "daemon/requests.def"
#undef REQUEST
};

static const struct request_row *find_row(const Mesh__V1__ClientMessage *m)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].body_case == m->body_case) {
            return &rows[i];
        }
    }
    return NULL;
}

static int check_generation(const struct client *c)
{
    if (c->job != NULL && c->generation != 0 && c->generation != c->job->rendezvous.running) {
        return err_set(MESH_ESTALE, "this connection joined generation %u of job %.60s; generation %u runs now",
                       c->generation, c->job->rendezvous.job, c->job->rendezvous.running);
    }
    return 0;
}

static bool is_rank(const struct client *c)
{
    if (c->job == NULL) {
        return false;
    }
    int rank = liveness_rank_of(&c->job->liveness, c->id);
    return rank >= 0 && liveness_is_alive(&c->job->liveness, (uint32_t)rank);
}

static int check_need(const struct client *c, const struct request_row *row)
{
    if (row->need >= KNOWN && !c->has_said_hello) {
        return err_set(MESH_EPROTO, "%s: the first request of a connection must be hello", row->name);
    }
    if (row->need != RANK) {
        return 0;
    }
    int r = check_generation(c);
    if (r == 0 && !is_rank(c)) {
        return err_set(MESH_ESTATE, "%s: this connection is no rank of a running job; join one first", row->name);
    }
    return r;
}

void client_close(struct client *c)
{
    if (!c->is_closing) {
        c->is_closing = true;
        conn_close(c->conn);
    }
}

/* Answers, then ends the connection. */
static void reject(struct client *c, uint64_t request, int status, const char *sentence)
{
    log_info("daemon", "connection of pid %d (uid %u) closed: %s", (int)c->pid, c->uid, sentence);
    reply_status(c, request, status, sentence);
    client_close(c);
}

static void handle(struct client *c, const Mesh__V1__ClientMessage *m)
{
    const struct request_row *row = find_row(m);
    if (row == NULL) {
        reply_status(c, m->request, MESH_EUNSUPPORTED, "this meshd does not know the request");
        return;
    }
    err_clear();
    int r = check_need(c, row);
    if (r == 0) {
        r = row->handler(c, m);
    }
    if (r < 0 && !c->has_said_hello) {
        reject(c, m->request, r, mesh_last_error()->message);
        return;
    }
    if (r < 0) {
        const mesh_error why = *mesh_last_error();
        log_debug("daemon", "client %lu: %s refused: %s", (unsigned long)c->id, row->name, why.message);
        reply_status(c, m->request, r, why.message);
    }
    if (c->job != NULL) {
        liveness_seen(&c->job->liveness, c->id, clock_now_ms());
    }
    server_settle(c->server, c->job);
}

static void frame_cb(struct conn *conn, const struct frame_header *header, const uint8_t *payload, void *arg)
{
    (void)conn;
    struct client *c = arg;
    if (c->is_closing) {
        return;
    }
    if (header->kind != FRAME_CONTROL) {
        reject(c, 0, MESH_EPROTO, "a frame of the data plane on a control connection");
        return;
    }
    if (!c->has_said_hello && header->length > MAX_HELLO_BYTES) {
        reject(c, 0, MESH_ETOOLARGE, "the hello is too long");
        return;
    }
    Mesh__V1__ClientMessage *m = codec_decode_client(payload, header->length);
    if (m == NULL) {
        const mesh_error why = *mesh_last_error();
        reject(c, 0, why.status == MESH_ENOMEM ? MESH_ENOMEM : MESH_EPROTO, why.message);
        return;
    }
    handle(c, m);
    codec_free_client(m);
}

/* A job that lost a rank without a word: where that rank stood is said in the log. */
static void log_death(struct server *s, struct job *job)
{
    for (size_t i = 0; i < s->jobs.list.n; i++) {
        if (s->jobs.list.at[i] == job && job->liveness.n_dead > 0) {
            snapshot_log_verdict(s, job);
        }
    }
}

static void leave_job(struct client *c)
{
    struct server *s = c->server;
    struct job *job = c->job;
    c->job = NULL;
    for (size_t i = 0; i < s->jobs.list.n; i++) {
        store_client_gone(&s->jobs.list.at[i]->store, c->id); /* one may wait at the store of any job */
    }
    if (job == NULL || s->is_stopping) { /* then it is us who close, and nobody died */
        return;
    }
    uint8_t secret[SECRET_BYTES];
    bool has_secret = rng_secret(secret, sizeof secret) == 0;
    job_client_gone(job, c->id, has_secret ? secret : NULL, clock_now_ms(), &s->actions);
    job->n_attached--;
    server_settle(s, job);
    log_death(s, job);
}

static void forget(struct client *c)
{
    struct server *s = c->server;
    c->last_word = loop_timer_stop(c->last_word);
    leave_job(c);
    server_remove_client(s, c);
    mem_free(c);
}

static void last_word_cb(void *arg)
{
    forget(arg);
}

void client_last_word(struct server *s, uint64_t client)
{
    struct client *c = server_client(s, client);
    if (c != NULL && c->last_word != NULL) {
        forget(c);
    }
}

/* A rank is gone without a word, and who started it is there, and has not said yet how it ended. */
static bool is_explained_soon(const struct client *c)
{
    if (c->server->is_stopping || !is_rank(c)) {
        return false;
    }
    const struct liveness *l = &c->job->liveness;
    const struct client *watcher = server_client(c->server, l->watcher);
    return watcher != NULL && !watcher->is_closing && l->of[liveness_rank_of(l, c->id)].end[0] == 0;
}

static void closed_cb(struct conn *conn, int status, const char *sentence, void *arg)
{
    (void)conn;
    struct client *c = arg;
    bool is_ordinary = status == 0 || status == MESH_EPEER;
    log_at("daemon", is_ordinary ? LOG_DEBUG : LOG_INFO, "connection of pid %d ended: %s", (int)c->pid,
           is_ordinary ? "closed" : sentence);
    c->is_closing = true;
    c->last_word = is_explained_soon(c) ? loop_timer_start(c->server->loop, LAST_WORD_MS, 0, last_word_cb, c) : NULL;
    if (c->last_word == NULL) {
        forget(c);
    }
}

static const struct conn_events client_events = { .frame = frame_cb, .closed = closed_cb };

static void refused_cb(struct conn *conn, int status, const char *sentence, void *arg)
{
    (void)conn, (void)status, (void)sentence, (void)arg;
}

static void ignored_cb(struct conn *conn, const struct frame_header *header, const uint8_t *payload, void *arg)
{
    (void)conn, (void)header, (void)payload, (void)arg;
}

/* The connection was never a client. */
static void turn_away(struct conn *conn, const char *why)
{
    static const struct conn_events events = { .frame = ignored_cb, .closed = refused_cb };
    log_warn("daemon", "connection refused: %s", why);
    conn_set_events(conn, &events, NULL);
    conn_close(conn);
}

void client_accept(struct conn *conn, void *arg)
{
    struct server *s = arg;
    uid_t uid;
    pid_t pid;
    if (s->is_stopping) {
        turn_away(conn, "meshd is stopping");
        return;
    }
    if (conn_peer_credentials(conn, &uid, &pid) < 0) {
        turn_away(conn, mesh_last_error()->message);
        return;
    }
    if (s->clients.n >= s->config.max_clients) {
        turn_away(conn, "there are as many connections as --max-clients allows");
        return;
    }
    struct client *c = mem_new(struct client);
    if (c == NULL) {
        turn_away(conn, "out of memory");
        return;
    }
    *c = (struct client){ .server = s, .conn = conn, .id = ++s->n_accepted, .uid = uid, .pid = pid };
    if (server_add_client(s, c) < 0) {
        mem_free(c);
        turn_away(conn, "out of memory");
        return;
    }
    conn_set_events(conn, &client_events, c);
    conn_expect_frame_within(conn, HELLO_TIMEOUT_MS);
}

int client_attach(struct client *c, struct job *job)
{
    if (c->job == job) {
        return 0;
    }
    if (c->job != NULL) {
        return err_set(MESH_ESTATE, "this connection belongs to job %.60s already; use another one for job %.60s",
                       c->job->rendezvous.job, job->rendezvous.job);
    }
    c->job = job;
    job->n_attached++;
    return 0;
}

int client_find_job(struct client *c, const char *name, struct job **ret_job)
{
    if (name[0] != 0) {
        return jobs_find(&c->server->jobs, name, c->uid, ret_job);
    }
    if (c->job == NULL) {
        return err_set(MESH_ESTATE, "this connection belongs to no job: join one, or name it");
    }
    int r = check_generation(c);
    if (r == 0) {
        *ret_job = c->job;
    }
    return r;
}

bool client_may_see(const struct client *c, uid_t uid)
{
    return c->uid == 0 || c->uid == uid;
}

int client_find_shown(struct client *c, const char *name, struct job **ret_job)
{
    struct jobs *jobs = &c->server->jobs;
    if (name[0] != 0 || c->job != NULL) {
        return client_find_job(c, name, ret_job);
    }
    struct job *only = NULL;
    for (size_t i = 0; i < jobs->list.n; i++) {
        if (!client_may_see(c, jobs->list.at[i]->uid)) {
            continue;
        }
        if (only != NULL) {
            return err_set(MESH_EINVAL, "there are several jobs, among them %.40s and %.40s: name one",
                           only->rendezvous.job, jobs->list.at[i]->rendezvous.job);
        }
        only = jobs->list.at[i];
    }
    if (only == NULL) {
        return err_set(MESH_ENOTFOUND, "there is no job now");
    }
    *ret_job = only;
    return 0;
}
