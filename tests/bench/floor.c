/* tests/bench/floor.c - the floor as a program: its sockets, its ranks, and the rows of rows.h.
 *
 *   floor RANKS tcp|tcp-reno|unix [OPTIONS]      2, 4 or 8 ranks
 *
 * tcp: congestion control as the system has it; tcp-reno: reno, which does not pace loopback.  With a processor for each rank,
 * ranks stay on theirs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "floor.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "processor.h"
#include "rows.h"

#define UNIX_SEND_BYTES (256 << 10)
#define TIME_LIMIT_S    600

struct floor floor_here;
static int sockets[FLOOR_MAX_RANKS][FLOOR_MAX_RANKS];

_Noreturn void floor_die(const char *what)
{
    (void)fprintf(stderr, "floor: rank %d: ", floor_here.rank);
    perror(what);
    _exit(1);
}

/* Before listen and connect: a socket that began with another congestion control keeps its pace. */
static int tcp_socket(bool wants_reno)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0 ||
        (wants_reno && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4) < 0)) {
        floor_die("socket");
    }
    return fd;
}

static void connect_tcp(bool wants_reno)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    int listener = tcp_socket(wants_reno), one = 1;
    if (bind(listener, (struct sockaddr *)&a, len) < 0 || listen(listener, FLOOR_MAX_RANKS) < 0 ||
        getsockname(listener, (struct sockaddr *)&a, &len) < 0) {
        floor_die("listen");
    }
    for (int i = 0; i < floor_here.n_ranks; i++) {
        for (int j = 0; j < i; j++) {
            sockets[i][j] = tcp_socket(wants_reno);
            if (connect(sockets[i][j], (struct sockaddr *)&a, len) < 0) {
                floor_die("connect");
            }
            sockets[j][i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            (void)setsockopt(sockets[j][i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        }
    }
    (void)close(listener);
}

static void connect_unix(void)
{
    int bytes = UNIX_SEND_BYTES;
    for (int i = 0; i < floor_here.n_ranks; i++) {
        for (int j = 0; j < i; j++) {
            int ends[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
                floor_die("socketpair");
            }
            for (int k = 0; k < 2; k++) {
                (void)setsockopt(ends[k], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
            }
            sockets[i][j] = ends[0];
            sockets[j][i] = ends[1];
        }
    }
}

static _Noreturn void run_rank(int rank, const char *mode, const struct rows *rows)
{
    struct bench_library library = {
        .name = "floor", .mode = mode, .rank = rank, .n_ranks = floor_here.n_ranks, .call = floor_call
    };
    size_t bytes = FLOOR_MAX_RANKS * FLOOR_CHUNK_BYTES;
    (void)alarm(TIME_LIMIT_S);
    floor_here.rank = rank;
    floor_here.scratch = mem_zalloc(bytes);
    if (floor_here.scratch == NULL) {
        floor_die("memory");
    }
    memset(floor_here.scratch, 0, bytes);
    memcpy(floor_here.fd, sockets[rank], sizeof floor_here.fd);
    if (!floor_here.is_crowded) {
        (void)processor_stay_on(rank);
    }
    int r = rows_run(rows, &library);
    (void)(r == 0 ? floor_call(&(struct bench_call){ .op = BENCH_BARRIER }) : 0);
    _exit(r != 0);
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: floor 2|4|8 tcp|tcp-reno|unix " ROWS_OPTIONS "\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct rows rows;
    rows_init(&rows);
    if (argc < 3 || !rows_options(&rows, argc - 3, argv + 3)) {
        return usage();
    }
    for (int op = BENCH_N_USUAL; op < BENCH_N_OPS; op++) {
        rows.is_asked[op] = false;
    }
    int n = atoi(argv[1]), failed = 0, status;
    const char *mode = argv[2];
    floor_here =
        (struct floor){ .n_ranks = n, .is_tcp = strcmp(mode, "unix") != 0, .is_crowded = n > processor_count() };
    if ((n != 2 && n != 4 && n != 8) || (floor_here.is_tcp && strncmp(mode, "tcp", 3) != 0)) {
        return usage();
    }
    if (floor_here.is_tcp) {
        connect_tcp(strcmp(mode, "tcp-reno") == 0);
    } else {
        connect_unix();
    }
    for (int rank = n - 1; rank >= 0; rank--) {
        pid_t child = fork();
        if (child == 0) {
            run_rank(rank, mode, &rows);
        }
        failed |= child < 0;
    }
    while (wait(&status) > 0) {
        failed |= status;
    }
    return failed != 0;
}
