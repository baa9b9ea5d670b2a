/* client/ctl/client.c - a request to meshd: dial, hello and request in one go, answer or deadline.
 *
 * Happy path   connected; hello (request 1) and the question (request 2) are sent together; the answer to 2 is handed out.
 * Failures     nobody listens, the connection ends early, an answer with a status, the deadline: the first one is
 *              handed out.
 * The call is freed when its owner has closed it, and the dial or the connection is gone as well.
 *
 *      DIALLING --connected--> ASKING --answered, failed, too late--> ANSWERED --call_close()--> closed
 *          '-------- not connected, too late --------------------------^
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/util.h"
#include "ctl/run_folder.h"
#include "wire/codec.h"
#include "wire/default_address.h"

#define MAX_SHOWN 3 /* of private daemons, in a sentence */

enum { REQUEST_HELLO = 1, REQUEST_QUESTION = 2, PROTOCOL = 1 };

struct call {
    struct client *client;
    struct call_events events;
    struct dial *dial; /* at most one of these two is there */
    struct conn *conn;
    struct loop_timer *deadline;
    Mesh__V1__ClientMessage *question;
    bool is_answered, is_closed;
};

static void free_if_gone(struct call *call)
{
    if (call->is_closed && call->dial == NULL && call->conn == NULL) {
        mem_free(call);
    }
}

/* Once; the owner may close the call in there, so nothing is done with it afterwards. */
static void answer(struct call *call, int status, Mesh__V1__DaemonMessage *m)
{
    if (call->is_answered || call->is_closed) {
        codec_free_daemon(m);
        return;
    }
    call->is_answered = true;
    call->deadline = loop_timer_stop(call->deadline);
    call->events.answered(status, m, call->events.arg);
}

/* What failed is in the last error. */
static void fail(struct call *call)
{
    answer(call, mesh_last_error()->status, NULL);
}

static void take_answer(struct call *call, Mesh__V1__DaemonMessage *m)
{
    bool is_refusal = m->status != 0;
    bool is_answer = m->request == REQUEST_QUESTION;
    if (is_refusal) {
        (void)err_set(m->status, "%s", m->error != NULL && m->error[0] != '\0' ? m->error : "meshd refused it");
    }
    if (is_refusal || !is_answer) {
        codec_free_daemon(m);
    }
    if (is_refusal) {
        fail(call);
    } else if (is_answer) {
        answer(call, 0, m);
    }
}

/* After the answer: a notice, or the answer to call_send(). */
static void take_later(struct call *call, Mesh__V1__DaemonMessage *m)
{
    if (m->body_case == MESH__V1__DAEMON_MESSAGE__BODY_NOTICE && call->events.notice != NULL) {
        call->events.notice(m->notice, call->events.arg);
    }
    codec_free_daemon(m);
}

static void frame_cb(struct conn *c, const struct frame_header *header, const uint8_t *payload, void *arg)
{
    struct call *call = arg;
    (void)c;
    if (call->is_closed) {
        return;
    }
    Mesh__V1__DaemonMessage *m = codec_decode_daemon(payload, (size_t)header->length);
    if (m == NULL) {
        fail(call);
    } else if (call->is_answered) {
        take_later(call, m);
    } else {
        take_answer(call, m);
    }
}

static void closed_cb(struct conn *c, int status, const char *sentence, void *arg)
{
    struct call *call = arg;
    (void)c;
    call->conn = NULL;
    if (call->is_closed) {
        free_if_gone(call);
    } else if (call->is_answered) {
        if (call->events.lost != NULL) {
            call->events.lost(call->events.arg);
        }
    } else {
        bool is_plain_end = status == 0 || status == MESH_EPEER;
        (void)err_set(MESH_EDAEMON, "meshd at %.120s: %s", call->client->text,
                      is_plain_end ? "it ended the connection before it answered" : sentence);
        fail(call);
    }
}

int call_send(struct call *call, Mesh__V1__ClientMessage *m)
{
    m->request = REQUEST_QUESTION + 1;
    return call->conn != NULL ? codec_send_client(call->conn, m)
                              : err_set(MESH_EDAEMON, "the connection to meshd is gone");
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
    if (conn != NULL) {
        call->client->was_reached = true;
        conn_set_events(conn, &events, call);
    }
    if (call->is_closed) {
        conn_close(conn);
        free_if_gone(call);
    } else if (conn == NULL) {
        bool is_ours = status == MESH_ENOMEM || status == MESH_EIO; /* meshd may be there */
        (void)err_set(is_ours ? status : MESH_EDAEMON,
                      is_ours ? "cannot ask meshd at %.110s: %s"
                              : "no meshd answers at %.110s: start one with 'meshd', or name another with --address or "
                                "MESH_ADDRESS (%s)",
                      call->client->text, sentence);
        fail(call);
    } else if (send_question(call) != 0) {
        fail(call);
    }
}

static void deadline_cb(void *arg)
{
    struct call *call = arg;
    (void)err_set(call->client->was_reached ? MESH_ETIMEDOUT : MESH_EDAEMON,
                  "meshd at %.150s did not answer within %lld ms", call->client->text,
                  (long long)call->client->timeout_ms);
    fail(call);
}

struct call *call_start(struct loop *l, struct client *client, Mesh__V1__ClientMessage *m,
                        const struct call_events *events)
{
    struct call *call = mem_new(struct call);
    if (call == NULL) {
        (void)err_no_memory(sizeof *call, "a request to meshd");
        return NULL;
    }
    client->was_reached = false;
    call->client = client;
    call->events = *events;
    call->question = m;
    call->deadline = loop_timer_start(l, client->timeout_ms, 0, deadline_cb, call);
    if (call->deadline != NULL) {
        call->dial = dial_start(l, &client->address, client->timeout_ms, false, dialed_cb, call);
    }
    return call->dial != NULL ? call : call_close(call);
}

struct call *call_close(struct call *call)
{
    if (call != NULL && !call->is_closed) {
        call->is_closed = true;
        call->deadline = loop_timer_stop(call->deadline);
        if (call->conn != NULL) {
            conn_close(call->conn);
        } else if (call->dial != NULL) {
            dial_cancel(call->dial);
        }
        free_if_gone(call);
    }
    return NULL;
}

/* Waiting for it --------------------------------------------------------------------------------------------------- */

struct waiter {
    struct loop *loop;
    struct call *call;
    Mesh__V1__DaemonMessage *answer;
    mesh_error failure;
};

static void answered_cb(int status, Mesh__V1__DaemonMessage *m, void *arg)
{
    struct waiter *w = arg;
    w->answer = m;
    w->failure = status != 0 ? *mesh_last_error() : (mesh_error){ .status = MESH_OK };
    w->call = call_close(w->call);
    loop_stop(w->loop);
}

int client_call(struct client *client, Mesh__V1__ClientMessage *m, Mesh__V1__DaemonMessage **ret_reply)
{
    struct waiter w = { .loop = loop_new() };
    if (w.loop == NULL) {
        return mesh_last_error()->status;
    }
    w.call = call_start(w.loop, client, m, &(struct call_events){ .answered = answered_cb, .arg = &w });
    int r = 0;
    if (w.call == NULL) {
        w.failure = *mesh_last_error();
        loop_stop(w.loop);
    }
    r = loop_run(w.loop);
    (void)loop_free(w.loop);
    if (w.failure.status != 0) {
        r = err_restore(&w.failure);
    }
    if (r != 0) {
        codec_free_daemon(w.answer);
        return r;
    }
    *ret_reply = w.answer;
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

/* None: the error stands. */
static int find_private(int r, struct client *client)
{
    struct address found[MAX_SHOWN];
    size_t n = run_folder_sockets(found, ARRAY_SIZE(found));
    if (n == 0) {
        return r;
    }
    client->address = found[0];
    address_format(&client->address, client->text, sizeof client->text);
    if (n == 1) {
        return 0;
    }
    char other[sizeof client->text];
    address_format(&found[1], other, sizeof other);
    return err_set(MESH_EDAEMON, "several jobs have a private meshd: name one with --address: %.80s, %.80s%s",
                   client->text, other, n > 2 ? ", ..." : "");
}

int client_find_any(const struct ctl *ctl, struct client *ret_client)
{
    struct client client = { .timeout_ms = ctl->timeout_ms };
    int r = client_find(ctl, &client);
    bool is_nowhere = r == MESH_EDAEMON && !client.is_named;
    r = is_nowhere ? find_private(r, &client) : r;
    if (r == 0) {
        *ret_client = client;
    }
    return r;
}

int client_ask(const struct ctl *ctl, Mesh__V1__ClientMessage *m, int want_body, Mesh__V1__DaemonMessage **ret_reply)
{
    struct client client;
    Mesh__V1__DaemonMessage *reply = NULL;
    int r = client_find_any(ctl, &client);
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
