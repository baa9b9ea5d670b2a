/* client/comm/link.h - one stream to one peer, whatever carries it: non-blocking bytes that poll() can wait for.
 *
 *   tcp, unix   a socket (link_socket.c)
 *   sim         a ring of bytes in memory in each direction, for ranks that are threads (link_sim.c)
 *   broken      a link that could not be made: every use gives the reason (link_broken.c)
 *
 * A link has one user at a time.  To sleep: link_arm() for each link one waits for (true: look again, something may be
 * there already), then poll its fd for link_poll_events().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_LINK_H
#define COMM_LINK_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum link_kind { LINK_AUTO, LINK_TCP, LINK_UNIX, LINK_SIM, LINK_BROKEN };

struct link;

struct link_ops {
    /* Bytes moved; 0: would block; negative: a status.  MESH_EPEER, the stream is over, comes without a sentence (the
     * caller knows better); any other status with one. */
    int64_t (*send)(struct link *l, const struct iovec *parts, int n);
    int64_t (*receive)(struct link *l, const struct iovec *parts, int n);
    /* As receive, but what is looked at stays there. */
    int64_t (*peek)(struct link *l, void *bytes, size_t n);
    bool (*arm)(struct link *l, bool want_read, bool want_write);
    void (*close)(struct link *l); /* frees l */
};

struct link {
    const struct link_ops *ops;
    enum link_kind kind;
    int fd;
};

static inline int64_t link_send(struct link *l, const struct iovec *parts, int n)
{
    return l->ops->send(l, parts, n);
}

static inline int64_t link_receive(struct link *l, const struct iovec *parts, int n)
{
    return l->ops->receive(l, parts, n);
}

static inline int64_t link_peek(struct link *l, void *bytes, size_t n)
{
    return l->ops->peek(l, bytes, n);
}

static inline bool link_arm(struct link *l, bool want_read, bool want_write)
{
    return l->ops->arm(l, want_read, want_write);
}

/* The fd of a sim link becomes readable for both. */
static inline short link_poll_events(const struct link *l, bool want_read, bool want_write)
{
    if (l->kind == LINK_SIM) {
        return POLLIN;
    }
    return (short)((want_read ? POLLIN : 0) | (want_write ? POLLOUT : 0));
}

struct link *link_close(struct link *l); /* NULL is fine; returns NULL */

/* Takes fd, a connected non-blocking stream socket (also on failure); NULL: error set. */
struct link *link_socket_new(int fd, enum link_kind kind);
struct link *link_broken_new(int status, const char *sentence);

/* A simulated network of the ranks of one process. */
struct sim_net;
struct sim_net *sim_net_new(void);
void sim_net_free(struct sim_net *net); /* after every link of it was closed */
/* This rank's end of the stream between `rank` and `peer` in a group; the other end is made along with it. */
struct link *sim_net_link(struct sim_net *net, uint64_t group, int rank, int peer);

#endif
