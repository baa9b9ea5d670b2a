/* daemon/reply.c - answers and notices as frames.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/reply.h"

#include <limits.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/rings.h"
#include "wire/codec.h"

typedef Mesh__V1__DaemonMessage Message;

static void send_error(struct client *c, uint64_t request, int status, const char *sentence)
{
    Message m = MESH__V1__DAEMON_MESSAGE__INIT;
    m.request = request;
    m.status = status;
    m.error = (char *)sentence;
    if (codec_send_daemon(c->conn, &m) < 0) {
        log_debug("daemon", "client %lu gets no answer: %s", (unsigned long)c->id, mesh_last_error()->message);
    }
}

void reply_status(struct client *c, uint64_t request, int status, const char *sentence)
{
    if (request != 0) {
        send_error(c, request, status, status == 0 ? "" : sentence);
    }
}

void reply_message(struct client *c, uint64_t request, Message *m)
{
    if (request == 0) {
        return;
    }
    m->request = request;
    int r = codec_send_daemon(c->conn, m);
    if (r < 0 && r != MESH_EPEER) {
        const mesh_error why = *mesh_last_error();
        send_error(c, request, r, why.message);
    }
}

void reply_notice(struct client *c, const struct notice *n, const char *sentence)
{
    Mesh__V1__Notice body = MESH__V1__NOTICE__INIT;
    body.kind = (Mesh__V1__Notice__Kind)n->kind;
    body.rank = n->rank;
    body.status = n->status;
    body.group = n->group;
    body.sequence = n->sequence;
    body.culprit = n->culprit;
    body.sentence = (char *)sentence;
    Message m = MESH__V1__DAEMON_MESSAGE__INIT;
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_NOTICE;
    m.notice = &body;
    if (codec_send_daemon(c->conn, &m) < 0) {
        log_debug("daemon", "client %lu gets no notice: %s", (unsigned long)c->id, mesh_last_error()->message);
    }
}

static char *life_name(enum life state)
{
    static char *const names[] = { [LIFE_JOINED] = "joined", [LIFE_LEFT] = "left", [LIFE_DEAD] = "dead" };
    return names[state];
}

Mesh__V1__RankInfo **rank_table_new(const struct job *job, int64_t now_ms)
{
    size_t n = job->rendezvous.table == NULL ? 0 : job->rendezvous.size;
    size_t bytes = n * (sizeof(Mesh__V1__RankInfo *) + sizeof(Mesh__V1__RankInfo));
    Mesh__V1__RankInfo **rows = mem_alloc(bytes);
    if (rows == NULL) {
        err_no_memory(bytes, "a rank table");
        return NULL;
    }
    Mesh__V1__RankInfo *info = (Mesh__V1__RankInfo *)(void *)(rows + n);
    for (size_t i = 0; i < n; i++) {
        struct member *m = &job->rendezvous.table[i];
        const struct life_of *life = &job->liveness.of[i];
        mesh__v1__rank_info__init(&info[i]);
        info[i].rank = m->rank;
        info[i].host = m->host;
        info[i].pid = m->pid;
        info[i].local_rank = m->local_rank;
        info[i].n_address = m->n_addresses;
        info[i].address = m->address;
        info[i].state = life_name(life->state);
        info[i].age_ms = (uint64_t)(now_ms - life->last_ms);
        rows[i] = &info[i];
    }
    return rows;
}

static void reply_joined(struct client *c, struct job *job, const struct action *a)
{
    struct rendezvous *v = &job->rendezvous;
    Mesh__V1__RankInfo **rows = rank_table_new(job, clock_now_ms());
    if (rows == NULL) {
        reply_status(c, a->to.request, MESH_ENOMEM, mesh_last_error()->message);
        return;
    }
    Mesh__V1__Joined body = MESH__V1__JOINED__INIT;
    body.job = v->job;
    body.generation = v->running;
    body.rank = a->rank;
    body.size = v->size;
    body.local_rank = v->table[a->rank].local_rank;
    body.local_size = v->table[a->rank].local_size;
    body.secret = (ProtobufCBinaryData){ .len = SECRET_BYTES, .data = v->secret };
    char recorder[PATH_MAX];
    rings_path(c->server, job, a->rank, recorder, sizeof recorder);
    body.recorder = recorder;
    body.n_rank_table = v->size;
    body.rank_table = rows;
    Message m = MESH__V1__DAEMON_MESSAGE__INIT;
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_JOINED;
    m.joined = &body;
    c->generation = v->running;
    reply_message(c, a->to.request, &m);
    mem_free(rows);
}

static void reply_value(struct client *c, const struct action *a)
{
    Mesh__V1__StoreValue body = MESH__V1__STORE_VALUE__INIT;
    body.value = (ProtobufCBinaryData){ .len = a->value.len, .data = (uint8_t *)a->value.data };
    body.version = a->version;
    ProtobufCBinaryData *missing = mem_new_array(ProtobufCBinaryData, a->n_missing);
    for (size_t i = 0; missing != NULL && i < a->n_missing; i++) {
        missing[i] = (ProtobufCBinaryData){ .len = a->missing[i].len, .data = (uint8_t *)a->missing[i].data };
    }
    body.n_missing = missing != NULL ? a->n_missing : 0;
    body.missing = missing;
    Message m = MESH__V1__DAEMON_MESSAGE__INIT;
    m.status = a->status;
    m.error = (char *)a->sentence;
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_STORE_VALUE;
    m.store_value = &body;
    reply_message(c, a->to.request, &m);
    mem_free(missing);
}

static void reply_number(struct client *c, const struct action *a)
{
    Mesh__V1__StoreNumber body = MESH__V1__STORE_NUMBER__INIT;
    body.value = a->number;
    Message m = MESH__V1__DAEMON_MESSAGE__INIT;
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_STORE_NUMBER;
    m.store_number = &body;
    reply_message(c, a->to.request, &m);
}

void reply_action(struct server *s, struct job *job, const struct action *a)
{
    struct client *c = server_client(s, a->to.client);
    if (c == NULL || c->is_closing) {
        return;
    }
    switch (a->kind) {
    case ACTION_ANSWER:
        reply_status(c, a->to.request, a->status, a->sentence);
        break;
    case ACTION_JOINED:
        reply_joined(c, job, a);
        break;
    case ACTION_VALUE:
        reply_value(c, a);
        break;
    case ACTION_NUMBER:
        reply_number(c, a);
        break;
    case ACTION_NOTICE:
        reply_notice(c, &a->notice, a->sentence);
        break;
    }
}
