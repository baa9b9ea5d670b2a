/* proto/wire/listener.c - accepting connections.
 *
 * Happy path   Bind and listen (unix_bind.c for unix); each connection becomes a conn and goes to fn().
 * Failures     No memory for a conn: the connection is accepted into a spare handle and closed at once, because libuv
 *              hands out no further connection before this one was accepted.
 *              The system is out of descriptors: libuv drops the connection, we say so in the log.
 *
 * listener_free() ends it for the caller; the memory goes when libuv has let go of both handles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/listener.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/util.h"
#include "wire/unix_bind.h"
#include "wire/uv_glue.h"

#define BACKLOG 1024 /* every rank of a node joins at once */

union any_stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_pipe_t pipe;
    uv_tcp_t tcp;
};

struct listener {
    struct loop *loop;
    union any_stream server;
    union any_stream spare;       /* takes a connection that must be dropped */
    bool is_dropping, is_waiting; /* the spare is closing; a connection waits for it */
    bool is_closed;
    struct address address;
    struct unix_file file;
    listener_fn fn; /* NULL: listener_free() was called */
    void *arg;
};

static void accept_next(struct listener *l);

static void free_when_done(struct listener *l)
{
    if (l->is_closed && !l->is_dropping) {
        mem_free(l);
    }
}

static void server_closed_cb(uv_handle_t *handle)
{
    struct listener *l = container_of(handle, struct listener, server);
    l->is_closed = true;
    free_when_done(l);
}

static void dropped_cb(uv_handle_t *handle)
{
    struct listener *l = container_of(handle, struct listener, spare);
    l->is_dropping = false;
    if (l->fn && l->is_waiting) {
        l->is_waiting = false;
        accept_next(l);
        return;
    }
    free_when_done(l);
}

static void init_stream(struct listener *l, union any_stream *s)
{
    if (l->address.is_unix) {
        uv_pipe_init(loop_uv(l->loop), &s->pipe, 0);
    } else {
        uv_tcp_init(loop_uv(l->loop), &s->tcp);
    }
}

static void drop_next(struct listener *l)
{
    if (l->is_dropping) {
        l->is_waiting = true;
        return;
    }
    l->is_dropping = true;
    init_stream(l, &l->spare);
    uv_accept(&l->server.stream, &l->spare.stream);
    uv_close(&l->spare.handle, dropped_cb);
    log_warn("wire", "no memory for a new connection, closing it");
}

static void accept_next(struct listener *l)
{
    struct conn *c = conn_new(l->loop, l->address.is_unix);
    if (!c) {
        drop_next(l);
        return;
    }
    int uv_status = uv_accept(&l->server.stream, conn_stream(c));
    if (uv_status < 0) {
        conn_close(c); /* gone again before we took it */
        return;
    }
    conn_opened(c);
    l->fn(c, l->arg);
}

static void connection_cb(uv_stream_t *server, int uv_status)
{
    struct listener *l = container_of(server, struct listener, server);
    if (uv_status < 0) {
        log_warn("wire", "cannot accept a connection: %s, waiting for the next", text_from_uv(uv_status));
    } else if (l->fn) {
        accept_next(l);
    }
}

static int listen_unix(struct listener *l)
{
    int fd;
    int r = unix_bind(l->address.path, BACKLOG, &fd, &l->file);
    if (r < 0) {
        return r;
    }
    int uv_status = uv_pipe_open(&l->server.pipe, fd);
    if (uv_status < 0) {
        close(fd);
    } else {
        uv_status = uv_listen(&l->server.stream, BACKLOG, connection_cb);
    }
    if (uv_status < 0) {
        unix_unbind(l->address.path, &l->file);
        return err_set(status_from_uv(uv_status), "cannot listen on unix:%s: %s", l->address.path,
                       text_from_uv(uv_status));
    }
    return 0;
}

/* Once, when a server starts: waiting for the name service is all right here. */
static int resolve(const struct address *a, struct sockaddr_storage *ret_target)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *list = NULL;
    char port[16];
    if (uv_ip4_addr(a->host, a->port, (struct sockaddr_in *)ret_target) == 0 ||
        uv_ip6_addr(a->host, a->port, (struct sockaddr_in6 *)ret_target) == 0) {
        return 0;
    }
    snprintf(port, sizeof port, "%d", a->port);
    int error = getaddrinfo(a->host, port, &hints, &list);
    if (error != 0) {
        return err_set(MESH_ENOTFOUND, "cannot listen on tcp:%s:%d: %s", a->host, a->port, gai_strerror(error));
    }
    memcpy(ret_target, list->ai_addr, list->ai_addrlen);
    freeaddrinfo(list);
    return 0;
}

static void note_port(struct listener *l)
{
    struct sockaddr_storage bound;
    int len = sizeof bound;
    if (uv_tcp_getsockname(&l->server.tcp, (struct sockaddr *)&bound, &len) == 0) {
        in_port_t port = bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                     : ((struct sockaddr_in *)&bound)->sin_port;
        l->address.port = ntohs(port);
    }
}

static int listen_tcp(struct listener *l)
{
    struct sockaddr_storage target;
    int r = resolve(&l->address, &target);
    if (r < 0) {
        return r;
    }
    int uv_status = uv_tcp_bind(&l->server.tcp, (const struct sockaddr *)&target, 0);
    if (uv_status == 0) {
        uv_status = uv_listen(&l->server.stream, BACKLOG, connection_cb);
    }
    if (uv_status < 0) {
        return err_set(status_from_uv(uv_status), "cannot listen on tcp:%s:%d: %s", l->address.host, l->address.port,
                       text_from_uv(uv_status));
    }
    note_port(l);
    return 0;
}

struct listener *listener_new(struct loop *loop, const struct address *a, listener_fn fn, void *arg)
{
    struct listener *l = mem_new(struct listener);
    if (!l) {
        err_no_memory(sizeof *l, "a listener");
        return NULL;
    }
    l->loop = loop;
    l->address = *a;
    l->arg = arg;
    init_stream(l, &l->server);
    int r = l->address.is_unix ? listen_unix(l) : listen_tcp(l);
    if (r < 0) {
        uv_close(&l->server.handle, server_closed_cb);
        return NULL;
    }
    l->fn = fn;
    return l;
}

struct listener *listener_free(struct listener *l)
{
    if (l) {
        l->fn = NULL;
        if (l->address.is_unix) {
            unix_unbind(l->address.path, &l->file);
        }
        uv_close(&l->server.handle, server_closed_cb);
    }
    return NULL;
}

void listener_address(const struct listener *l, struct address *ret_address)
{
    *ret_address = l->address;
}
