/* tests/fuzz/fuzz_conn.c - any bytes from the other side: frames come out whole, and the connection ends exactly once.
 *
 * The first byte of the input says in how many pieces the rest arrives.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/error.h"
#include "wire/conn.h"

#define MAX_BYTES 60000 /* fits the socket's buffer, so that writing never waits */

struct feed {
    struct loop *loop;
    const uint8_t *data;
    size_t size, piece;
    int fd;
    int n_closed;
    size_t n_bytes; /* handed out */
    bool is_over;
};

static void write_piece(void *arg)
{
    struct feed *f = arg;
    size_t n = f->size < f->piece ? f->size : f->piece;
    if (n == 0 || f->is_over || send(f->fd, f->data, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n) {
        shutdown(f->fd, SHUT_WR);
        return;
    }
    f->data += n;
    f->size -= n;
    CHECK(loop_post(f->loop, write_piece, f) == 0);
}

static void on_frame(struct conn *c, const struct frame_header *header, const uint8_t *payload, void *arg)
{
    struct feed *f = arg;
    uint8_t sum = 0;
    (void)c;
    CHECK(!f->is_over && header->kind == FRAME_CONTROL && header->length <= FRAME_MAX_CONTROL_BYTES);
    for (size_t i = 0; i < header->length; i++) {
        sum = (uint8_t)(sum + payload[i]); /* all of it is there */
    }
    f->n_bytes += header->length + (sum & 0);
}

static void on_closed(struct conn *c, int status, const char *sentence, void *arg)
{
    struct feed *f = arg;
    (void)c;
    CHECK(status < 0 && sentence[0] != '\0');
    f->n_closed++;
    f->is_over = true;
    loop_stop(f->loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct conn_events events = { .frame = on_frame, .closed = on_closed };
    int fds[2];
    if (size == 0 || size > MAX_BYTES) {
        return 0;
    }
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    struct feed f = { .loop = loop_new(), .data = data + 1, .size = size - 1, .fd = fds[1] };
    f.piece = size / (1 + data[0] % 8) + 1;
    struct conn *c = conn_open(f.loop, fds[0]);
    CHECK(c != NULL);
    conn_set_events(c, &events, &f);
    CHECK(loop_post(f.loop, write_piece, &f) == 0);
    CHECK(loop_run(f.loop) == 0);
    CHECK(f.n_closed == 1 && f.n_bytes <= size);
    loop_free(f.loop);
    close(fds[1]);
    return 0;
}
