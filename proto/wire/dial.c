/* proto/wire/dial.c - resolve a name and connect to one of its addresses.
 *
 * Happy path   Resolve (a unix path and a numeric host need none), connect to the first address, hand over the conn.
 * Failures     An address refuses: try the next.  None left, or the name does not resolve: when told to keep trying and
 *              the reason may pass, wait, double the wait, begin again; else fn() gets the reason.
 *              Past the deadline: MESH_ETIMEDOUT with the last reason.  dial_cancel(): MESH_EABORTED.
 *
 *      START --> RESOLVING --> CONNECTING --> DONE      (the deadline and dial_cancel() lead to DONE from anywhere)
 *                  ^  |          |  ^ |
 *                  |  |          |  '-'  next address
 *                  |  '-> WAITING <'
 *                  '---------'
 *
 * fn() is called on the way into DONE, always from the loop.  The dial itself lives until libuv has let go of its
 * requests: a name server that does not answer holds the memory, not the caller.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/dial.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "base/util.h"
#include "wire/machine.h"
#include "wire/uv_glue.h"

#define MAX_TARGETS    8
#define FIRST_PAUSE_MS 10
#define LAST_PAUSE_MS  1000

enum state { START, RESOLVING, CONNECTING, WAITING, DONE, N_STATES };

static const struct machine_state states[N_STATES] = {
    [START] = { "START", TO(RESOLVING) | TO(DONE), MACHINE_INITIAL },
    [RESOLVING] = { "RESOLVING", TO(CONNECTING) | TO(WAITING) | TO(DONE), 0 },
    [CONNECTING] = { "CONNECTING", TO(CONNECTING) | TO(WAITING) | TO(DONE), 0 },
    [WAITING] = { "WAITING", TO(RESOLVING) | TO(DONE), 0 },
    [DONE] = { "DONE", 0, MACHINE_FINAL },
};

struct dial {
    struct machine machine;
    struct loop *loop;
    struct address address;
    int64_t timeout_ms, pause_ms;
    bool keep_trying;
    dial_fn fn;
    void *arg;

    struct loop_timer *timer, *deadline;
    uv_getaddrinfo_t resolve;
    uv_connect_t connect;
    int n_requests; /* that libuv holds */
    struct sockaddr_storage targets[MAX_TARGETS];
    int n_targets, target;
    struct conn *conn; /* being connected */

    /* What happened; dial_step() looks at these. */
    bool is_timer_over, is_late, is_cancelled;
    int uv_status; /* of the last step */
};

static void dial_step(struct dial *d); /* every decision is in here */

static bool may_pass(int uv_status)
{
    static const int passing[] = { UV_ECONNREFUSED, UV_ECONNRESET,   UV_ENOENT,      UV_EAGAIN,
                                   UV_ETIMEDOUT,    UV_EHOSTUNREACH, UV_ENETUNREACH, UV_EAI_AGAIN };
    for (size_t i = 0; i < ARRAY_SIZE(passing); i++) {
        if (passing[i] == uv_status) {
            return true;
        }
    }
    return false;
}

/* Steps ------------------------------------------------------------------------------------------------------------- */

static void resolved_cb(uv_getaddrinfo_t *request, int uv_status, struct addrinfo *list)
{
    struct dial *d = container_of(request, struct dial, resolve);
    d->n_requests--;
    d->uv_status = uv_status;
    d->n_targets = 0;
    for (struct addrinfo *a = list; a && d->n_targets < MAX_TARGETS; a = a->ai_next) {
        memcpy(&d->targets[d->n_targets++], a->ai_addr, a->ai_addrlen);
    }
    if (uv_status == 0 && d->n_targets == 0) {
        d->uv_status = UV_EAI_NODATA;
    }
    uv_freeaddrinfo(list);
    dial_step(d);
}

static void connected_cb(uv_connect_t *request, int uv_status)
{
    struct dial *d = container_of(request, struct dial, connect);
    d->n_requests--;
    d->uv_status = uv_status;
    dial_step(d);
}

/* Leaves a request pending, or the outcome in uv_status. */
static void begin_resolving(struct dial *d)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    const struct address *a = &d->address;
    char port[16];
    d->target = 0;
    d->n_targets = 1;
    d->uv_status = 0;
    if (a->is_unix || uv_ip4_addr(a->host, a->port, (struct sockaddr_in *)&d->targets[0]) == 0 ||
        uv_ip6_addr(a->host, a->port, (struct sockaddr_in6 *)&d->targets[0]) == 0) {
        return;
    }
    snprintf(port, sizeof port, "%d", a->port);
    d->uv_status = uv_getaddrinfo(loop_uv(d->loop), &d->resolve, resolved_cb, a->host, port, &hints);
    d->n_requests += d->uv_status == 0;
}

static void begin_connecting(struct dial *d)
{
    d->conn = conn_new(d->loop, d->address.is_unix);
    if (!d->conn) {
        d->uv_status = UV_ENOMEM;
    } else if (d->address.is_unix) {
        uv_pipe_connect(&d->connect, (uv_pipe_t *)conn_stream(d->conn), d->address.path, connected_cb);
        d->n_requests++;
    } else {
        d->uv_status = uv_tcp_connect(&d->connect, (uv_tcp_t *)conn_stream(d->conn),
                                      (const struct sockaddr *)&d->targets[d->target], connected_cb);
        d->n_requests += d->uv_status == 0;
    }
}

static void drop_conn(struct dial *d)
{
    conn_close(d->conn); /* a pending uv_connect ends with UV_ECANCELED */
    d->conn = NULL;
}

static void begin_waiting(struct dial *d)
{
    d->is_timer_over = false;
    loop_timer_set(d->timer, d->pause_ms, 0);
    d->pause_ms = MIN(d->pause_ms * 2, (int64_t)LAST_PAUSE_MS);
}

static void report(struct dial *d)
{
    char name[300], sentence[sizeof((mesh_error *)0)->message];
    struct conn *conn = d->conn;
    int status = status_from_uv(d->uv_status);
    d->conn = NULL;
    d->timer = loop_timer_stop(d->timer);
    d->deadline = loop_timer_stop(d->deadline);
    if (conn) {
        conn_opened(conn);
        d->fn(conn, 0, "", d->arg);
        return;
    }
    address_format(&d->address, name, sizeof name);
    if (d->is_cancelled) {
        status = MESH_EABORTED;
        snprintf(sentence, sizeof sentence, "connecting to %.160s was given up", name);
    } else if (d->is_late) {
        status = MESH_ETIMEDOUT;
        snprintf(sentence, sizeof sentence, "cannot connect to %.160s within %lld ms: %s", name,
                 (long long)d->timeout_ms, d->uv_status < 0 ? text_from_uv(d->uv_status) : "no answer");
    } else {
        snprintf(sentence, sizeof sentence, "cannot connect to %.160s: %s", name, text_from_uv(d->uv_status));
    }
    d->fn(NULL, status, sentence, d->arg);
}

static void finish(struct dial *d)
{
    machine_move(&d->machine, DONE);
    report(d);
}

/* The last address failed, or there is none. */
static void wait_or_finish(struct dial *d)
{
    if (d->keep_trying && may_pass(d->uv_status)) {
        machine_move(&d->machine, WAITING);
        begin_waiting(d);
    } else {
        finish(d);
    }
}

static void dial_step(struct dial *d)
{
    if ((d->is_late || d->is_cancelled) && d->machine.state != DONE) {
        if (d->machine.state == RESOLVING) {
            uv_cancel((uv_req_t *)&d->resolve); /* may be too late for that: then its callback comes when it comes */
        }
        drop_conn(d);
        finish(d);
    }
    for (;;) {
        switch ((enum state)d->machine.state) {
        case START:
        case WAITING:
            if (!d->is_timer_over) {
                return; /* waits for the timer */
            }
            machine_move(&d->machine, RESOLVING);
            begin_resolving(d);
            continue;
        case RESOLVING:
            if (d->n_requests > 0) {
                return; /* waits for uv_getaddrinfo */
            }
            if (d->uv_status < 0) {
                wait_or_finish(d);
                continue;
            }
            machine_move(&d->machine, CONNECTING);
            begin_connecting(d);
            continue;
        case CONNECTING:
            if (d->n_requests > 0) {
                return; /* waits for uv_connect */
            }
            if (d->uv_status == 0) {
                finish(d);
                continue;
            }
            drop_conn(d);
            if (++d->target < d->n_targets) {
                machine_move(&d->machine, CONNECTING);
                begin_connecting(d);
            } else {
                wait_or_finish(d);
            }
            continue;
        case DONE:
            if (d->n_requests == 0) {
                mem_free(d);
            }
            return; /* waits for the last request */
        case N_STATES:
            CHECK(false);
        }
    }
}

/* Starting and cancelling ------------------------------------------------------------------------------------------- */

static void timer_fired(void *arg)
{
    struct dial *d = arg;
    d->is_timer_over = true;
    dial_step(d);
}

static void deadline_fired(void *arg)
{
    struct dial *d = arg;
    d->is_late = true;
    dial_step(d);
}

struct dial *dial_start(struct loop *l, const struct address *a, int64_t timeout_ms, bool keep_trying, dial_fn fn,
                        void *arg)
{
    struct dial *d = mem_new(struct dial);
    if (!d) {
        err_no_memory(sizeof *d, "a connection");
        return NULL;
    }
    d->loop = l;
    d->address = *a;
    d->timeout_ms = timeout_ms;
    d->pause_ms = FIRST_PAUSE_MS;
    d->keep_trying = keep_trying;
    d->fn = fn;
    d->arg = arg;
    machine_init(&d->machine, "dial", states, N_STATES);
    d->timer = loop_timer_start(l, 0, 0, timer_fired, d); /* so that fn is never called before we return */
    d->deadline = loop_timer_start(l, timeout_ms, 0, deadline_fired, d);
    if (!d->timer || !d->deadline) {
        loop_timer_stop(d->timer);
        loop_timer_stop(d->deadline);
        return mem_free(d);
    }
    return d;
}

void dial_cancel(struct dial *d)
{
    if (d) {
        d->is_cancelled = true;
        loop_timer_set(d->timer, 0, 0);
    }
}
