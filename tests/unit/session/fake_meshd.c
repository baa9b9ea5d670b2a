/* tests/unit/session/fake_meshd.c - a daemon of a few lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fake_meshd.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/listener.h"

struct fake_meshd {
    fake_fn fn;
    char folder[64], address[128];
    struct loop *loop;
    struct listener *listener;
    struct conn *conn; /* the one client */
};

static void frame_cb(struct conn *c, const struct frame_header *header, const uint8_t *payload, void *arg)
{
    (void)c;
    struct fake_meshd *f = arg;
    Mesh__V1__ClientMessage *m = codec_decode_client(payload, header->length);
    ck_assert_ptr_nonnull(m);
    f->fn(f, m);
    codec_free_client(m);
}

static void closed_cb(struct conn *c, int status, const char *sentence, void *arg)
{
    (void)status, (void)sentence;
    struct fake_meshd *f = arg;
    if (f->conn == c) {
        f->conn = NULL;
    }
}

static const struct conn_events events = { .frame = frame_cb, .closed = closed_cb };

static void accepted(struct conn *c, void *arg)
{
    struct fake_meshd *f = arg;
    f->conn = c;
    conn_set_events(c, &events, f);
}

struct fake_meshd *fake_start(fake_fn fn)
{
    struct address a;
    struct fake_meshd *f = calloc(1, sizeof *f);
    f->fn = fn;
    snprintf(f->folder, sizeof f->folder, "/tmp/fake_meshd.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(f->folder));
    snprintf(f->address, sizeof f->address, "unix:%s/meshd.sock", f->folder);
    ck_assert_int_eq(address_parse(f->address, &a), 0);
    f->loop = loop_new();
    f->listener = listener_new(f->loop, &a, accepted, f);
    ck_assert_ptr_nonnull(f->listener);
    ck_assert_int_eq(loop_run_thread(f->loop, "fake-meshd"), 0);
    return f;
}

static void stop_posted(void *arg)
{
    struct fake_meshd *f = arg;
    f->listener = listener_free(f->listener);
    conn_close(f->conn);
}

void fake_stop(struct fake_meshd *f)
{
    fake_do(f, stop_posted, f);
    loop_stop(f->loop);
    loop_free(f->loop);
    rmdir(f->folder);
    free(f);
}

const char *fake_address(const struct fake_meshd *f)
{
    return f->address;
}

void fake_do(struct fake_meshd *f, void (*fn)(void *arg), void *arg)
{
    ck_assert_int_eq(loop_post(f->loop, fn, arg), 0);
}

void fake_send(struct fake_meshd *f, Mesh__V1__DaemonMessage *m)
{
    if (f->conn != NULL) {
        ck_assert_int_eq(codec_send_daemon(f->conn, m), 0);
    }
}

void fake_answer(struct fake_meshd *f, uint64_t request, int status, const char *error)
{
    Mesh__V1__DaemonMessage m = MESH__V1__DAEMON_MESSAGE__INIT;
    m.request = request;
    m.status = status;
    m.error = (char *)(uintptr_t)error;
    fake_send(f, &m);
}

void fake_notice(struct fake_meshd *f, const Mesh__V1__Notice *n)
{
    Mesh__V1__DaemonMessage m = MESH__V1__DAEMON_MESSAGE__INIT;
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_NOTICE;
    m.notice = (Mesh__V1__Notice *)(uintptr_t)n;
    fake_send(f, &m);
}

void fake_hello(struct fake_meshd *f, uint64_t request, uint32_t protocol)
{
    Mesh__V1__HelloReply hello = MESH__V1__HELLO_REPLY__INIT;
    Mesh__V1__DaemonMessage m = MESH__V1__DAEMON_MESSAGE__INIT;
    hello.protocol = protocol;
    hello.software = (char *)(uintptr_t) "fake 9.9";
    m.request = request;
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_HELLO;
    m.hello = &hello;
    fake_send(f, &m);
}

void fake_joined(struct fake_meshd *f, uint64_t request, uint32_t rank, uint32_t size)
{
    static uint8_t secret[32] = { 1, 2, 3 };
    static char *address[] = { "tcp:10.0.0.1:4711", "unix:/x" };
    Mesh__V1__RankInfo info[8], *table[8];
    char host[8][16];
    for (uint32_t i = 0; i < size; i++) {
        info[i] = (Mesh__V1__RankInfo)MESH__V1__RANK_INFO__INIT;
        snprintf(host[i], sizeof host[i], "node%u", i / 2);
        info[i].rank = i;
        info[i].host = host[i];
        info[i].pid = 4710 + i;
        info[i].local_rank = i % 2;
        info[i].n_address = 2;
        info[i].address = address;
        table[i] = &info[i];
    }
    Mesh__V1__Joined j = MESH__V1__JOINED__INIT;
    Mesh__V1__DaemonMessage m = MESH__V1__DAEMON_MESSAGE__INIT;
    j.job = (char *)(uintptr_t) "train";
    j.generation = 3;
    j.rank = rank;
    j.size = size;
    j.local_rank = rank % 2;
    j.local_size = 2;
    j.secret = (ProtobufCBinaryData){ .len = sizeof secret, .data = secret };
    j.n_rank_table = size;
    j.rank_table = table;
    m.request = request;
    m.body_case = MESH__V1__DAEMON_MESSAGE__BODY_JOINED;
    m.joined = &j;
    fake_send(f, &m);
}

void fake_send_junk(struct fake_meshd *f)
{
    ck_assert_int_eq(conn_send(f->conn, "\xff\xff\xff\xff", 4), 0);
}

void fake_hang_up(struct fake_meshd *f)
{
    conn_close(f->conn);
}
