/* tests/unit/wire/test_dial.c - connecting: at once, later, never, or given up.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mesh/base.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fault.h"
#include "wire/dial.h"
#include "wire/listener.h"
#include "wire_fixture.h"

static struct world w;
static char folder[64];
static struct address address;
static struct listener *listener;
static int n_called, status;
static char sentence[256];
static bool has_started;

static void set_up(void)
{
    world_init(&w);
    address_make(&address, folder);
}

static void tear_down(void)
{
    fault_disarm(FAULT_ALLOC);
    world_fini(&w);
    folder_remove(folder);
}

static void end(void)
{
    listener = listener_free(listener);
    w.guard = loop_timer_stop(w.guard);
    loop_stop(w.loop);
}

static void dialled(struct conn *conn, int r, const char *text, void *arg)
{
    ck_assert(has_started); /* never before dial_start() returned */
    ck_assert_ptr_eq(arg, &w);
    n_called++;
    status = r;
    snprintf(sentence, sizeof sentence, "%s", text);
    if (conn) {
        world_use(&w, &w.a, conn);
        conn_close(conn);
        listener = listener_free(listener);
    } else {
        end();
    }
}

static struct dial *start(int64_t timeout_ms, bool keep_trying)
{
    struct dial *d = dial_start(w.loop, &address, timeout_ms, keep_trying, dialled, &w);
    has_started = true;
    return d;
}

static void accepted(struct conn *conn, void *arg)
{
    (void)arg;
    world_use(&w, &w.b, conn);
}

static void listen_now(void *arg)
{
    (void)arg;
    listener = listener_new(w.loop, &address, accepted, NULL);
    ck_assert_msg(listener != NULL, "%s", err_last()->message);
    listener_address(listener, &address);
}

START_TEST(a_unix_server_is_reached)
{
    listen_now(NULL);
    start(5000, false);
    world_run(&w);
    ck_assert_int_eq(n_called, 1);
    ck_assert_int_eq(status, 0);
}
END_TEST

static void reach_tcp(const char *listen_host, const char *dial_host)
{
    address = (struct address){ .is_unix = false };
    snprintf(address.host, sizeof address.host, "%s", listen_host);
    listen_now(NULL);
    ck_assert_int_gt(address.port, 0);
    snprintf(address.host, sizeof address.host, "%s", dial_host);
    start(5000, false);
    world_run(&w);
    ck_assert_int_eq(n_called, 1);
}

START_TEST(a_tcp_server_is_reached)
{
    reach_tcp("127.0.0.1", "127.0.0.1");
    ck_assert_msg(status == 0, "%s", sentence);
}
END_TEST

/* A bare machine without a hosts file does not know the name. */
static bool is_known(const char *name)
{
    struct addrinfo *list = NULL;
    bool is_found = getaddrinfo(name, NULL, NULL, &list) == 0;
    if (is_found) {
        freeaddrinfo(list);
    }
    return is_found;
}

START_TEST(a_name_is_resolved_and_each_address_tried)
{
    reach_tcp("127.0.0.1", "localhost");
    if (is_known("localhost")) {
        ck_assert_msg(status == 0, "%s", sentence);
    } else {
        ck_assert_int_eq(status, MESH_ENOTFOUND);
        ck_assert_ptr_nonnull(strstr(sentence, "no host of this name"));
    }
}
END_TEST

START_TEST(a_missing_socket_fails_at_once)
{
    start(5000, false);
    world_run(&w);
    ck_assert_int_eq(n_called, 1);
    ck_assert_int_eq(status, MESH_ENOTFOUND);
    ck_assert_ptr_nonnull(strstr(sentence, address.path));
}
END_TEST

START_TEST(a_refusal_fails_at_once)
{
    /* Bound, not listening: the port is ours and refuses. */
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in where = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof where;
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&where, sizeof where), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&where, &len), 0);
    address = (struct address){ .host = "127.0.0.1", .port = ntohs(where.sin_port) };
    start(5000, false);
    world_run(&w);
    ck_assert_int_eq(n_called, 1);
    ck_assert_int_eq(status, MESH_EPEER);
    ck_assert_ptr_nonnull(strstr(sentence, "refused"));
    close(fd);
}
END_TEST

START_TEST(a_missing_socket_is_tried_until_the_deadline)
{
    int64_t begin = clock_now_ms();
    start(400, true); /* long enough for a first attempt on a busy machine */
    world_run(&w);
    ck_assert_int_eq(n_called, 1);
    ck_assert_int_eq(status, MESH_ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(sentence, "within 400 ms"));
    ck_assert_ptr_nonnull(strstr(sentence, "no such file"));
    ck_assert_int_ge(clock_now_ms() - begin, 399);
}
END_TEST

START_TEST(a_server_that_comes_later_is_reached)
{
    start(9000, true);
    loop_timer_start(w.loop, 40, 0, listen_now, NULL);
    world_run(&w);
    ck_assert_int_eq(n_called, 1);
    ck_assert_int_eq(status, 0);
}
END_TEST

static void cancel(void *arg)
{
    dial_cancel(arg);
    ck_assert_int_eq(n_called, 0); /* never from inside dial_cancel() */
}

START_TEST(a_dial_is_cancelled_while_it_waits)
{
    struct dial *d = start(9000, true);
    loop_timer_start(w.loop, 5, 0, cancel, d);
    world_run(&w);
    ck_assert_int_eq(n_called, 1);
    ck_assert_int_eq(status, MESH_EABORTED);
}
END_TEST

START_TEST(a_dial_is_cancelled_before_it_began)
{
    listen_now(NULL);
    cancel(start(9000, true));
    world_run(&w);
    ck_assert_int_eq(n_called, 1);
    ck_assert_int_eq(status, MESH_EABORTED);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    w.guard = loop_timer_stop(w.guard);
    for (uint64_t nth = 1; nth < 8; nth++) {
        struct loop *l = loop_new();
        fault_arm(FAULT_ALLOC, nth, 0);
        n_called = 0;
        struct dial *d = dial_start(l, &address, 2000, false, dialled, &w);
        fault_disarm(FAULT_ALLOC);
        if (!d) {
            ck_assert_int_eq(err_last()->status, MESH_ENOMEM);
        }
        has_started = true;
        loop_stop(l);
        ck_assert_int_eq(loop_run(l), 0);
        ck_assert_int_eq(n_called, d ? 1 : 0);
        loop_free(l);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("dial");
    TCase *t = tcase_create("dial");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_unix_server_is_reached);
    tcase_add_test(t, a_tcp_server_is_reached);
    tcase_add_test(t, a_name_is_resolved_and_each_address_tried);
    tcase_add_test(t, a_missing_socket_fails_at_once);
    tcase_add_test(t, a_refusal_fails_at_once);
    tcase_add_test(t, a_missing_socket_is_tried_until_the_deadline);
    tcase_add_test(t, a_server_that_comes_later_is_reached);
    tcase_add_test(t, a_dial_is_cancelled_while_it_waits);
    tcase_add_test(t, a_dial_is_cancelled_before_it_began);
    tcase_add_test(t, every_allocation_may_fail);
    suite_add_tcase(s, t);
    return s;
}
