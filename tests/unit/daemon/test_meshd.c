/* tests/unit/daemon/test_meshd.c - the real server on a real socket, as its clients see it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "daemon/jobs.h"
#include "harness/check_main.h"
#include "peer.h"
#include "seen.h"

static struct daemon_process server;

static void set_up(void)
{
    daemon_start(&server);
}

static void tear_down(void)
{
    daemon_stop(&server);
}

static Answer *expect(struct peer *p, int status)
{
    Answer *a = peer_read(p);
    ck_assert_msg(a->status == status, "status %d (%s), expected %d", a->status, a->error, status);
    return a;
}

/* All join; peer i becomes rank i. */
static void form(struct peer *p, uint32_t n, const char *job)
{
    for (uint32_t i = 0; i < n; i++) {
        p[i] = peer_open(&server);
        peer_send_join(&p[i], job, (int32_t)i, n, 5000);
    }
    for (uint32_t i = 0; i < n; i++) {
        Answer *a = expect(&p[i], 0);
        ck_assert_int_eq(a->body_case, MESH__V1__DAEMON_MESSAGE__BODY_JOINED);
        ck_assert_uint_eq(a->joined->rank, i);
        ck_assert_uint_eq(a->joined->size, n);
        codec_free_daemon(a);
    }
}

static void close_all(struct peer *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        peer_close(&p[i]);
    }
}

START_TEST(four_ranks_get_one_table_and_one_secret)
{
    struct peer p[4];
    uint8_t secret[SECRET_BYTES];
    for (int32_t i = 0; i < 4; i++) {
        p[i] = peer_open(&server);
        peer_send_join(&p[i], "train", i, 4, 5000);
    }
    for (uint32_t i = 0; i < 4; i++) {
        Answer *a = expect(&p[i], 0);
        ck_assert_uint_eq(a->joined->generation, 1);
        ck_assert_uint_eq(a->joined->local_rank, i);
        ck_assert_uint_eq(a->joined->local_size, 4);
        ck_assert_uint_eq(a->joined->n_rank_table, 4);
        ck_assert_str_eq(a->joined->rank_table[3]->address[0], "unix:/tmp/somewhere");
        ck_assert_str_eq(a->joined->rank_table[3]->host, "node1");
        ck_assert_uint_eq(a->joined->secret.len, SECRET_BYTES);
        if (i == 0) {
            memcpy(secret, a->joined->secret.data, SECRET_BYTES);
        }
        ck_assert_mem_eq(secret, a->joined->secret.data, SECRET_BYTES);
        codec_free_daemon(a);
    }
    close_all(p, 4);
}
END_TEST

START_TEST(two_jobs_form_at_once_and_share_nothing)
{
    struct peer a[2], b[2], launcher = peer_open(&server);
    peer_create_job(&launcher, "train-a", 2);
    form(a, 2, "train-a");
    form(b, 2, "train-b");
    ck_assert_int_eq(peer_store_set(&a[0], "k", "of a"), 0);
    Answer *answer = peer_store_get(&b[1], "k", -1);
    ck_assert_int_eq(answer->status, MESH_ENOTFOUND);
    codec_free_daemon(answer);
    answer = peer_store_get(&a[1], "k", -1);
    ck_assert_mem_eq(answer->store_value->value.data, "of a", 4);
    codec_free_daemon(answer);

    Mesh__V1__GetStatus body = MESH__V1__GET_STATUS__INIT;
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_GET_STATUS;
    m.get_status = &body;
    answer = peer_call(&launcher, &m);
    ck_assert_uint_eq(answer->status_reply->n_jobs, 2);
    ck_assert_str_eq(answer->status_reply->jobs[0]->job, "train-a");
    ck_assert_str_eq(answer->status_reply->jobs[0]->state, "running");
    ck_assert_uint_eq(answer->status_reply->jobs[0]->keys, 1);
    ck_assert_uint_eq(answer->status_reply->jobs[1]->joined, 2);
    codec_free_daemon(answer);
    close_all(a, 2);
    close_all(b, 2);
    peer_close(&launcher);
}
END_TEST

START_TEST(a_blocked_get_is_answered_by_another_ranks_set)
{
    struct peer p[2];
    form(p, 2, "train");
    Mesh__V1__StoreGet body = MESH__V1__STORE_GET__INIT;
    body.key = (ProtobufCBinaryData){ 1, (uint8_t *)"x" };
    body.timeout_ms = 5000;
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_GET;
    m.store_get = &body;
    peer_send(&p[0], &m);
    ck_assert_int_eq(peer_store_set(&p[1], "x", "1"), 0);
    Answer *a = expect(&p[0], 0);
    ck_assert_mem_eq(a->store_value->value.data, "1", 1);
    codec_free_daemon(a);
    a = peer_store_get(&p[0], "y", 50);
    ck_assert_int_eq(a->status, MESH_ETIMEDOUT);
    assert_says(a->error, "\"y\" did not appear within 50 ms");
    ck_assert_uint_eq(a->store_value->n_missing, 1);
    codec_free_daemon(a);
    ck_assert_int_eq(peer_store_set(&p[0], "y", "1"), 0); /* still usable */
    close_all(p, 2);
}
END_TEST

START_TEST(a_killed_rank_is_told_to_the_others_at_once)
{
    pid_t child = fork();
    if (child == 0) {
        struct peer p = peer_open(&server);
        peer_send_join(&p, "train", 1, 2, 5000);
        codec_free_daemon(peer_read(&p));
        for (;;) {
            pause();
        }
    }
    struct peer p = peer_open(&server);
    peer_send_join(&p, "train", 0, 2, 5000);
    codec_free_daemon(expect(&p, 0));
    kill(child, SIGKILL);
    Answer *a = peer_read(&p);
    ck_assert_uint_eq(a->request, 0);
    ck_assert_int_eq(a->notice->kind, MESH__V1__NOTICE__KIND__RANK_DIED);
    ck_assert_int_eq(a->notice->rank, 1);
    char says[80];
    snprintf(says, sizeof says, "rank 1 (node1, pid %d) died", (int)child);
    ck_assert_str_eq(a->notice->sentence, says);
    codec_free_daemon(a);
    waitpid(child, NULL, 0);

    Mesh__V1__Barrier body = MESH__V1__BARRIER__INIT;
    body.name = "b";
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_BARRIER;
    m.barrier = &body;
    ck_assert_int_eq(peer_status(&p, &m), MESH_EPEER);
    peer_close(&p);

    struct peer next[2]; /* the daemon serves the next job */
    form(next, 2, "next");
    close_all(next, 2);
}
END_TEST

START_TEST(a_missing_rank_is_named_at_the_deadline)
{
    struct peer p[3];
    for (int32_t i = 0; i < 3; i++) {
        p[i] = peer_open(&server);
        peer_send_join(&p[i], "train", i, 4, 200);
    }
    for (int32_t i = 0; i < 3; i++) {
        Answer *a = expect(&p[i], MESH_ETIMEDOUT);
        assert_says(a->error, "rank 3 of job train");
        codec_free_daemon(a);
    }
    close_all(p, 3);
}
END_TEST

START_TEST(a_report_reaches_the_other_ranks)
{
    struct peer p[3];
    form(p, 3, "train");
    Mesh__V1__Report body = MESH__V1__REPORT__INIT;
    body.status = MESH_EABORTED;
    body.rank = -1;
    body.sentence = "out of memory";
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_REPORT;
    m.report = &body;
    ck_assert_int_eq(peer_status(&p[1], &m), 0);
    for (int i = 0; i < 3; i += 2) {
        Answer *a = peer_read(&p[i]);
        ck_assert_int_eq(a->notice->kind, MESH__V1__NOTICE__KIND__REPORT);
        ck_assert_int_eq(a->notice->culprit, 1);
        ck_assert_int_eq(a->notice->status, MESH_EABORTED);
        ck_assert_str_eq(a->notice->sentence, "out of memory");
        codec_free_daemon(a);
    }
    close_all(p, 3);
}
END_TEST

static void send_agree(struct peer *p, const char *descriptor)
{
    Mesh__V1__Agree body = MESH__V1__AGREE__INIT;
    body.key = "device_mesh/0";
    body.descriptor = (char *)descriptor;
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_AGREE;
    m.agree = &body;
    peer_send(p, &m);
}

START_TEST(a_mesh_is_agreed_and_shown)
{
    struct peer p[2];
    form(p, 2, "train");
    for (int i = 0; i < 2; i++) {
        send_agree(&p[i], "device=cpu shape=2 names=dp");
    }
    for (int i = 0; i < 2; i++) {
        codec_free_daemon(expect(&p[i], 0));
    }
    struct peer viewer = peer_open(&server);
    Mesh__V1__ListMeshes body = MESH__V1__LIST_MESHES__INIT;
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_LIST_MESHES;
    m.list_meshes = &body;
    Answer *a = peer_call(&viewer, &m);
    ck_assert_int_eq(a->status, 0);
    ck_assert_uint_eq(a->meshes->n_meshes, 1);
    ck_assert_str_eq(a->meshes->meshes[0]->descriptor, "device=cpu shape=2 names=dp");
    ck_assert_uint_eq(a->meshes->meshes[0]->agreed, 2);
    codec_free_daemon(a);
    Mesh__V1__ListRanks ranks = MESH__V1__LIST_RANKS__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_LIST_RANKS;
    m.list_ranks = &ranks;
    a = peer_call(&viewer, &m);
    ck_assert_uint_eq(a->ranks->n_ranks, 2);
    ck_assert_str_eq(a->ranks->ranks[1]->state, "joined");
    codec_free_daemon(a);
    send_agree(&p[0], "device=cpu shape=2 names=dp");
    send_agree(&p[1], "device=cpu shape=2 names=tp");
    for (int i = 0; i < 2; i++) {
        a = expect(&p[i], MESH_EMISMATCH);
        assert_says(a->error, "names differs");
        codec_free_daemon(a);
    }
    close_all(p, 2);
    peer_close(&viewer);
}
END_TEST

START_TEST(the_protocol_version_is_checked)
{
    struct peer p = { .fd = peer_connect(server.socket) };
    Mesh__V1__Hello hello = MESH__V1__HELLO__INIT;
    hello.protocol = 7;
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_HELLO;
    m.hello = &hello;
    Answer *a = peer_call(&p, &m);
    ck_assert_int_eq(a->status, MESH_EPROTO);
    assert_says(a->error, "protocol 1");
    assert_says(a->error, "protocol 7");
    codec_free_daemon(a);
    ck_assert(peer_is_closed(p.fd));
    peer_close(&p);
}
END_TEST

START_TEST(a_request_before_hello_is_refused)
{
    struct peer p = { .fd = peer_connect(server.socket) };
    Mesh__V1__GetStatus body = MESH__V1__GET_STATUS__INIT;
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_GET_STATUS;
    m.get_status = &body;
    ck_assert_int_eq(peer_status(&p, &m), MESH_EPROTO);
    ck_assert(peer_is_closed(p.fd));
    peer_close(&p);
}
END_TEST

START_TEST(junk_is_closed_and_disturbs_nobody)
{
    struct peer good = peer_open(&server);
    peer_create_job(&good, "train", 1);
    uint8_t junk[5][1024] = { "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "\x16\x03\x01\x02" };
    for (uint64_t i = 0; i < 1024; i++) {
        junk[2][i] = (uint8_t)rng_bits((struct rng_key){ .seed = 5 }, i);
        junk[4][i] = junk[2][i];
    }
    memset(junk[3], 0xff, 8);
    junk[3][7] = 0x7f; /* a length of 2^63 - 1 */
    junk[3][8] = FRAME_CONTROL;
    junk[3][9] = FRAME_VERSION;
    frame_encode(junk[4], &(struct frame_header){ .length = 900, .kind = FRAME_CONTROL, .version = FRAME_VERSION });
    for (int i = 0; i < 5; i++) {
        int fd = peer_connect(server.socket);
        ck_assert_int_gt(send(fd, junk[i], sizeof junk[i], MSG_NOSIGNAL), 0);
        ck_assert_msg(peer_is_closed(fd), "junk %d", i);
        close(fd);
        ck_assert_int_eq(peer_store_set(&good, "k", "v"), 0);
    }
    peer_close(&good);
}
END_TEST

START_TEST(half_open_connections_disturb_nobody)
{
    enum { N_SILENT = 300 };
    int fd[N_SILENT];
    for (int i = 0; i < N_SILENT; i++) {
        fd[i] = peer_connect(server.socket);
        ck_assert_int_eq(send(fd[i], "x", (size_t)(i % 2), MSG_NOSIGNAL), i % 2);
    }
    struct peer p[2];
    form(p, 2, "train");
    ck_assert_int_eq(peer_store_set(&p[0], "k", "v"), 0);
    close_all(p, 2);
    for (int i = 0; i < N_SILENT; i++) {
        close(fd[i]);
    }
}
END_TEST

/* As another user, who may reach the socket but not the job. */
static int look_as_nobody(void)
{
    if (setgid(65534) != 0 || setuid(65534) != 0) {
        return 1;
    }
    struct peer p = peer_open(&server);
    Mesh__V1__StoreGet body = MESH__V1__STORE_GET__INIT;
    body.job = "train";
    body.key = (ProtobufCBinaryData){ 1, (uint8_t *)"k" };
    Request m = MESH__V1__CLIENT_MESSAGE__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_STORE_GET;
    m.store_get = &body;
    int status = peer_status(&p, &m);
    peer_send_join(&p, "train", 0, 2, 1000);
    Answer *a = peer_read(&p);
    bool is_refused = status == MESH_EAUTH && a->status == MESH_EAUTH;
    codec_free_daemon(a);
    Mesh__V1__GetStatus look = MESH__V1__GET_STATUS__INIT;
    m.body_case = MESH__V1__CLIENT_MESSAGE__BODY_GET_STATUS;
    m.get_status = &look;
    a = peer_call(&p, &m);
    bool sees_nothing = a->status_reply->n_jobs == 0;
    codec_free_daemon(a);
    peer_close(&p);
    return is_refused && sees_nothing ? 0 : 2;
}

START_TEST(another_users_job_is_out_of_reach)
{
    if (geteuid() != 0) {
        return; /* only root can try */
    }
    struct peer p[2];
    form(p, 2, "train");
    ck_assert_int_eq(peer_store_set(&p[0], "k", "v"), 0);
    ck_assert_int_eq(chmod(server.folder, 0711), 0);
    ck_assert_int_eq(chmod(server.socket, 0666), 0);
    pid_t child = fork();
    if (child == 0) {
        _exit(look_as_nobody());
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    close_all(p, 2);
}
END_TEST

START_TEST(many_joiners_at_once_form)
{
    enum { N = 128 };
    struct peer p[N];
    form(p, N, "storm");
    close_all(p, N);
}
END_TEST

START_TEST(sigterm_answers_waiters_and_tells_all)
{
    struct daemon_process mine;
    daemon_start(&mine);
    struct peer p = peer_open(&mine), idle = peer_open(&mine);
    peer_send_join(&p, "train", 0, 2, 60000);
    struct peer probe = peer_open(&mine); /* its answer shows that the join arrived */
    ck_assert_int_eq(kill(mine.pid, SIGTERM), 0);
    Answer *a = peer_read(&p);
    ck_assert_int_eq(a->status, MESH_EABORTED);
    assert_says(a->error, "meshd is stopping");
    codec_free_daemon(a);
    a = peer_read(&p);
    ck_assert_int_eq(a->notice->kind, MESH__V1__NOTICE__KIND__SHUTDOWN);
    codec_free_daemon(a);
    a = peer_read(&idle);
    ck_assert_int_eq(a->notice->kind, MESH__V1__NOTICE__KIND__SHUTDOWN);
    codec_free_daemon(a);
    ck_assert(peer_is_closed(idle.fd));
    int status;
    ck_assert_int_eq(waitpid(mine.pid, &status, 0), mine.pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_ne(access(mine.socket, F_OK), 0);
    rmdir(mine.folder);
    close(mine.life_fd);
    peer_close(&p);
    peer_close(&idle);
    peer_close(&probe);
}
END_TEST

START_TEST(signals_that_mean_nothing_change_nothing)
{
    static const int signals[] = { SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGWINCH, SIGTSTP, SIGCONT };
    struct peer p[2];
    form(p, 2, "calm");
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        ck_assert_int_eq(kill(server.pid, signals[i]), 0);
    }
    ck_assert_int_eq(peer_store_set(&p[0], "k", "v"), 0);
    close_all(p, 2);
}
END_TEST

START_TEST(the_end_of_life_fd_ends_the_daemon)
{
    struct daemon_process mine;
    daemon_start(&mine);
    close(mine.life_fd);
    int status;
    ck_assert_int_eq(waitpid(mine.pid, &status, 0), mine.pid);
    ck_assert_int_eq(status, 0);
    rmdir(mine.folder);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("meshd");
    TCase *tc = tcase_create("meshd");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, four_ranks_get_one_table_and_one_secret);
    tcase_add_test(tc, two_jobs_form_at_once_and_share_nothing);
    tcase_add_test(tc, a_blocked_get_is_answered_by_another_ranks_set);
    tcase_add_test(tc, a_killed_rank_is_told_to_the_others_at_once);
    tcase_add_test(tc, a_missing_rank_is_named_at_the_deadline);
    tcase_add_test(tc, a_report_reaches_the_other_ranks);
    tcase_add_test(tc, a_mesh_is_agreed_and_shown);
    tcase_add_test(tc, the_protocol_version_is_checked);
    tcase_add_test(tc, a_request_before_hello_is_refused);
    tcase_add_test(tc, junk_is_closed_and_disturbs_nobody);
    tcase_add_test(tc, half_open_connections_disturb_nobody);
    tcase_add_test(tc, another_users_job_is_out_of_reach);
    tcase_add_test(tc, many_joiners_at_once_form);
    tcase_add_test(tc, sigterm_answers_waiters_and_tells_all);
    tcase_add_test(tc, signals_that_mean_nothing_change_nothing);
    tcase_add_test(tc, the_end_of_life_fd_ends_the_daemon);
    suite_add_tcase(suite, tc);
    return suite;
}
