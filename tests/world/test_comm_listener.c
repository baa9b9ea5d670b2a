/* tests/world/test_comm_listener.c - garbage at the data listener of a rank closes its own connection and nothing else.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <unistd.h>

#include "comm/hello.h"
#include "comm/peer_address.h"
#include "comm_world.h"

#define N_GARBAGE 40
#define N_SILENT  20

static int connect_to(int rank, enum link_kind kind)
{
    struct peer_address a;
    if (!peer_address_at(session_current(), rank, kind, 0, &a)) {
        return -1;
    }
    int fd = peer_address_connect(&a);
    (void)poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 1000);
    return fd;
}

static bool is_closed_by_peer(int fd)
{
    char c;
    int64_t deadline = deadline_in(3000);
    while (deadline_left(deadline) > 0) {
        (void)poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 100);
        ssize_t n = read(fd, &c, 1);
        if (n == 0 || (n < 0 && errno == ECONNRESET)) {
            return true;
        }
        if (n > 0) {
            return false; /* an answer to garbage */
        }
    }
    return false;
}

/* Bytes that are no hello; a hello of the right form to the wrong rank; one that lies about its group and never proves it. */
static size_t make_garbage(int i, uint8_t *bytes)
{
    struct hello h = { .generation = 1, .group = 99, .from = 0, .to = i % 3 == 1 ? 7 : 1 };
    hello_encode(bytes, &h);
    if (i % 3 == 0) {
        memset(bytes, 'G', HELLO_BYTES);
    }
    memset(bytes + HELLO_BYTES, 0, HELLO_PROOF_BYTES);
    return i % 3 == 2 ? HELLO_BYTES + HELLO_PROOF_BYTES : HELLO_BYTES;
}

static int throw_garbage(enum link_kind kind, int *silent)
{
    for (int i = 0; i < N_GARBAGE; i++) {
        uint8_t bytes[HELLO_BYTES + HELLO_PROOF_BYTES];
        size_t n = make_garbage(i, bytes);
        int fd = connect_to(1, kind);
        if (fd < 0 || write(fd, bytes, n) < 0) {
            return wrong("cannot connect to rank 1: %s", strerror(errno));
        }
        bool is_answered = i % 3 == 2; /* rank 1 cannot know yet that the proof will be wrong */
        if (!is_answered && !is_closed_by_peer(fd)) {
            return wrong("garbage number %d was not refused", i);
        }
        close(fd);
    }
    for (int i = 0; i < N_SILENT; i++) {
        silent[i] = connect_to(1, kind);
    }
    return 0;
}

static int with_garbage(void *arg)
{
    static const int order[] = { 1, 0 };
    int silent[N_SILENT], n_silent = 0;
    int32_t x = 1;
    int r = mesh_barrier(mesh_world());
    if (r == 0 && mesh_rank() == 0) {
        r = throw_garbage(*(enum link_kind *)arg, silent);
        n_silent = r == 0 ? N_SILENT : 0;
    }
    int told = mesh_barrier(mesh_world());
    r = r < 0 ? r : told;
    mesh_group *g = mesh_new_group(order, 2); /* its stream has to find its way between the silent ones */
    r = r < 0 ? r : mesh_all_reduce(&x, 1, MESH_I32, MESH_SUM, g);
    for (int i = 0; i < n_silent; i++) {
        close(silent[i]);
    }
    return r < 0 ? r : (x == 2 ? 0 : wrong("the sum is %d", (int)x));
}

START_TEST(garbage_closes_its_own_connection_and_nothing_else)
{
    enum link_kind kind = _i == 0 ? LINK_UNIX : LINK_TCP;
    int r = world_run_linked(2, kind, 20000, with_garbage, &kind);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("comm_listener");
    TCase *c = tcase_create("listener");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, garbage_closes_its_own_connection_and_nothing_else, 0, 2);
    suite_add_tcase(s, c);
    return s;
}
