/* daemon/reply.c - answers and notices as frames.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/reply.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/reply_joined.h"
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

void reply_notice(struct client *c, uint64_t request, const struct notice *n, const char *sentence)
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
    m.request = request;
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_NOTICE;
    m.notice = &body;
    if (codec_send_daemon(c->conn, &m) < 0) {
        log_debug("daemon", "client %lu gets no notice: %s", (unsigned long)c->id, mesh_last_error()->message);
    }
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
        reply_notice(c, a->to.request, &a->notice, a->sentence);
        break;
    }
}
