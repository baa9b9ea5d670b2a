/* client/comm/peer_address.c - the addresses at which this rank may reach another one, best first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/peer_address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool is_usable(const struct mesh_session *s, int rank, enum link_kind policy, const struct address *a)
{
    if (!a->is_unix) {
        return policy != LINK_UNIX;
    }
    return policy != LINK_TCP && strcmp(s->peers[rank].host, s->peers[s->rank].host) == 0 && access(a->path, F_OK) == 0;
}

bool peer_address_at(const struct mesh_session *s, int rank, enum link_kind policy, int i,
                     struct peer_address *ret_address)
{
    const struct peer *p = &s->peers[rank];
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < p->n_addresses; k++) {
            struct peer_address a = { .text = p->address[k] };
            if (address_parse(a.text, &a.address) < 0 || a.address.is_unix != (pass == 0) ||
                !is_usable(s, rank, policy, &a.address)) {
                continue;
            }
            if (i-- == 0) {
                a.kind = a.address.is_unix ? LINK_UNIX : LINK_TCP;
                *ret_address = a;
                return true;
            }
        }
    }
    return false;
}

void peer_address_tune(int fd)
{
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

static int connect_unix(const struct address *a)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    static_assert(sizeof to.sun_path >= sizeof a->path, "every path fits");
    memcpy(to.sun_path, a->path, sizeof a->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static int connect_tcp(const struct address *a)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)a->port) };
    if (inet_pton(AF_INET, a->host, &to.sin_addr) != 1) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    if (to.sin_addr.s_addr == htonl(INADDR_LOOPBACK)) {
        peer_address_tune(fd);
    }
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS) {
        int error = errno == EAGAIN ? EADDRNOTAVAIL : errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int peer_address_connect(const struct peer_address *a)
{
    return a->address.is_unix ? connect_unix(&a->address) : connect_tcp(&a->address);
}
