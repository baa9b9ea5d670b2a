/* client/session/engine.c - one connection to meshd: requests with answers, messages without, notices.
 *
 * Happy path   engine_new() has the loop dial, then asks hello.  A call is packed on its caller's thread, enters the list of
 *              calls, and is posted to the loop, which sends it.  The answer that carries its number is hung into the call,
 *              and wakes the caller.
 * Failures     Nobody listens at the address: engine_new() fails at once, saying what to do.
 *              The connection ends, meshd says that it stops, or what it sends is not ours: LOST; all calls, pending
 *              and later, fail with the sentence that stands then.  Collectives go on, they need no meshd.  No answer
 *              in time: the call fails, the connection stays; a late answer finds no call and is dropped.
 *
 *      CONNECTING --dialled--> OPEN --closed, shutdown notice--> LOST
 *           '------- not reached --------------------------------^
 *
 * The list of calls and the state are guarded by the lock; `conn` and `dial` belong to the loop's thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "session/waiting.h"
#include "wire/dial.h"

#define PROTOCOL         1
#define CONNECT_LIMIT_MS 5000
#define ANSWER_LIMIT_MS  30000 /* for an answer that meshd need not wait for; and on top of what it may wait */
#define CLOSE_LIMIT_MS   10000
#define HAND_LIMIT_MS    1000 /* for the loop to hand a message without answer to the system */

enum state { CONNECTING, OPEN, LOST };

struct call {
    struct call *next;
    uint64_t number;
    Mesh__V1__DaemonMessage *answer; /* NULL: not yet */
};

struct engine {
    struct mesh_session *session;
    struct loop *loop;
    struct address address;
    char address_text[116]; /* a longer host name is cut */
    engine_notice_fn notice_fn;
    void *notice_arg;
    bool is_started; /* the loop knows it */

    struct dial *dial; /* the loop's */
    struct conn *conn; /* the loop's */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    enum state state;
    mesh_error lost;  /* why it is LOST */
    bool is_greeted;  /* hello was answered */
    bool is_drained;  /* everything that was posted has run */
    bool is_released; /* neither dial nor conn is left */
    uint64_t last_number;
    struct call *calls;
    uint64_t n_posted, n_handed; /* messages given to the loop; of those, handed on to the system */
};

struct outgoing {
    struct engine *engine;
    size_t len;
    uint8_t payload[];
};

const char *engine_address(const struct engine *e)
{
    return e->address_text;
}

/* The first reason stands. */
static void lose(struct engine *e, int status, const char *sentence)
{
    pthread_mutex_lock(&e->lock);
    if (e->state != LOST) {
        e->state = LOST;
        e->lost = (mesh_error){ .status = (mesh_status)status, .rank = -1, .where = "" };
        snprintf(e->lost.message, sizeof e->lost.message, "%s", sentence);
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->lock);
}

static void release(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->is_released = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

static void lose_connection(struct engine *e, int status, const char *sentence)
{
    char text[sizeof((mesh_error *)0)->message];
    pthread_mutex_lock(&e->lock);
    bool is_greeted = e->is_greeted;
    pthread_mutex_unlock(&e->lock);
    if (!is_greeted && (status == MESH_EPROTO || status == MESH_ETOOLARGE)) {
        snprintf(text, sizeof text, "what answers at %s is not a meshd of this version: %.80s", e->address_text,
                 sentence);
        lose(e, MESH_EPROTO, text);
        return;
    }
    if (!is_greeted && status == MESH_ENOMEM) {
        lose(e, status, sentence); /* of ours: meshd is not to blame */
        return;
    }
    snprintf(text, sizeof text, "meshd at %s is gone (%.50s); collectives go on, the store and new meshes need it",
             e->address_text, sentence[0] != 0 ? sentence : "closed");
    lose(e, MESH_EDAEMON, text);
}

/* What arrives ----------------------------------------------------------------------------------------------------- */

static void hear_notice(struct engine *e, const Mesh__V1__Notice *notice)
{
    if (notice->kind == MESH__V1__NOTICE__KIND__SHUTDOWN) {
        char text[sizeof((mesh_error *)0)->message];
        snprintf(text, sizeof text, "meshd at %s is stopping; collectives go on, the store and new meshes need it",
                 e->address_text);
        lose(e, MESH_EDAEMON, text);
        return;
    }
    e->notice_fn(notice, e->notice_arg);
    pthread_mutex_lock(&e->lock);
    pthread_cond_broadcast(&e->changed); /* it may have aborted the session */
    pthread_mutex_unlock(&e->lock);
}

/* Takes the answer; false: nobody waits for it. */
static bool deliver(struct engine *e, Mesh__V1__DaemonMessage *answer)
{
    pthread_mutex_lock(&e->lock);
    struct call *call = e->calls;
    while (call != NULL && call->number != answer->request) {
        call = call->next;
    }
    bool is_wanted = call != NULL && call->answer == NULL;
    if (is_wanted) {
        call->answer = answer;
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->lock);
    return is_wanted;
}

static void frame_cb(struct conn *c, const struct frame_header *header, const uint8_t *payload, void *arg)
{
    struct engine *e = arg;
    Mesh__V1__DaemonMessage *m = codec_decode_daemon(payload, (size_t)header->length);
    if (m == NULL) {
        lose_connection(e, err_last()->status, err_last()->message);
        conn_close(c);
        return;
    }
    if (m->body_case == MESH__V1__DAEMON_MESSAGE__BODY_NOTICE && m->request == 0) {
        hear_notice(e, m->notice);
    } else if (m->request == 0 && m->status < 0) {
        lose_connection(e, m->status, m->error); /* refused without having been asked: it closes the connection now */
    } else if (deliver(e, m)) {
        return;
    }
    codec_free_daemon(m);
}

static void closed_cb(struct conn *c, int status, const char *sentence, void *arg)
{
    (void)c;
    struct engine *e = arg;
    e->conn = NULL;
    lose_connection(e, status, sentence);
    release(e);
}

static const struct conn_events events = { .frame = frame_cb, .closed = closed_cb };

/* Connecting ------------------------------------------------------------------------------------------------------- */

static void not_reached(struct engine *e, int status, const char *sentence)
{
    char text[sizeof((mesh_error *)0)->message];
    snprintf(text, sizeof text, "no meshd: %.130s; start meshd, set MESH_ADDRESS to one, or use `meshctl run`",
             sentence);
    lose(e, status == MESH_EAUTH || status == MESH_ENOMEM ? status : MESH_EDAEMON, text);
}

static void dialled_cb(struct conn *conn, int status, const char *sentence, void *arg)
{
    struct engine *e = arg;
    e->dial = NULL;
    if (conn == NULL) {
        not_reached(e, status, sentence);
        release(e);
        return;
    }
    e->conn = conn;
    conn_set_events(conn, &events, e);
    pthread_mutex_lock(&e->lock);
    if (e->state == CONNECTING) {
        e->state = OPEN;
    }
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

static void dial_posted(void *arg)
{
    struct engine *e = arg;
    e->dial = dial_start(e->loop, &e->address, CONNECT_LIMIT_MS, false, dialled_cb, e);
    if (e->dial == NULL) {
        not_reached(e, err_last()->status, err_last()->message);
        release(e);
    }
}

static int wait_until_dialled(struct engine *e)
{
    int64_t deadline_ms = deadline_in(CONNECT_LIMIT_MS + CLOSE_LIMIT_MS);
    pthread_mutex_lock(&e->lock);
    while (e->state == CONNECTING && condition_wait(&e->changed, &e->lock, deadline_ms)) {
        continue;
    }
    enum state state = e->state;
    pthread_mutex_unlock(&e->lock);
    if (state == CONNECTING) {
        return err_set(MESH_ETIMEDOUT, "connecting to meshd at %s did not end", e->address_text);
    }
    return state == LOST ? err_restore(&e->lost) : 0;
}

static int greet(struct engine *e)
{
    Mesh__V1__Hello hello = MESH__V1__HELLO__INIT;
    Mesh__V1__ClientMessage m = MESH__V1__CLIENT_MESSAGE__INIT;
    Mesh__V1__DaemonMessage *answer = NULL;
    hello.protocol = PROTOCOL;
    hello.software = (char *)(uintptr_t) "libmeshclient " MESH_VERSION;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_HELLO;
    m.hello = &hello;
    int r = engine_call(e, &(struct engine_request){ .message = &m, .what = "hello" }, &answer);
    if (r < 0) {
        return r;
    }
    if (answer->status < 0) {
        r = err_set(answer->status, "meshd at %s: %s", e->address_text, answer->error);
    } else if (answer->body_case != MESH__V1__DAEMON_MESSAGE__BODY_HELLO) {
        r = err_set(MESH_EPROTO, "meshd at %s did not answer hello with hello", e->address_text);
    } else if (answer->hello->protocol != PROTOCOL) {
        r = err_set(
            MESH_EPROTO,
            "meshd at %s (%.40s) speaks protocol %u, this program (libmeshclient %s) %d: install versions that match",
            e->address_text, answer->hello->software, answer->hello->protocol, MESH_VERSION, PROTOCOL);
    }
    codec_free_daemon(answer);
    pthread_mutex_lock(&e->lock);
    e->is_greeted = r == 0;
    pthread_mutex_unlock(&e->lock);
    return r;
}

struct engine *engine_new(struct mesh_session *s, const char *address, engine_notice_fn fn, void *arg)
{
    struct address parsed;
    if (address_parse(address, &parsed) < 0) {
        return NULL;
    }
    struct loop *l = session_loop(s);
    struct engine *e = l != NULL ? mem_new(struct engine) : NULL;
    if (e == NULL) {
        if (l != NULL) {
            err_no_memory(sizeof *e, "the connection to meshd");
        }
        return NULL;
    }
    e->session = s;
    e->loop = l;
    e->address = parsed;
    e->notice_fn = fn;
    e->notice_arg = arg;
    address_format(&parsed, e->address_text, sizeof e->address_text);
    CHECK(pthread_mutex_init(&e->lock, NULL) == 0);
    condition_init(&e->changed);
    e->is_started = loop_post(l, dial_posted, e) == 0;
    if (!e->is_started || wait_until_dialled(e) < 0 || greet(e) < 0) {
        const mesh_error why = *err_last();
        engine_free(e);
        err_restore(&why);
        return NULL;
    }
    return e;
}

static void close_posted(void *arg)
{
    struct engine *e = arg;
    if (e->dial != NULL) {
        dial_cancel(e->dial);
    } else {
        conn_close(e->conn);
    }
    pthread_mutex_lock(&e->lock);
    e->is_drained = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

/* True when the loop no longer knows the engine: what was posted has run, and the connection is gone. */
static bool wait_until_forgotten(struct engine *e)
{
    int64_t deadline_ms = deadline_in(CLOSE_LIMIT_MS);
    if (loop_post(e->loop, close_posted, e) < 0) {
        return false;
    }
    pthread_mutex_lock(&e->lock);
    while (!(e->is_released && e->is_drained) && condition_wait(&e->changed, &e->lock, deadline_ms)) {
        continue;
    }
    bool is_forgotten = e->is_released && e->is_drained;
    pthread_mutex_unlock(&e->lock);
    return is_forgotten;
}

void engine_free(struct engine *e)
{
    if (e == NULL) {
        return;
    }
    PRE(!loop_is_current(e->loop));
    if (e->is_started && !wait_until_forgotten(e)) {
        log_error("session", "the connection to meshd at %s does not close, giving it up", e->address_text);
        return; /* the loop may still use it */
    }
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    mem_free(e);
}

/* Sending ---------------------------------------------------------------------------------------------------------- */

/* A message that cannot be sent ends the connection: someone waits for its answer, or for the report it carries. */
static void send_posted(void *arg)
{
    struct outgoing *o = arg;
    struct engine *e = o->engine;
    if (e->conn != NULL && conn_send(e->conn, o->payload, o->len) < 0) {
        lose_connection(e, err_last()->status, err_last()->message);
        conn_close(e->conn);
    }
    pthread_mutex_lock(&e->lock);
    e->n_handed++;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    mem_free(o);
}

static int post_message(struct engine *e, const Mesh__V1__ClientMessage *m)
{
    size_t len = mesh__v1__client_message__get_packed_size(m);
    if (len > FRAME_MAX_CONTROL_BYTES) {
        return err_set(MESH_ETOOLARGE, "a message of %zu bytes to meshd; at most %u can be sent", len,
                       FRAME_MAX_CONTROL_BYTES);
    }
    struct outgoing *o = mem_alloc(sizeof *o + len);
    if (o == NULL) {
        return err_no_memory(sizeof *o + len, "a message to meshd");
    }
    o->engine = e;
    o->len = len;
    mesh__v1__client_message__pack(m, o->payload);
    pthread_mutex_lock(&e->lock); /* so that messages are counted in the order in which they are sent */
    int r = loop_post(e->loop, send_posted, o);
    e->n_posted += r == 0;
    pthread_mutex_unlock(&e->lock);
    if (r < 0) {
        mem_free(o);
    }
    return r;
}

/* A process that has reported may end at once: the report must have left it by then. */
static void wait_until_handed(struct engine *e)
{
    int64_t deadline_ms = deadline_in(HAND_LIMIT_MS);
    pthread_mutex_lock(&e->lock);
    uint64_t n = e->n_posted;
    while (e->n_handed < n && condition_wait(&e->changed, &e->lock, deadline_ms)) {
        continue;
    }
    pthread_mutex_unlock(&e->lock);
}

void engine_send(struct engine *e, Mesh__V1__ClientMessage *message)
{
    message->request = 0;
    if (post_message(e, message) < 0) {
        log_warn("session", "meshd was not told: %s; the other ranks may learn of it late", err_last()->message);
    } else if (engine_may_wait(e)) {
        wait_until_handed(e);
    }
}

bool engine_may_wait(const struct engine *e)
{
    return !loop_is_current(e->loop);
}

/* The lock is held.  0: wait on. */
static int check_waiting(struct engine *e, const struct engine_request *request)
{
    bool is_aborted = atomic_load_explicit(&e->session->is_aborted, memory_order_acquire);
    if (is_aborted && !request->even_if_aborted) {
        return session_check(e->session, 0, NULL, 0);
    }
    return e->state == LOST ? err_restore(&e->lost) : 0;
}

/* The lock is held. */
static void enter(struct engine *e, struct call *call)
{
    call->number = ++e->last_number;
    call->next = e->calls;
    e->calls = call;
}

/* The lock is held. */
static void leave(struct engine *e, const struct call *call)
{
    struct call **at = &e->calls;
    while (*at != call) {
        at = &(*at)->next;
    }
    *at = call->next;
}

static int64_t answer_limit(const struct engine *e, const struct engine_request *request)
{
    int64_t usual_ms = request->limit_ms != 0 ? request->limit_ms : (int64_t)ANSWER_LIMIT_MS;
    int64_t limit_ms = MIN(usual_ms, e->session->timeout_ms);
    return request->wait_ms > INT64_MAX - limit_ms ? INT64_MAX : MAX(request->wait_ms, 0) + limit_ms;
}

/* The lock is held. */
static int wait_for_answer(struct engine *e, const struct engine_request *request, const struct call *call)
{
    int64_t limit_ms = answer_limit(e, request), deadline_ms = deadline_in(limit_ms);
    int r = 0;
    while (r == 0 && call->answer == NULL) {
        r = check_waiting(e, request);
        if (r == 0 && !condition_wait(&e->changed, &e->lock, deadline_ms)) {
            r = err_set(MESH_ETIMEDOUT,
                        "%s: meshd at %s did not answer within %" PRId64 " ms; is it stopped or overloaded?",
                        request->what, e->address_text, limit_ms);
        }
    }
    return call->answer != NULL ? 0 : r;
}

int engine_call(struct engine *e, const struct engine_request *request, Mesh__V1__DaemonMessage **ret_answer)
{
    struct call call = { .answer = NULL };
    pthread_mutex_lock(&e->lock);
    int r = check_waiting(e, request);
    if (r < 0) {
        pthread_mutex_unlock(&e->lock);
        return r;
    }
    enter(e, &call);
    pthread_mutex_unlock(&e->lock);

    request->message->request = call.number;
    r = post_message(e, request->message);

    pthread_mutex_lock(&e->lock);
    if (r == 0) {
        r = wait_for_answer(e, request, &call);
    }
    leave(e, &call);
    pthread_mutex_unlock(&e->lock);
    if (r == 0) {
        *ret_answer = call.answer;
    } else if (call.answer != NULL) {
        codec_free_daemon(call.answer);
    }
    return r;
}
