/* tests/unit/wire/test_listener.c - accepting, and what may stand in the way of a socket's path.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <mesh/base.h>

#include "base/error.h"
#include "base/fault.h"
#include "wire/listener.h"
#include "wire_fixture.h"

static struct world w;
static char folder[64];
static struct address address;
static struct listener *listener;
static int n_accepted;

static void set_up(void)
{
    world_init(&w);
    address_make(&address, folder);
}

static void tear_down(void)
{
    fault_disarm(FAULT_ALLOC);
    w.guard = loop_timer_stop(w.guard);
    world_fini(&w);
    folder_remove(folder);
}

static void accepted(struct conn *conn, void *arg)
{
    ck_assert_ptr_eq(arg, &w);
    conn_set_events(conn, NULL, NULL);
    conn_close(conn);
    n_accepted++;
}

static struct listener *try_to_listen(void)
{
    return listener_new(w.loop, &address, accepted, &w);
}

static int plain_socket(bool is_connected)
{
    struct sockaddr_un where = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(where.sun_path, address.path, sizeof where.sun_path);
    if (is_connected) {
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
    } else {
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&where, sizeof where), 0);
    }
    return fd;
}

START_TEST(the_socket_is_for_its_owner_only)
{
    struct stat st;
    mode_t before = umask(0);
    listener = try_to_listen();
    ck_assert_msg(listener != NULL, "%s", err_last()->message);
    ck_assert_int_eq(stat(address.path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq((int)umask(before), 0); /* and the process's umask was left alone */
    ck_assert_ptr_null(listener_free(listener));
    ck_assert_int_eq(stat(address.path, &st), -1);
}
END_TEST

START_TEST(a_stale_socket_file_is_replaced)
{
    close(plain_socket(false)); /* the file stays */
    ck_assert_int_eq(access(address.path, F_OK), 0);
    listener = try_to_listen();
    ck_assert_msg(listener != NULL, "%s", err_last()->message);
    close(plain_socket(true));
    listener_free(listener);
}
END_TEST

START_TEST(a_live_server_is_not_replaced)
{
    listener = try_to_listen();
    ck_assert_ptr_nonnull(listener);
    ck_assert_ptr_null(try_to_listen());
    ck_assert_int_eq(err_last()->status, MESH_EEXIST);
    ck_assert_ptr_nonnull(strstr(err_last()->message, "already answers"));
    close(plain_socket(true));
    listener_free(listener);
}
END_TEST

START_TEST(a_file_that_is_no_socket_is_not_touched)
{
    int fd = open(address.path, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_eq(write(fd, "mine", 4), 4);
    close(fd);
    ck_assert_ptr_null(try_to_listen());
    ck_assert_int_eq(err_last()->status, MESH_EEXIST);
    struct stat st;
    ck_assert_int_eq(stat(address.path, &st), 0);
    ck_assert_int_eq((int)st.st_size, 4);
}
END_TEST

START_TEST(a_missing_folder_is_named)
{
    snprintf(address.path, sizeof address.path, "%s/none/s", folder);
    ck_assert_ptr_null(try_to_listen());
    ck_assert_ptr_nonnull(strstr(err_last()->message, address.path));
}
END_TEST

START_TEST(a_file_that_somebody_else_put_there_later_stays)
{
    listener = try_to_listen();
    ck_assert_ptr_nonnull(listener);
    unlink(address.path);
    close(plain_socket(false));
    listener_free(listener);
    ck_assert_int_eq(access(address.path, F_OK), 0);
}
END_TEST

START_TEST(a_port_that_is_taken_is_refused)
{
    struct address bound;
    address = (struct address){ .host = "127.0.0.1", .port = 0 };
    listener = try_to_listen();
    ck_assert_ptr_nonnull(listener);
    listener_address(listener, &bound);
    ck_assert_int_gt(bound.port, 0);
    address.port = bound.port;
    ck_assert_ptr_null(try_to_listen());
    ck_assert_int_eq(err_last()->status, MESH_EEXIST);
    listener_free(listener);
}
END_TEST

static int clients[64];

static void count_and_end(void *arg)
{
    (void)arg;
    if (n_accepted == 64) {
        listener = listener_free(listener);
        w.guard = loop_timer_stop(w.guard);
        loop_stop(w.loop);
    } else {
        loop_timer_start(w.loop, 1, 0, count_and_end, NULL);
    }
}

START_TEST(many_clients_at_once_are_accepted)
{
    listener = try_to_listen();
    for (int i = 0; i < 64; i++) {
        clients[i] = plain_socket(true);
    }
    count_and_end(NULL);
    ck_assert_int_eq(loop_run(w.loop), 0);
    for (int i = 0; i < 64; i++) {
        close(clients[i]);
    }
}
END_TEST

static void end_after_drop(void *arg)
{
    char c;
    (void)arg;
    fault_disarm(FAULT_ALLOC);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(recv(clients[i], &c, 1, 0), 0); /* closed, not left hanging */
        close(clients[i]);
    }
    ck_assert_int_eq(n_accepted, 0);
    clients[3] = plain_socket(true);
    n_accepted = 63;
    count_and_end(NULL);
}

START_TEST(without_memory_a_connection_is_closed_and_the_next_served)
{
    listener = try_to_listen();
    for (int i = 0; i < 3; i++) {
        clients[i] = plain_socket(true);
    }
    loop_timer_start(w.loop, 30, 0, end_after_drop, NULL);
    fault_arm(FAULT_ALLOC, 1, UINT64_MAX - 1);
    ck_assert_int_eq(loop_run(w.loop), 0);
    close(clients[3]);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("listener");
    TCase *t = tcase_create("listener");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, the_socket_is_for_its_owner_only);
    tcase_add_test(t, a_stale_socket_file_is_replaced);
    tcase_add_test(t, a_live_server_is_not_replaced);
    tcase_add_test(t, a_file_that_is_no_socket_is_not_touched);
    tcase_add_test(t, a_missing_folder_is_named);
    tcase_add_test(t, a_file_that_somebody_else_put_there_later_stays);
    tcase_add_test(t, a_port_that_is_taken_is_refused);
    tcase_add_test(t, many_clients_at_once_are_accepted);
    tcase_add_test(t, without_memory_a_connection_is_closed_and_the_next_served);
    suite_add_tcase(s, t);
    return s;
}
