/* proto/wire/conn.c - one framed control connection.
 *
 * Happy path   Connected by dial or listener (or already, conn_open()).  Each whole frame that arrives goes to frame();
 *              conn_send() queues.  conn_close(): what is queued is written, libuv lets go, closed(0), freed.
 * Failures     The other side ends or resets              MESH_EPEER
 *              A write finds the other side gone          MESH_EPEER, after what it still had said was read (1 s at most)
 *              A header that is not ours, not control     MESH_EPROTO
 *              A length over FRAME_MAX_CONTROL_BYTES      MESH_ETOOLARGE, before anything is allocated for it
 *              CONN_MAX_QUEUED_BYTES wait to be written   MESH_ETOOLARGE
 *              No frame within the time asked for         MESH_ETIMEDOUT
 *              Anything else of the system                MESH_EIO, MESH_ENOMEM
 *              The first reason stands.  Frames after it are not handed out.
 *
 *     NEW --connected--> OPEN --conn_close()--> FLUSHING --written, failed or 1 s--> CLOSING --uv let go--> CLOSED
 *      |                  '----------- ended or failed ---------------------------------^
 *      '--------------------------- never connected ------------------------------------'
 *
 * closed() is called in CLOSED only, from uv's close callback: so exactly once, and never from inside a conn_ call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/conn.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/util.h"
#include "wire/machine.h"
#include "wire/uv_glue.h"

#define READ_BYTES      ((size_t)64 << 10)  /* room offered for one read */
#define KEEP_BYTES      ((size_t)256 << 10) /* a bigger input buffer is given back when it is empty */
#define HEADER_MIN      10                  /* from here on a header shows its length, kind and version */
#define FLUSH_MS        1000
#define LAST_WORDS_MS   1000
#define KEEPALIVE_AFTER 15 /* seconds of silence on tcp */

enum state { NEW, OPEN, FLUSHING, CLOSING, CLOSED, N_STATES };

static const struct machine_state states[N_STATES] = {
    [NEW] = { "NEW", TO(OPEN) | TO(CLOSING), MACHINE_INITIAL },
    [OPEN] = { "OPEN", TO(FLUSHING) | TO(CLOSING), 0 },
    [FLUSHING] = { "FLUSHING", TO(CLOSING), 0 },
    [CLOSING] = { "CLOSING", TO(CLOSED), 0 },
    [CLOSED] = { "CLOSED", 0, MACHINE_FINAL },
};

struct conn {
    struct machine machine;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tcp_t tcp;
    } uv;
    bool is_unix, is_reading;
    const struct conn_events *events; /* NULL: nobody listens */
    void *arg;
    struct buf in;            /* arrived, not yet handed out */
    size_t queued_bytes;      /* to be written */
    struct loop_timer *timer; /* of the next frame, of the last words, or of flushing */
    int64_t timeout_ms;       /* of the next frame */
    uv_shutdown_t shutdown;

    /* What happened; conn_step() looks at these. */
    bool is_connected, is_close_wanted, is_broken, is_over, is_flushed, is_released;
    int status; /* why it is over */
    char sentence[sizeof((mesh_error *)0)->message];
};

struct write {
    uv_write_t request;
    struct conn *conn;
    size_t bytes;
    uint8_t data[]; /* [bytes] header, payload */
};

static void conn_step(struct conn *c);

/* The first reason stands. */
static void note_end(struct conn *c, int status, const char *sentence)
{
    if (!c->is_over && !c->is_close_wanted && !c->is_broken) {
        c->status = status;
        snprintf(c->sentence, sizeof c->sentence, "%s", sentence);
    }
    c->is_over = true;
}

static void end(struct conn *c, int status, const char *sentence)
{
    note_end(c, status, sentence);
    conn_step(c);
}

static void shutdown_cb(uv_shutdown_t *request, int uv_status)
{
    struct conn *c = container_of(request, struct conn, shutdown);
    (void)uv_status; /* written or not, there is nothing more to do for it */
    c->is_flushed = true;
    conn_step(c);
}

static void released_cb(uv_handle_t *handle)
{
    struct conn *c = container_of(handle, struct conn, uv.handle);
    c->is_released = true;
    conn_step(c);
}

static void begin_flushing(struct conn *c)
{
    uv_read_stop(&c->uv.stream);
    loop_timer_set(c->timer, FLUSH_MS, 0);
    if (uv_shutdown(&c->shutdown, &c->uv.stream, shutdown_cb) < 0) {
        c->is_flushed = true;
    }
}

static void begin_closing(struct conn *c)
{
    c->timer = loop_timer_stop(c->timer);
    uv_close(&c->uv.handle, released_cb);
}

static void tell_and_free(struct conn *c)
{
    if (c->events) {
        c->events->closed(c, c->status, c->sentence, c->arg);
    }
    buf_fini(&c->in);
    mem_free(c);
}

static void conn_step(struct conn *c)
{
    for (;;) {
        bool is_wanted_closed = c->is_over || c->is_close_wanted;
        switch ((enum state)c->machine.state) {
        case NEW:
            if (c->is_connected) {
                machine_move(&c->machine, OPEN);
                continue;
            }
            if (!is_wanted_closed) {
                return; /* waits for dial or listener */
            }
            machine_move(&c->machine, CLOSING);
            begin_closing(c);
            return;
        case OPEN:
            if (c->is_over) {
                machine_move(&c->machine, CLOSING);
                begin_closing(c);
                return;
            }
            if (!c->is_close_wanted) {
                return; /* waits for frames, sends and conn_close() */
            }
            machine_move(&c->machine, FLUSHING);
            begin_flushing(c);
            continue;
        case FLUSHING:
            if (!c->is_flushed && !c->is_over) {
                return; /* waits for uv_shutdown and the timer */
            }
            machine_move(&c->machine, CLOSING);
            begin_closing(c);
            return;
        case CLOSING:
            if (!c->is_released) {
                return; /* waits for uv_close */
            }
            machine_move(&c->machine, CLOSED);
            continue;
        case CLOSED:
            tell_and_free(c);
            return;
        case N_STATES:
            CHECK(false);
        }
    }
}

static void timer_fired(void *arg)
{
    struct conn *c = arg;
    char sentence[80];
    if (c->machine.state == FLUSHING) {
        c->is_flushed = true;
        conn_step(c);
        return;
    }
    snprintf(sentence, sizeof sentence, "no message arrived within %lld ms", (long long)c->timeout_ms);
    end(c, MESH_ETIMEDOUT, sentence);
}

struct conn *conn_new(struct loop *l, bool is_unix)
{
    struct conn *c = mem_new(struct conn);
    if (!c) {
        err_no_memory(sizeof *c, "a connection");
        return NULL;
    }
    machine_init(&c->machine, "conn", states, N_STATES);
    c->is_unix = is_unix;
    c->timer = loop_timer_new(l, timer_fired, c);
    if (!c->timer) {
        return mem_free(c);
    }
    if (is_unix) {
        uv_pipe_init(loop_uv(l), &c->uv.pipe, 0);
    } else {
        uv_tcp_init(loop_uv(l), &c->uv.tcp);
    }
    return c;
}

uv_stream_t *conn_stream(struct conn *c)
{
    return &c->uv.stream;
}

void conn_opened(struct conn *c)
{
    if (!c->is_unix) {
        uv_tcp_nodelay(&c->uv.tcp, 1);
        uv_tcp_keepalive(&c->uv.tcp, 1, KEEPALIVE_AFTER);
    }
    c->is_connected = true;
    conn_step(c);
}

struct conn *conn_open(struct loop *l, int fd)
{
    int domain = 0;
    socklen_t len = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0) {
        err_set(MESH_EINVAL, "descriptor %d is not a socket", fd);
        return NULL;
    }
    struct conn *c = conn_new(l, domain == AF_UNIX);
    if (!c) {
        return NULL;
    }
    int uv_status = c->is_unix ? uv_pipe_open(&c->uv.pipe, fd) : uv_tcp_open(&c->uv.tcp, fd);
    if (uv_status < 0) {
        err_set_local(status_from_uv(uv_status), "cannot use socket %d: %s", fd, text_from_uv(uv_status));
        conn_close(c);
        return NULL;
    }
    conn_opened(c);
    return c;
}

/* Reading ----------------------------------------------------------------------------------------------------------- */

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    struct conn *c = container_of(handle, struct conn, uv.handle);
    (void)suggested;
    void *room = buf_extend(&c->in, READ_BYTES); /* read_cb() takes back what stays unused */
    *ret_buf = uv_buf_init(room, room ? (unsigned)READ_BYTES : 0);
}

/* What the bytes so far say about the frame that begins with them; errors are found before the header is whole. */
static int look_at_header(const uint8_t *bytes, size_t n_bytes, struct frame_header *ret_header)
{
    uint8_t header[FRAME_HEADER_BYTES] = { 0 };
    memcpy(header, bytes, MIN(n_bytes, sizeof header));
    int r = frame_decode(header, ret_header);
    if (r < 0) {
        return r;
    }
    if (ret_header->kind != FRAME_CONTROL) {
        return err_set(MESH_EPROTO, "a frame of kind 0x%02x on a control connection", ret_header->kind);
    }
    if (ret_header->length > FRAME_MAX_CONTROL_BYTES) {
        return err_set(MESH_ETOOLARGE, "a message of %llu bytes; at most %u are taken",
                       (unsigned long long)ret_header->length, FRAME_MAX_CONTROL_BYTES);
    }
    return 0;
}

/* Hands out the frame at the beginning of bytes: its size, or 0 when it is not whole or must not be. */
static size_t take_frame(struct conn *c, const uint8_t *bytes, size_t n_bytes)
{
    struct frame_header h;
    if (n_bytes < HEADER_MIN) {
        return 0;
    }
    int r = look_at_header(bytes, n_bytes, &h);
    if (r < 0) {
        end(c, r, err_last()->message);
        return 0;
    }
    if (n_bytes < FRAME_HEADER_BYTES || n_bytes - FRAME_HEADER_BYTES < h.length) {
        return 0;
    }
    if (!c->is_broken) {
        loop_timer_unset(c->timer);
    }
    if (c->events) {
        c->events->frame(c, &h, bytes + FRAME_HEADER_BYTES, c->arg);
    }
    return FRAME_HEADER_BYTES + (size_t)h.length;
}

static void hand_out_frames(struct conn *c)
{
    size_t taken = 0, size;
    do {
        /* frame() may close the conn, but c and its buffer live until uv lets go, which is not before we return. */
        size = c->machine.state == OPEN ? take_frame(c, c->in.data + taken, c->in.len - taken) : 0;
        taken += size;
    } while (size > 0);
    buf_consume(&c->in, taken);
    if (c->in.len == 0 && c->in.cap > KEEP_BYTES) {
        buf_fini(&c->in);
    }
}

static void read_failed(struct conn *c, int uv_status)
{
    if (uv_status == UV_EOF && c->in.len > 0) {
        end(c, MESH_EPEER, "the other side closed the connection in the middle of a message");
    } else if (uv_status == UV_ENOBUFS) {
        end(c, MESH_ENOMEM, "no memory for what arrives");
    } else {
        end(c, status_from_uv(uv_status), text_from_uv(uv_status));
    }
}

static void read_cb(uv_stream_t *stream, ssize_t n_read, const uv_buf_t *room)
{
    struct conn *c = container_of(stream, struct conn, uv.stream);
    if (room->base) {
        c->in.len -= READ_BYTES - (n_read > 0 ? (size_t)n_read : 0);
    }
    if (n_read > 0 && fault_hits(FAULT_READ)) {
        end(c, MESH_EIO, "reading failed");
    } else if (n_read > 0) {
        hand_out_frames(c);
    } else if (n_read < 0) {
        read_failed(c, (int)n_read);
    }
}

void conn_set_events(struct conn *c, const struct conn_events *events, void *arg)
{
    c->events = events;
    c->arg = arg;
    if (c->machine.state != OPEN || c->is_reading) {
        return;
    }
    c->is_reading = true;
    int uv_status = uv_read_start(&c->uv.stream, alloc_cb, read_cb);
    if (uv_status < 0) {
        read_failed(c, uv_status);
    }
}

void conn_expect_frame_within(struct conn *c, int64_t timeout_ms)
{
    if (c->machine.state != OPEN || c->is_broken) {
        return;
    }
    c->timeout_ms = timeout_ms;
    if (timeout_ms > 0) {
        loop_timer_set(c->timer, timeout_ms, 0);
    } else {
        loop_timer_unset(c->timer);
    }
}

/* Writing ----------------------------------------------------------------------------------------------------------- */

/* The other side is gone, but what it said last may wait to be read: reading finds the end after it. */
static void hear_last_words(struct conn *c, int uv_status)
{
    if (c->is_broken) {
        return;
    }
    c->status = status_from_uv(uv_status);
    snprintf(c->sentence, sizeof c->sentence, "%s", text_from_uv(uv_status));
    c->is_broken = true;
    loop_timer_set(c->timer, LAST_WORDS_MS, 0);
}

static void written_cb(uv_write_t *request, int uv_status)
{
    struct write *w = container_of(request, struct write, request);
    struct conn *c = w->conn;
    c->queued_bytes -= w->bytes;
    mem_free(w);
    if (uv_status == 0 || c->machine.state != OPEN) {
        return;
    }
    if (status_from_uv(uv_status) == MESH_EPEER && c->is_reading) {
        hear_last_words(c, uv_status);
    } else {
        end(c, status_from_uv(uv_status), text_from_uv(uv_status));
    }
}

static int check_may_send(struct conn *c, size_t len)
{
    if (c->machine.state != OPEN || c->is_broken) {
        return err_set(MESH_EPEER, "the connection has ended");
    }
    if (len > FRAME_MAX_CONTROL_BYTES) {
        return err_set(MESH_ETOOLARGE, "a message of %zu bytes; at most %u can be sent", len, FRAME_MAX_CONTROL_BYTES);
    }
    int r = 0;
    if (c->queued_bytes + FRAME_HEADER_BYTES + len > CONN_MAX_QUEUED_BYTES) {
        r = err_set(MESH_ETOOLARGE, "the other side does not read: %zu bytes wait for it, at most %u may",
                    c->queued_bytes + FRAME_HEADER_BYTES + len, CONN_MAX_QUEUED_BYTES);
    } else if (fault_hits(FAULT_WRITE)) {
        r = err_set(MESH_EIO, "writing failed");
    }
    if (r < 0) {
        end(c, r, err_last()->message);
    }
    return r;
}

int conn_send(struct conn *c, const void *payload, size_t len)
{
    int r = check_may_send(c, len);
    if (r < 0) {
        return r;
    }
    struct write *w = mem_alloc(sizeof *w + FRAME_HEADER_BYTES + len);
    if (!w) {
        return err_no_memory(len, "a message to send");
    }
    w->conn = c;
    w->bytes = FRAME_HEADER_BYTES + len;
    frame_encode(w->data, &(struct frame_header){ .length = len, .kind = FRAME_CONTROL, .version = FRAME_VERSION });
    if (len > 0) {
        memcpy(w->data + FRAME_HEADER_BYTES, payload, len);
    }
    uv_buf_t bytes = uv_buf_init((char *)w->data, (unsigned)w->bytes);
    int uv_status = uv_write(&w->request, &c->uv.stream, &bytes, 1, written_cb);
    if (uv_status < 0) {
        mem_free(w); /* libuv did not take the request */
        r = err_set(status_from_uv(uv_status), "%s", text_from_uv(uv_status));
        end(c, r, err_last()->message);
        return r;
    }
    c->queued_bytes += w->bytes;
    return 0;
}

void conn_close(struct conn *c)
{
    if (c && !c->is_over && !c->is_close_wanted) {
        c->is_close_wanted = true;
        c->status = 0;
        c->sentence[0] = '\0';
        conn_step(c);
    }
}

int conn_peer_credentials(struct conn *c, uid_t *ret_uid, pid_t *ret_pid)
{
    struct ucred who;
    socklen_t len = sizeof who;
    uv_os_fd_t fd;
    if (!c->is_unix) {
        return err_set(MESH_EUNSUPPORTED, "only unix sockets say who the other side is");
    }
    if (uv_fileno(&c->uv.handle, &fd) < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0) {
        return err_set(MESH_EIO, "the system does not say who the other side is");
    }
    *ret_uid = who.uid;
    *ret_pid = who.pid;
    return 0;
}
