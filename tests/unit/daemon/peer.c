/* tests/unit/daemon/peer.c - a meshd in a process of its own, and blocking clients of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "daemon/server.h"

static void serve(const struct daemon_process *d, int ready_fd, int life_fd)
{
    struct server_config config = {
        .address = { .is_unix = true },
        .max_clients = 4000,
        .max_jobs = 64,
        .ready_fd = ready_fd,
        .life_fd = life_fd,
    };
    memcpy(config.address.path, d->socket, sizeof d->socket);
    log_configure("error");
    exit(server_run(&config) == 0 ? 0 : 1); /* not _exit(): a leak shows under the address sanitizer */
}

void daemon_start(struct daemon_process *d)
{
    strcpy(d->folder, "/tmp/meshd-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(d->folder));
    snprintf(d->socket, sizeof d->socket, "%s/meshd.sock", d->folder);
    int ready[2], life[2];
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(life), 0);
    d->pid = fork();
    ck_assert_int_ge(d->pid, 0);
    if (d->pid == 0) {
        close(ready[0]);
        close(life[1]);
        serve(d, ready[1], life[0]);
    }
    close(ready[1]);
    close(life[0]);
    d->life_fd = life[1];
    char line[128];
    ck_assert_int_gt(read(ready[0], line, sizeof line), 0); /* the daemon's end closes if it fails */
    close(ready[0]);
}

void daemon_stop(struct daemon_process *d)
{
    int status;
    kill(d->pid, SIGTERM);
    ck_assert_int_eq(waitpid(d->pid, &status, 0), d->pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_ne(access(d->socket, F_OK), 0);
    close(d->life_fd);
    rmdir(d->folder);
}

int peer_connect(const char *socket_path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    snprintf(a.sun_path, sizeof a.sun_path, "%s", socket_path);
    const struct timeval limit = { .tv_sec = PEER_TIMEOUT_S };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void write_all(int fd, const void *data, size_t len)
{
    for (const char *p = data; len > 0;) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        ck_assert_msg(n > 0, "send: %s", strerror(errno));
        p += n;
        len -= (size_t)n;
    }
}

static bool read_all(int fd, void *data, size_t len)
{
    for (char *p = data; len > 0;) {
        ssize_t n = recv(fd, p, len, 0);
        if (n == 0 || (n < 0 && errno == ECONNRESET)) {
            return false;
        }
        ck_assert_msg(n > 0, "recv: %s", strerror(errno));
        p += n;
        len -= (size_t)n;
    }
    return true;
}

void peer_send(struct peer *p, Request *m)
{
    m->request = ++p->n_requests;
    size_t len = mesh__v1__client_message__get_packed_size(m);
    uint8_t *frame = malloc(FRAME_HEADER_BYTES + len);
    const struct frame_header header = { .length = len, .kind = FRAME_CONTROL, .version = FRAME_VERSION };
    frame_encode(frame, &header);
    mesh__v1__client_message__pack(m, frame + FRAME_HEADER_BYTES);
    write_all(p->fd, frame, FRAME_HEADER_BYTES + len);
    free(frame);
}

Answer *peer_read(struct peer *p)
{
    uint8_t head[FRAME_HEADER_BYTES];
    ck_assert_msg(read_all(p->fd, head, sizeof head), "the daemon closed the connection");
    struct frame_header header;
    ck_assert_int_eq(frame_decode(head, &header), 0);
    uint8_t *payload = malloc(header.length + 1);
    ck_assert(read_all(p->fd, payload, header.length));
    Answer *m = codec_decode_daemon(payload, header.length);
    ck_assert_ptr_nonnull(m);
    free(payload);
    return m;
}

Answer *peer_call(struct peer *p, Request *m)
{
    peer_send(p, m);
    Answer *answer = peer_read(p);
    ck_assert_uint_eq(answer->request, m->request);
    return answer;
}

int peer_status(struct peer *p, Request *m)
{
    Answer *answer = peer_call(p, m);
    int status = answer->status;
    codec_free_daemon(answer);
    return status;
}

struct peer peer_open(const struct daemon_process *d)
{
    struct peer p = { .fd = peer_connect(d->socket) };
    Mesh__V1__Hello hello = MESH__V1__HELLO__INIT;
    hello.protocol = 1;
    hello.software = "test";
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_HELLO;
    m.hello = &hello;
    ck_assert_int_eq(peer_status(&p, &m), 0);
    return p;
}

void peer_close(struct peer *p)
{
    close(p->fd);
    p->fd = -1;
}

bool peer_is_closed(int fd)
{
    char buf[4096];
    for (int i = 0; i < 1000; i++) {
        ssize_t n = recv(fd, buf, sizeof buf, 0);
        if (n == 0 || (n < 0 && errno == ECONNRESET)) {
            return true;
        }
        if (n < 0) {
            return false;
        }
    }
    return false;
}

void peer_create_job(struct peer *p, const char *job, uint32_t size)
{
    Mesh__V1__CreateJob body = MESH__V1__CREATE_JOB__INIT;
    body.job = (char *)job;
    body.size = size;
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_CREATE_JOB;
    m.create_job = &body;
    ck_assert_int_eq(peer_status(p, &m), 0);
}

void peer_send_join(struct peer *p, const char *job, int32_t rank, uint32_t size, uint64_t timeout_ms)
{
    Mesh__V1__Join body = MESH__V1__JOIN__INIT;
    char *address[] = { "unix:/tmp/somewhere" };
    body.job = (char *)job;
    body.rank = rank;
    body.size = size;
    body.host = "node1";
    body.pid = (uint32_t)getpid();
    body.timeout_ms = timeout_ms;
    body.n_address = 1;
    body.address = address;
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_JOIN;
    m.join = &body;
    peer_send(p, &m);
}

int peer_store_set(struct peer *p, const char *key, const char *value)
{
    Mesh__V1__StoreSet body = MESH__V1__STORE_SET__INIT;
    body.key = (ProtobufCBinaryData){ strlen(key), (uint8_t *)key };
    body.value = (ProtobufCBinaryData){ strlen(value), (uint8_t *)value };
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_SET;
    m.store_set = &body;
    return peer_status(p, &m);
}

Answer *peer_store_get(struct peer *p, const char *key, int64_t timeout_ms)
{
    Mesh__V1__StoreGet body = MESH__V1__STORE_GET__INIT;
    body.key = (ProtobufCBinaryData){ strlen(key), (uint8_t *)key };
    body.timeout_ms = timeout_ms;
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_GET;
    m.store_get = &body;
    return peer_call(p, &m);
}
