/* client/ctl/bench_roof.c - what two processes of this machine reach over bare sockets.
 *
 * A child and its parent exchange: both send and receive at the same time, with non-blocking calls of up to CHUNK_BYTES, as a
 * collective does.  Many exchanges of 8 bytes give the latency, a few large ones the bandwidth; the best round counts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/bench_roof.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"

#define CHUNK_BYTES   ((size_t)1 << 20)
#define LARGE_BYTES   ((size_t)32 << 20)
#define SMALL_BYTES   ((size_t)8)
#define N_ROUNDS      5
#define N_SMALL       2000
#define SPINS         2000 /* looks that find nothing before we sleep */
#define TIME_LIMIT_MS 20000

static int fail(const char *what)
{
    return err_set(MESH_EIO, "the roof of this machine cannot be measured: %s: %s", what, strerror(errno));
}

/* Connected ends ------------------------------------------------------------------------------------------------------ */

static int connect_tcp(int listener, const struct sockaddr_in *address, int ret_fds[2])
{
    int one = 1;
    int a = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (a < 0 || connect(a, (const struct sockaddr *)address, sizeof *address) < 0) {
        int r = fail("connect");
        (void)(a >= 0 ? close(a) : 0);
        return r;
    }
    int b = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (b < 0) {
        int r = fail("accept");
        (void)close(a);
        return r;
    }
    (void)setsockopt(a, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(b, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    ret_fds[0] = a;
    ret_fds[1] = b;
    return 0;
}

static int pair_tcp(int ret_fds[2])
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_fine = listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
                   listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&address, &len) == 0;
    int r = is_fine ? connect_tcp(listener, &address, ret_fds) : fail("listen");
    (void)(listener >= 0 ? close(listener) : 0);
    return r;
}

static int pair_unix(int ret_fds[2])
{
    int bytes = 256 << 10;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_fds) < 0) {
        return fail("socketpair");
    }
    (void)setsockopt(ret_fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    (void)setsockopt(ret_fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    return 0;
}

/* Exchanging ---------------------------------------------------------------------------------------------------------- */

struct side {
    int fd;
    uint8_t *out, *in; /* [CHUNK_BYTES] */
    int64_t deadline_ms;
};

static int wait_for(const struct side *s, bool wants_write)
{
    struct pollfd p = { .fd = s->fd, .events = (short)(POLLIN | (wants_write ? POLLOUT : 0)) };
    if (deadline_left(s->deadline_ms) == 0) {
        return err_set(MESH_ETIMEDOUT, "the roof of this machine cannot be measured within %d ms", TIME_LIMIT_MS);
    }
    (void)poll(&p, 1, (int)MIN(deadline_left(s->deadline_ms), 100));
    return 0;
}

/* What moved, or a status. */
static ssize_t moved(ssize_t n)
{
    if (n > 0) {
        return n;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    errno = n == 0 ? ECONNRESET : errno;
    return fail("send or receive");
}

static int exchange(const struct side *s, size_t bytes)
{
    size_t to_send = bytes, to_receive = bytes;
    for (int n_idle = 0; to_send > 0 || to_receive > 0; n_idle++) {
        ssize_t sent = 0, got = 0;
        if (to_send > 0) {
            sent = moved(send(s->fd, s->out, MIN(to_send, CHUNK_BYTES), MSG_DONTWAIT | MSG_NOSIGNAL));
        }
        if (sent >= 0 && to_receive > 0) {
            got = moved(recv(s->fd, s->in, MIN(to_receive, CHUNK_BYTES), MSG_DONTWAIT));
        }
        if (sent < 0 || got < 0) {
            return (int)MIN(sent, got);
        }
        to_send -= (size_t)sent;
        to_receive -= (size_t)got;
        n_idle = sent > 0 || got > 0 ? 0 : n_idle;
        int r = n_idle > SPINS ? wait_for(s, to_send > 0) : 0;
        if (r < 0) {
            return r;
        }
        (void)(n_idle > 0 ? sched_yield() : 0);
    }
    return 0;
}

/* The best time of one exchange. */
static int time_exchanges(const struct side *s, size_t bytes, int n, double *ret_us)
{
    double best_us = 0;
    for (int round = 0; round < N_ROUNDS; round++) {
        int64_t begin_ns = clock_now_ns();
        for (int i = 0; i < n; i++) {
            int r = exchange(s, bytes);
            if (r < 0) {
                return r;
            }
        }
        double us = (double)(clock_now_ns() - begin_ns) / 1000.0 / n;
        best_us = round == 0 || us < best_us ? us : best_us;
    }
    *ret_us = best_us;
    return 0;
}

static int measure(int fd, struct roof *ret_roof)
{
    struct side s = { .fd = fd,
                      .out = mem_zalloc(CHUNK_BYTES),
                      .in = mem_zalloc(CHUNK_BYTES),
                      .deadline_ms = deadline_in(TIME_LIMIT_MS) };
    double small_us = 0, large_us = 0;
    int r = s.out == NULL || s.in == NULL ? err_no_memory(CHUNK_BYTES, "the roof of this machine") : 0;
    r = r < 0 ? r : time_exchanges(&s, SMALL_BYTES, N_SMALL, &small_us);
    r = r < 0 ? r : time_exchanges(&s, LARGE_BYTES, 1, &large_us);
    if (r == 0) {
        *ret_roof = (struct roof){ .latency_us = small_us, .bytes_per_us = (double)LARGE_BYTES / MAX(large_us, 0.001) };
    }
    mem_free(s.out);
    mem_free(s.in);
    return r;
}

int roof_measure(bool is_tcp, struct roof *ret_roof)
{
    int fds[2];
    int r = is_tcp ? pair_tcp(fds) : pair_unix(fds);
    if (r < 0) {
        return r;
    }
    pid_t child = fork();
    if (child == 0) {
        struct roof unused;
        (void)close(fds[0]);
        _exit(measure(fds[1], &unused) < 0);
    }
    (void)close(fds[1]);
    r = child < 0 ? fail("fork") : measure(fds[0], ret_roof);
    (void)close(fds[0]);
    if (child > 0) {
        (void)(r < 0 ? kill(child, SIGKILL) : 0);
        (void)waitpid(child, NULL, 0);
    }
    return r;
}

double roof_time_us(const struct roof *r, int steps, double bytes)
{
    return steps * r->latency_us + bytes / r->bytes_per_us;
}
