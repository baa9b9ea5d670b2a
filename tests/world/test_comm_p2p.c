/* tests/world/test_comm_p2p.c - messages: tags in any order, any source, to oneself, large both ways, too long, never received.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <unistd.h>

#include "comm_world.h"

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int r_ = (call);                                                                                               \
        if (r_ < 0) {                                                                                                  \
            return r_;                                                                                                 \
        }                                                                                                              \
    } while (0)

static int next(void)
{
    return (mesh_rank() + 1) % mesh_world_size();
}

static int previous(void)
{
    return (mesh_rank() + mesh_world_size() - 1) % mesh_world_size();
}

/* Around a ring of any size, also of one: every send finds its receive. */
static int ring(void *arg)
{
    (void)arg;
    for (int32_t i = 0; i < 200; i++) {
        int32_t out[3] = { i, mesh_rank(), 7 }, in[3] = { 0 };
        TRY(mesh_send(out, 3, MESH_I32, next(), i % 3, mesh_world()));
        TRY(mesh_recv(in, 3, MESH_I32, previous(), i % 3, mesh_world()));
        if (in[0] != i || in[1] != previous() || in[2] != 7) {
            return wrong("message %d is wrong", i);
        }
    }
    return 0;
}

START_TEST(messages_go_round_a_ring)
{
    run_world(_i, ring, NULL);
}
END_TEST

/* Everybody sends to everybody, tags in one order; they are received in the other. */
static int swapped_tags(void *arg)
{
    int n = mesh_world_size(), me = mesh_rank();
    (void)arg;
    for (int to = 0; to < n; to++) {
        for (int32_t tag = 0; tag < 5; tag++) {
            int64_t value = me * 1000 + to * 10 + tag;
            TRY(mesh_send(&value, 1, MESH_I64, to, tag, mesh_world()));
        }
    }
    for (int from = n - 1; from >= 0; from--) {
        for (int tag = 4; tag >= 0; tag--) {
            int64_t value = 0;
            TRY(mesh_recv(&value, 1, MESH_I64, from, tag, mesh_world()));
            if (value != from * 1000 + me * 10 + tag) {
                return wrong("tag %d of rank %d has %lld", tag, from, (long long)value);
            }
        }
    }
    return mesh_barrier(mesh_world());
}

START_TEST(tags_are_received_in_any_order)
{
    run_world(_i, swapped_tags, NULL);
}
END_TEST

/* Rank 0 takes what comes; messages of one rank keep their order. */
static int from_any(void *arg)
{
    enum { EACH = 20 };
    int n = mesh_world_size();
    (void)arg;
    if (mesh_rank() != 0) {
        for (int32_t i = 0; i < EACH; i++) {
            float values[EACH] = { (float)i };
            TRY(mesh_send(values, (size_t)i + 1, MESH_F32, 0, 40 + i, mesh_world()));
        }
        return mesh_barrier(mesh_world());
    }
    int seen[9] = { 0 };
    for (int i = 0; i < EACH * (n - 1); i++) {
        float values[EACH];
        mesh_message m = { .peer = MESH_ANY_SOURCE, .tag = MESH_ANY_TAG, .count = EACH };
        TRY(mesh_recv_message(values, MESH_F32, &m, mesh_world()));
        if (m.peer < 1 || m.peer >= n || m.tag != 40 + seen[m.peer] || m.count != (size_t)seen[m.peer] + 1 ||
            values[0] != (float)seen[m.peer]) {
            return wrong("from rank %d came tag %d with %zu elements", m.peer, m.tag, m.count);
        }
        seen[m.peer]++;
    }
    return mesh_barrier(mesh_world());
}

START_TEST(a_receive_from_any_source_says_what_came)
{
    run_world(_i, from_any, NULL);
}
END_TEST

/* Both directions at once, far more than any buffer of the system holds. */
static int large_both_ways(void *arg)
{
    enum { N = 3000000 };
    int32_t *out = get_memory(N * sizeof *out), *in = get_memory(N * sizeof *in);
    (void)arg;
    for (int32_t i = 0; i < N; i++) {
        out[i] = i * (mesh_rank() + 1);
    }
    mesh_transfer both[] = {
        { .direction = MESH_SEND, .buf = out, .count = N, .dtype = MESH_I32, .peer = next(), .tag = 1 },
        { .direction = MESH_RECV, .buf = in, .count = N, .dtype = MESH_I32, .peer = previous(), .tag = 1 },
    };
    int r = mesh_batch_send_recv(both, 2, mesh_world());
    for (int32_t i = 0; i < N && r == 0; i++) {
        r = in[i] == i * (previous() + 1) ? 0 : wrong("element %d is %d", (int)i, (int)in[i]);
    }
    free(out);
    free(in);
    return r;
}

START_TEST(a_batch_of_large_messages_both_ways_does_not_stand_still)
{
    run_world(_i, large_both_ways, NULL);
}
END_TEST

/* A large send that nobody waits for, while its rank is in a collective. */
static int beside_a_collective(void *arg)
{
    enum { N = 2000000 };
    float *x = get_memory(N * sizeof *x), sum = 1;
    (void)arg;
    memset(x, 0, N * sizeof *x);
    x[N - 1] = (float)mesh_rank();
    mesh_work *w = mesh_rank() == 0 ? mesh_send_async(x, N, MESH_F32, mesh_world_size() - 1, 3, mesh_world()) : NULL;
    int r = 0;
    if (mesh_rank() == mesh_world_size() - 1) {
        r = mesh_recv(x, N, MESH_F32, 0, 3, mesh_world()); /* before its all_reduce, which rank 0 is in */
        r = r < 0 || x[N - 1] == 0 ? r : wrong("received %g", (double)x[N - 1]);
    }
    r = r < 0 ? r : mesh_all_reduce(&sum, 1, MESH_F32, MESH_SUM, mesh_world());
    r = r < 0 || w == NULL ? r : mesh_wait(w, 0);
    free(x);
    return r < 0 || sum == (float)mesh_world_size() ? r : wrong("the sum is %g", (double)sum);
}

START_TEST(the_control_thread_moves_messages_beside_a_collective)
{
    run_world(_i % 3 * (int)ARRAY_SIZE(world_sizes) + 1 + _i / 3, beside_a_collective, NULL);
}
END_TEST

static int asynchronous(void *arg)
{
    enum { N = 300 };
    int64_t out[N], in[N];
    mesh_message got[N];
    mesh_work *receives[N];
    (void)arg;
    for (int i = 0; i < N; i++) {
        got[i] = (mesh_message){ .peer = previous(), .tag = i, .count = 1 };
        receives[i] = mesh_recv_message_async(&in[i], MESH_I64, &got[i], mesh_world());
    }
    mesh_scope *s = mesh_scope_begin();
    for (int i = N - 1; i >= 0; i--) {
        out[i] = i * 3;
        (void)mesh_send_async(&out[i], 1, MESH_I64, next(), i, mesh_world()); /* dropped: the scope waits for it */
    }
    TRY(mesh_scope_end(s));
    for (int i = N - 1; i >= 0; i--) {
        TRY(mesh_wait(receives[i], 0));
        if (in[i] != i * 3 || got[i].tag != i || got[i].peer != previous()) {
            return wrong("message %d is %lld", i, (long long)in[i]);
        }
    }
    float x;
    mesh_work *never = mesh_recv_async(&x, 1, MESH_F32, next(), 999, mesh_world());
    if (mesh_done(never) || mesh_wait(never, MESH_NO_WAIT) != MESH_ETIMEDOUT ||
        mesh_wait(never, 20) != MESH_ETIMEDOUT) {
        return wrong("a message that was not sent has come");
    }
    float y = 5;
    TRY(mesh_barrier(mesh_world())); /* everybody has looked */
    TRY(mesh_send(&y, 1, MESH_F32, previous(), 999, mesh_world()));
    TRY(mesh_wait(never, 0));
    return x == 5 ? 0 : wrong("received %g", (double)x);
}

START_TEST(many_messages_in_flight_end_in_any_order_of_waiting)
{
    run_world(_i, asynchronous, NULL);
}
END_TEST

static int misfits(void *arg)
{
    float out[4] = { 1, 2, 3, 4 }, in[4] = { 9, 9, 9, 9 };
    int32_t numbers[4];
    (void)arg;
    for (int tag = 0; tag < 4; tag++) {
        TRY(mesh_send(out, 4, MESH_F32, next(), tag, mesh_world()));
    }
    mesh_message m = { .peer = previous(), .tag = 1, .count = 3 };
    bool are_refused = mesh_recv(in, 3, MESH_F32, previous(), 0, mesh_world()) == MESH_EMISMATCH &&
                       mesh_recv_message(in, MESH_F32, &m, mesh_world()) == MESH_EMISMATCH && m.count == 4 &&
                       mesh_recv(numbers, 4, MESH_I32, previous(), 2, mesh_world()) == MESH_EMISMATCH;
    if (!are_refused || in[0] != 9) {
        return wrong("a message that does not fit was delivered");
    }
    m = (mesh_message){ .peer = previous(), .tag = 3, .count = 400 };
    float more[400];
    TRY(mesh_recv_message(more, MESH_F32, &m, mesh_world())); /* the group goes on */
    return m.count == 4 && more[3] == 4 ? mesh_barrier(mesh_world()) : wrong("%zu elements came", m.count);
}

START_TEST(a_message_that_does_not_fit_ends_its_receive_and_nothing_else)
{
    run_world(_i, misfits, NULL);
}
END_TEST

static int refused(void *arg)
{
    float x = 0;
    int n = mesh_world_size();
    (void)arg;
    mesh_transfer odd = { .buf = &x, .count = 1, .dtype = MESH_F32 };
    bool are_refused = mesh_send(&x, 1, MESH_F32, n, 0, mesh_world()) == MESH_EINVAL &&
                       mesh_send(&x, 1, MESH_F32, MESH_ANY_SOURCE, 0, mesh_world()) == MESH_EINVAL &&
                       mesh_send(&x, 1, MESH_F32, 0, MESH_ANY_TAG, mesh_world()) == MESH_EINVAL &&
                       mesh_recv(&x, 1, MESH_F32, -2, 0, mesh_world()) == MESH_EINVAL &&
                       mesh_recv(NULL, 1, MESH_F32, 0, 0, mesh_world()) == MESH_EINVAL &&
                       mesh_recv(&x, 1, (mesh_dtype)77, 0, 0, mesh_world()) == MESH_EINVAL &&
                       mesh_recv(&x, 1, MESH_F32, 0, 0, NULL) == MESH_EINVAL &&
                       mesh_recv_message(&x, MESH_F32, NULL, mesh_world()) == MESH_EINVAL &&
                       mesh_batch_send_recv(&odd, 1, mesh_world()) == MESH_EINVAL &&
                       mesh_batch_send_recv(NULL, 0, mesh_world()) == 0;
    return are_refused ? 0 : wrong("%s", err_last()->message);
}

START_TEST(what_makes_no_sense_is_refused_before_any_traffic)
{
    run_world(_i, refused, NULL);
}
END_TEST

/* Failures --------------------------------------------------------------------------------------------------------- */

static int never_sent(void *arg)
{
    float x;
    (void)arg;
    if (mesh_rank() != 0) {
        usleep(700000);
        return 0;
    }
    int64_t begin_ms = clock_now_ms();
    int r = mesh_recv(&x, 1, MESH_F32, 1, 5, mesh_world());
    if (r != MESH_ETIMEDOUT || strstr(err_last()->message, "from rank 1 (local, pid ") == NULL) {
        return wrong("%d: %s", r, err_last()->message);
    }
    if (clock_now_ms() - begin_ms > 2000) {
        return wrong("the time limit came late");
    }
    r = mesh_send(&x, 1, MESH_F32, 1, 0, mesh_world());
    return r == MESH_EPOISONED ? 0 : wrong("the next call gives %d", r);
}

START_TEST(a_message_that_never_comes_is_a_named_time_out)
{
    int r = world_run_linked(2, world_links[_i], 300, never_sent, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

/* What was sent before its sender left still arrives; what was not gives its name. */
static int left_early(void *arg)
{
    int32_t x = 41, y = 0;
    (void)arg;
    if (mesh_rank() == 1) {
        return mesh_send(&x, 1, MESH_I32, 0, 0, mesh_world());
    }
    usleep(300000);
    TRY(mesh_recv(&y, 1, MESH_I32, 1, 0, mesh_world()));
    if (y != 41) {
        return wrong("received %d", (int)y);
    }
    int r = mesh_recv(&y, 1, MESH_I32, 1, 0, mesh_world());
    return r == MESH_EPEER && strstr(err_last()->message, "rank 1") != NULL ? 0
                                                                            : wrong("%d: %s", r, err_last()->message);
}

START_TEST(messages_outlive_their_sender)
{
    int r = world_run_linked(2, world_links[_i], 20000, left_early, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

static int freed(void *arg)
{
    int ranks[9];
    float x;
    (void)arg;
    for (int i = 0; i < mesh_world_size(); i++) {
        ranks[i] = i;
    }
    mesh_group *g = mesh_new_group(ranks, mesh_world_size());
    mesh_work *w = mesh_recv_async(&x, 1, MESH_F32, MESH_ANY_SOURCE, 0, g);
    (void)mesh_free_group(g);
    int r = mesh_wait(w, 0);
    return r == MESH_EABORTED ? mesh_barrier(mesh_world()) : wrong("the wait gives %d", r);
}

START_TEST(freeing_the_group_ends_its_messages)
{
    run_world(_i, freed, NULL);
}
END_TEST

/* Threads ---------------------------------------------------------------------------------------------------------- */

struct side {
    mesh_session *session;
    int peer, tag, status;
};

static void *talk(void *arg)
{
    struct side *s = arg;
    s->status = mesh_attach(s->session);
    for (int32_t i = 0; i < 300 && s->status == 0; i++) {
        int32_t in = -1;
        s->status = mesh_send(&i, 1, MESH_I32, s->peer, s->tag, mesh_world());
        s->status = s->status < 0 ? s->status : mesh_recv(&in, 1, MESH_I32, s->peer, s->tag, mesh_world());
        s->status = s->status < 0 || in == i ? s->status : wrong("message %d is %d", (int)i, (int)in);
    }
    int r = mesh_attach(NULL);
    s->status = s->status < 0 ? s->status : r;
    return NULL;
}

static int threads(void *arg)
{
    enum { N = 4 };
    pthread_t thread[N];
    struct side sides[N];
    int r = 0;
    (void)arg;
    for (int i = 0; i < N; i++) {
        sides[i] = (struct side){ .session = mesh_current(), .peer = mesh_world_size() - 1 - mesh_rank(), .tag = i };
        if (pthread_create(&thread[i], NULL, talk, &sides[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < N; i++) {
        (void)pthread_join(thread[i], NULL);
        r = r < 0 ? r : sides[i].status;
    }
    return r;
}

START_TEST(several_threads_of_a_rank_send_and_receive_at_once)
{
    run_world(_i * (int)ARRAY_SIZE(world_sizes) + 1, threads, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("comm_p2p");
    TCase *c = tcase_create("p2p");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, messages_go_round_a_ring, 0, N_WORLDS);
    tcase_add_loop_test(c, tags_are_received_in_any_order, 0, N_WORLDS);
    tcase_add_loop_test(c, a_receive_from_any_source_says_what_came, 0, N_WORLDS);
    tcase_add_loop_test(c, a_batch_of_large_messages_both_ways_does_not_stand_still, 0, N_WORLDS);
    tcase_add_loop_test(c, the_control_thread_moves_messages_beside_a_collective, 0, 9);
    tcase_add_loop_test(c, many_messages_in_flight_end_in_any_order_of_waiting, 0, N_WORLDS);
    tcase_add_loop_test(c, a_message_that_does_not_fit_ends_its_receive_and_nothing_else, 0, N_WORLDS);
    tcase_add_loop_test(c, what_makes_no_sense_is_refused_before_any_traffic, 0, (int)ARRAY_SIZE(world_sizes));
    tcase_add_loop_test(c, a_message_that_never_comes_is_a_named_time_out, 0, 3);
    tcase_add_loop_test(c, messages_outlive_their_sender, 0, 3);
    tcase_add_loop_test(c, freeing_the_group_ends_its_messages, 0, N_WORLDS);
    tcase_add_loop_test(c, several_threads_of_a_rank_send_and_receive_at_once, 0, 3);
    suite_add_tcase(s, c);
    return s;
}
