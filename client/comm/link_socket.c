/* client/comm/link_socket.c - links over stream sockets, tcp or unix.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/fault.h"
#include "comm/link.h"

/* A unix stream has no autotuning; this keeps a chunk in flight while another one is summed. */
#define UNIX_SEND_BUFFER_BYTES (256 << 10)

static int64_t outcome(ssize_t moved, const char *what)
{
    if (moved > 0) {
        return moved;
    }
    if (moved == 0 || errno == EPIPE || errno == ECONNRESET || errno == ETIMEDOUT) {
        return MESH_EPEER;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
        return 0;
    }
    return err_set(MESH_EIO, "cannot %s a stream between ranks: %s", what, strerror(errno));
}

static int64_t socket_send(struct link *l, const struct iovec *parts, int n)
{
    if (fault_hits(FAULT_WRITE)) {
        return MESH_EPEER;
    }
    if (n == 1) {
        return outcome(send(l->fd, parts->iov_base, parts->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT), "write to");
    }
    struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)n };
    return outcome(sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT), "write to");
}

static int64_t socket_receive(struct link *l, const struct iovec *parts, int n)
{
    if (fault_hits(FAULT_READ)) {
        return MESH_EPEER;
    }
    if (n == 1) {
        return outcome(recv(l->fd, parts->iov_base, parts->iov_len, MSG_DONTWAIT), "read from");
    }
    struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)n };
    return outcome(recvmsg(l->fd, &m, MSG_DONTWAIT), "read from");
}

static int64_t socket_peek(struct link *l, void *bytes, size_t n)
{
    return outcome(recv(l->fd, bytes, n, MSG_DONTWAIT | MSG_PEEK), "read from");
}

static bool socket_arm(struct link *l, bool want_read, bool want_write)
{
    (void)l, (void)want_read, (void)want_write; /* poll() itself sees what is there */
    return false;
}

static void socket_close(struct link *l)
{
    close(l->fd);
    (void)mem_free(l);
}

static const struct link_ops socket_ops = {
    .send = socket_send,
    .receive = socket_receive,
    .peek = socket_peek,
    .arm = socket_arm,
    .close = socket_close,
};

struct link *link_socket_new(int fd, enum link_kind kind)
{
    struct link *l = mem_new(struct link);
    if (l == NULL) {
        (void)err_no_memory(sizeof *l, "a link");
        close(fd);
        return NULL;
    }
    *l = (struct link){ .ops = &socket_ops, .kind = kind, .fd = fd };
    if (kind == LINK_TCP) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    } else {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ UNIX_SEND_BUFFER_BYTES }, sizeof(int));
    }
    return l;
}

struct link *link_close(struct link *l)
{
    if (l != NULL) {
        l->ops->close(l);
    }
    return NULL;
}
