/* client/ctl/client.c - a blocking request: dial, hello and request in one go, answer or deadline.
 *
 * Happy path   connected; hello (request 1) and the question (request 2) are sent together; the answer to 2 ends it.
 * Failures     nobody listens, the connection ends early, an answer with a status, the deadline: the first one is kept.
 * In the end the connection is closed; when it is gone the loop stops.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "wire/codec.h"
#include "wire/default_address.h"
#include "wire/loop.h"

enum { REQUEST_HELLO = 1, REQUEST_QUESTION = 2, PROTOCOL = 1 };

struct call {
    struct client *client;
    struct loop *loop;
    struct dial *dial;
    struct conn *conn;
    struct loop_timer *deadline;
    Mesh__V1__ClientMessage *question;
    Mesh__V1__DaemonMessage *answer;
    bool is_over;
    int status;
    char sentence[256];
};

static void keep_failure(struct call *call, int status, const char *sentence)
{
    if (call->status == 0) {
        call->status = status;
        (void)snprintf(call->sentence, sizeof call->sentence, "%s", sentence);
    }
}

/* The loop ends when what is still open has closed: at once, or in closed_cb(). */
static void finish(struct call *call)
{
    if (call->is_over) {
        return;
    }
    call->is_over = true;
    call->deadline = loop_timer_stop(call->deadline);
    if (call->conn != NULL) {
        conn_close(call->conn);
    } else if (call->dial != NULL) {
        dial_cancel(call->dial);
    } else {
        loop_stop(call->loop);
    }
}

static void take_answer(struct call *call, const uint8_t *payload, size_t len)
{
    Mesh__V1__DaemonMessage *m = codec_decode_daemon(payload, len);
    if (m == NULL) {
        keep_failure(call, mesh_last_error()->status, mesh_last_error()->message);
        finish(call);
        return;
    }
    bool is_answer = m->request == REQUEST_QUESTION;
    if ((is_answer || m->request == REQUEST_HELLO) && m->status != 0) {
        keep_failure(call, m->status, m->error != NULL && m->error[0] != '\0' ? m->error : "meshd refused it");
    }
    if (is_answer) {
        call->answer = m;
    } else {
        codec_free_daemon(m);
    }
    if (is_answer || call->status != 0) {
        finish(call);
    }
}

static void frame_cb(struct conn *c, const struct frame_header *header, const uint8_t *payload, void *arg)
{
    struct call *call = arg;
    (void)c;
    if (!call->is_over) {
        take_answer(call, payload, (size_t)header->length);
    }
}

static void closed_cb(struct conn *c, int status, const char *sentence, void *arg)
{
    struct call *call = arg;
    (void)c;
    call->conn = NULL;
    if (!call->is_over) {
        bool is_plain_end = status == 0 || status == MESH_EPEER;
        keep_failure(call, MESH_EDAEMON, is_plain_end ? "meshd ended the connection before it answered" : sentence);
        finish(call);
    } else {
        loop_stop(call->loop);
    }
}

static int send_question(struct call *call)
{
    Mesh__V1__Hello hello = MESH__V1__HELLO__INIT;
    Mesh__V1__ClientMessage message = MESH__V1__CLIENT_MESSAGE__INIT;
    hello.protocol = PROTOCOL;
    hello.software = "meshctl " MESH_VERSION;
    message.request = REQUEST_HELLO;
    message.body_case = MESH__V1__CLIENT_MESSAGE__BODY_HELLO;
    message.hello = &hello;
    call->question->request = REQUEST_QUESTION;
    int r = codec_send_client(call->conn, &message);
    return r == 0 ? codec_send_client(call->conn, call->question) : r;
}

static void dialed_cb(struct conn *conn, int status, const char *sentence, void *arg)
{
    static const struct conn_events events = { .frame = frame_cb, .closed = closed_cb };
    struct call *call = arg;
    call->dial = NULL;
    call->conn = conn;
    if (conn == NULL) {
        keep_failure(call, status, sentence);
        if (call->is_over) {
            loop_stop(call->loop);
        } else {
            finish(call);
        }
        return;
    }
    call->client->was_reached = true;
    conn_set_events(conn, &events, call);
    if (call->is_over) {
        conn_close(conn);
    } else if (send_question(call) != 0) {
        keep_failure(call, mesh_last_error()->status, mesh_last_error()->message);
        finish(call);
    }
}

static void deadline_cb(void *arg)
{
    struct call *call = arg;
    char sentence[256];
    (void)snprintf(sentence, sizeof sentence, "meshd at %.150s did not answer within %lld ms", call->client->text,
                   (long long)call->client->timeout_ms);
    keep_failure(call, MESH_ETIMEDOUT, sentence);
    finish(call);
}

static int call_status(struct call *call)
{
    struct client *client = call->client;
    if (call->status == 0) {
        return call->answer != NULL ? 0 : err_set(MESH_EDAEMON, "meshd at %s gave no answer", client->text);
    }
    if (!client->was_reached && call->status != MESH_ENOMEM) {
        return err_set(MESH_EDAEMON,
                       "no meshd answers at %.110s: start one with 'meshd', or name another with --address or "
                       "MESH_ADDRESS (%s)",
                       client->text, call->sentence);
    }
    return err_set(call->status, "%s", call->sentence);
}

int client_call(struct client *client, Mesh__V1__ClientMessage *m, Mesh__V1__DaemonMessage **ret_reply)
{
    struct call call = { .client = client, .question = m, .loop = loop_new() };
    int r = 0;
    if (call.loop == NULL) {
        return mesh_last_error()->status;
    }
    client->was_reached = false;
    call.deadline = loop_timer_start(call.loop, client->timeout_ms, 0, deadline_cb, &call);
    call.dial = dial_start(call.loop, &client->address, client->timeout_ms, false, dialed_cb, &call);
    if (call.deadline == NULL || call.dial == NULL) {
        keep_failure(&call, mesh_last_error()->status, mesh_last_error()->message);
        finish(&call);
    }
    r = loop_run(call.loop);
    (void)loop_free(call.loop);
    r = r == 0 ? call_status(&call) : r;
    if (r != 0) {
        codec_free_daemon(call.answer);
        return r;
    }
    *ret_reply = call.answer;
    return 0;
}

int client_find(const struct ctl *ctl, struct client *ret_client)
{
    struct client client = { .timeout_ms = ctl->timeout_ms };
    const char *named = ctl->address != NULL ? ctl->address : getenv("MESH_ADDRESS");
    client.is_named = named != NULL && named[0] != '\0';
    if (client.is_named) {
        int r = address_parse(named, &client.address);
        if (r != 0) {
            return err_wrap(r, "%s", ctl->address != NULL ? "--address" : "MESH_ADDRESS");
        }
    } else if (!default_address_find(&client.address)) {
        return err_set(MESH_EDAEMON, "no meshd runs here and none was named: start one with 'meshd', or name one with "
                                     "--address or MESH_ADDRESS");
    }
    address_format(&client.address, client.text, sizeof client.text);
    *ret_client = client;
    return 0;
}

int client_ask(const struct ctl *ctl, Mesh__V1__ClientMessage *m, int want_body, Mesh__V1__DaemonMessage **ret_reply)
{
    struct client client;
    Mesh__V1__DaemonMessage *reply = NULL;
    int r = client_find(ctl, &client);
    r = r == 0 ? client_call(&client, m, &reply) : r;
    if (r == 0 && (int)reply->body_case != want_body) {
        r = err_set(MESH_EPROTO, "meshd at %s answered with another message than was asked for", client.text);
        codec_free_daemon(reply);
    }
    if (r == 0) {
        *ret_reply = reply;
    }
    return r;
}
