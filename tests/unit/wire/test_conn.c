/* tests/unit/wire/test_conn.c - framed connections: what arrives, what ends them, and how often they say so.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mesh/base.h>

#include "base/error.h"
#include "base/fault.h"
#include "wire_fixture.h"

static struct world w;

static void set_up(void)
{
    world_init(&w);
}

static void tear_down(void)
{
    fault_disarm(FAULT_READ);
    fault_disarm(FAULT_WRITE);
    world_fini(&w);
}

static void make_header(uint8_t ret_bytes[FRAME_HEADER_BYTES], uint64_t length)
{
    frame_encode(ret_bytes,
                 &(struct frame_header){ .length = length, .kind = FRAME_CONTROL, .version = FRAME_VERSION });
}

static void write_all(int fd, const void *data, size_t len)
{
    ck_assert_int_eq(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

START_TEST(ten_thousand_frames_arrive_in_order)
{
    enum { N = 10000 };
    uint64_t checksum = 0;
    size_t n_bytes = 0;
    world_connect(&w);
    for (int i = 0; i < N; i++) {
        char text[300];
        size_t len = (size_t)snprintf(text, sizeof text, "%*d", i % 250 + 1, i);
        len = i % 7 == 0 ? 0 : len; /* an empty payload is a frame too */
        ck_assert_int_eq(conn_send(w.a.conn, text, len), 0);
        checksum = checksum_add(checksum, text, len);
        n_bytes += len;
    }
    w.b.close_after = N;
    world_run(&w);
    ck_assert_int_eq(w.b.n_frames, N);
    ck_assert_uint_eq(w.b.n_bytes, n_bytes);
    ck_assert(w.b.checksum == checksum);
    ck_assert_int_eq(w.b.status, 0);
    ck_assert_int_eq(w.a.status, MESH_EPEER);
}
END_TEST

START_TEST(the_biggest_frame_passes)
{
    uint8_t *payload = malloc(FRAME_MAX_CONTROL_BYTES);
    for (size_t i = 0; i < FRAME_MAX_CONTROL_BYTES; i++) {
        payload[i] = (uint8_t)(i * 31 >> 3);
    }
    world_connect(&w);
    ck_assert_int_eq(conn_send(w.a.conn, payload, FRAME_MAX_CONTROL_BYTES), 0);
    ck_assert_int_eq(conn_send(w.a.conn, payload, FRAME_MAX_CONTROL_BYTES + 1), MESH_ETOOLARGE);
    w.b.close_after = 1;
    world_run(&w);
    ck_assert(w.b.checksum == checksum_add(0, payload, FRAME_MAX_CONTROL_BYTES));
    free(payload);
}
END_TEST

START_TEST(both_sides_talk_at_once)
{
    enum { N = 500 };
    static uint8_t payload[8192];
    world_connect(&w);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(conn_send(w.a.conn, payload, sizeof payload), 0);
        ck_assert_int_eq(conn_send(w.b.conn, payload, sizeof payload), 0);
    }
    w.a.close_after = N; /* what is left to be read of either side is not lost by the other's close */
    world_run(&w);
    ck_assert_int_eq(w.a.n_frames, N);
}
END_TEST

START_TEST(closing_flushes_what_is_queued)
{
    static uint8_t payload[1 << 20];
    world_connect(&w);
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(conn_send(w.a.conn, payload, sizeof payload), 0);
    }
    conn_close(w.a.conn);
    conn_close(w.a.conn);
    ck_assert_int_eq(w.a.n_closed, 0);
    ck_assert_int_eq(conn_send(w.a.conn, "x", 1), MESH_EPEER);
    world_run(&w);
    ck_assert_int_eq(w.b.n_frames, 8);
    ck_assert_int_eq(w.a.status, 0);
    ck_assert_str_eq(w.a.sentence, "");
    ck_assert_int_eq(w.b.status, MESH_EPEER);
    ck_assert_int_eq(w.a.n_closed + w.b.n_closed, 2);
}
END_TEST

START_TEST(a_reader_too_slow_is_given_up)
{
    static uint8_t payload[1 << 20];
    int fd = world_connect_a(&w), r = 0, n = 0;
    while (r == 0 && n < 100) {
        r = conn_send(w.a.conn, payload, sizeof payload);
        n++;
    }
    ck_assert_int_eq(r, MESH_ETOOLARGE);
    ck_assert_int_eq(n, 16);
    ck_assert_int_eq(w.a.n_closed, 0);
    world_run(&w);
    ck_assert_int_eq(w.a.n_closed, 1);
    ck_assert_int_eq(w.a.status, MESH_ETOOLARGE);
    ck_assert_ptr_nonnull(strstr(w.a.sentence, "does not read"));
    close(fd);
}
END_TEST

START_TEST(a_length_over_the_limit_ends_the_connection)
{
    uint8_t header[FRAME_HEADER_BYTES];
    int fd = world_connect_a(&w);
    make_header(header, (uint64_t)FRAME_MAX_CONTROL_BYTES + 1);
    write_all(fd, header, sizeof header);
    world_run(&w);
    ck_assert_int_eq(w.a.status, MESH_ETOOLARGE);
    ck_assert_int_eq(w.a.n_frames, 0);
    close(fd);
}
END_TEST

START_TEST(garbage_ends_the_connection_after_ten_bytes)
{
    int fd = world_connect_a(&w);
    write_all(fd, "GET / HTTP/1.1\r\n", 16);
    world_run(&w);
    ck_assert_int_eq(w.a.status, MESH_EPROTO);
    close(fd);
}
END_TEST

START_TEST(another_version_is_named)
{
    uint8_t header[FRAME_HEADER_BYTES];
    int fd = world_connect_a(&w);
    make_header(header, 0);
    header[9] = 7;
    write_all(fd, header, sizeof header);
    world_run(&w);
    ck_assert_int_eq(w.a.status, MESH_EPROTO);
    ck_assert_ptr_nonnull(strstr(w.a.sentence, "version 7, this side 1"));
    close(fd);
}
END_TEST

START_TEST(a_data_frame_does_not_belong_here)
{
    uint8_t header[FRAME_HEADER_BYTES];
    int fd = world_connect_a(&w);
    frame_encode(header, &(struct frame_header){ .kind = FRAME_DATA, .version = FRAME_VERSION });
    write_all(fd, header, sizeof header);
    world_run(&w);
    ck_assert_int_eq(w.a.status, MESH_EPROTO);
    close(fd);
}
END_TEST

START_TEST(frames_before_a_bad_one_are_delivered)
{
    uint8_t bytes[2 * FRAME_HEADER_BYTES];
    int fd = world_connect_a(&w);
    make_header(bytes, 0);
    memset(bytes + FRAME_HEADER_BYTES, 0xff, FRAME_HEADER_BYTES);
    write_all(fd, bytes, sizeof bytes);
    world_run(&w);
    ck_assert_int_eq(w.a.n_frames, 1);
    ck_assert_int_eq(w.a.status, MESH_EPROTO);
    close(fd);
}
END_TEST

START_TEST(half_a_frame_runs_into_the_deadline)
{
    uint8_t header[FRAME_HEADER_BYTES];
    int fd = world_connect_a(&w);
    make_header(header, 100);
    write_all(fd, header, 40);
    conn_expect_frame_within(w.a.conn, 30);
    world_run(&w);
    ck_assert_int_eq(w.a.status, MESH_ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(w.a.sentence, "30 ms"));
    close(fd);
}
END_TEST

START_TEST(a_frame_in_time_lifts_the_deadline)
{
    uint8_t header[FRAME_HEADER_BYTES];
    int fd = world_connect_a(&w);
    make_header(header, 0);
    write_all(fd, header, sizeof header);
    conn_expect_frame_within(w.a.conn, 5000);
    w.a.close_after = 1;
    world_run(&w);
    ck_assert_int_eq(w.a.status, 0);
    close(fd);
}
END_TEST

START_TEST(the_end_in_the_middle_of_a_frame_is_said)
{
    uint8_t header[FRAME_HEADER_BYTES];
    int fd = world_connect_a(&w);
    make_header(header, 100);
    write_all(fd, header, sizeof header);
    close(fd);
    world_run(&w);
    ck_assert_int_eq(w.a.status, MESH_EPEER);
    ck_assert_ptr_nonnull(strstr(w.a.sentence, "middle"));
}
END_TEST

static void send_hello(void *arg)
{
    (void)arg;
    ck_assert_int_eq(conn_send(w.a.conn, "hello", 5), 0); /* finds EPIPE, before anything was read */
}

START_TEST(the_last_words_of_a_peer_are_read_although_writing_fails)
{
    uint8_t header[FRAME_HEADER_BYTES];
    int fd = world_connect_a(&w);
    make_header(header, 0);
    write_all(fd, header, sizeof header);
    close(fd);
    ck_assert_int_eq(loop_post(w.loop, send_hello, NULL), 0);
    world_run(&w);
    ck_assert_int_eq(w.a.n_frames, 1);
    ck_assert_int_eq(w.a.status, MESH_EPEER);
}
END_TEST

START_TEST(a_failing_read_ends_the_connection_once)
{
    world_connect(&w);
    fault_arm(FAULT_READ, 1, 0);
    ck_assert_int_eq(conn_send(w.a.conn, "x", 1), 0);
    world_run(&w);
    ck_assert_int_eq(w.b.status, MESH_EIO);
    ck_assert_int_eq(w.b.n_frames, 0);
    ck_assert_int_eq(w.b.n_closed, 1);
    ck_assert_int_eq(w.a.status, MESH_EPEER);
}
END_TEST

START_TEST(a_failing_write_ends_the_connection_once)
{
    world_connect(&w);
    fault_arm(FAULT_WRITE, 2, 0);
    ck_assert_int_eq(conn_send(w.a.conn, "x", 1), 0);
    ck_assert_int_eq(conn_send(w.a.conn, "x", 1), MESH_EIO);
    ck_assert_int_eq(conn_send(w.a.conn, "x", 1), MESH_EPEER);
    ck_assert_int_eq(w.a.n_closed, 0);
    world_run(&w);
    ck_assert_int_eq(w.a.status, MESH_EIO);
    ck_assert_int_eq(w.a.n_closed, 1);
}
END_TEST

START_TEST(a_conn_nobody_listens_to_frees_itself)
{
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    struct conn *c = conn_open(w.loop, fds[0]);
    ck_assert_ptr_nonnull(c);
    conn_set_events(c, NULL, NULL);
    write_all(fds[1], "rubbish that is long enough", 27);
    loop_stop(w.loop);
    w.guard = loop_timer_stop(w.guard);
    ck_assert_int_eq(loop_run(w.loop), 0);
    close(fds[1]);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    for (uint64_t nth = 1; nth < 40; nth++) {
        int fds[2];
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        struct loop *l = loop_new();
        struct world one = { .loop = l };
        fault_arm(FAULT_ALLOC, nth, 0);
        struct conn *a = conn_open(l, fds[0]);
        struct conn *b = conn_open(l, fds[1]);
        if (!a || !b) {
            ck_assert_int_eq(err_last()->status, MESH_ENOMEM);
            close(a ? fds[1] : fds[0]);
            if (!a && !b) {
                close(fds[1]);
            }
            conn_close(a);
            conn_close(b);
            loop_stop(l);
        } else {
            world_use(&one, &one.a, a);
            world_use(&one, &one.b, b);
            int r = conn_send(a, "some text", 9);
            one.b.close_after = 1;
            if (r < 0) {
                conn_close(a);
            }
        }
        ck_assert_int_eq(loop_run(l), 0);
        ck_assert_int_eq(one.n_open, 0);
        fault_disarm(FAULT_ALLOC);
        loop_free(l);
    }
    loop_stop(w.loop);
    w.guard = loop_timer_stop(w.guard);
}
END_TEST

START_TEST(the_other_side_of_a_unix_socket_is_known)
{
    uid_t uid;
    pid_t pid;
    world_connect(&w);
    ck_assert_int_eq(conn_peer_credentials(w.a.conn, &uid, &pid), 0);
    ck_assert_int_eq((int)uid, (int)getuid());
    ck_assert_int_eq((int)pid, (int)getpid());
    conn_close(w.a.conn);
    world_run(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("conn");
    TCase *t = tcase_create("conn");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, ten_thousand_frames_arrive_in_order);
    tcase_add_test(t, the_biggest_frame_passes);
    tcase_add_test(t, both_sides_talk_at_once);
    tcase_add_test(t, closing_flushes_what_is_queued);
    tcase_add_test(t, a_reader_too_slow_is_given_up);
    tcase_add_test(t, a_length_over_the_limit_ends_the_connection);
    tcase_add_test(t, garbage_ends_the_connection_after_ten_bytes);
    tcase_add_test(t, another_version_is_named);
    tcase_add_test(t, a_data_frame_does_not_belong_here);
    tcase_add_test(t, frames_before_a_bad_one_are_delivered);
    tcase_add_test(t, half_a_frame_runs_into_the_deadline);
    tcase_add_test(t, a_frame_in_time_lifts_the_deadline);
    tcase_add_test(t, the_end_in_the_middle_of_a_frame_is_said);
    tcase_add_test(t, the_last_words_of_a_peer_are_read_although_writing_fails);
    tcase_add_test(t, a_failing_read_ends_the_connection_once);
    tcase_add_test(t, a_failing_write_ends_the_connection_once);
    tcase_add_test(t, a_conn_nobody_listens_to_frees_itself);
    tcase_add_test(t, every_allocation_may_fail);
    tcase_add_test(t, the_other_side_of_a_unix_socket_is_known);
    suite_add_tcase(s, t);
    return s;
}
