/* tests/world/test_comm_async.c - asynchronous calls, groups in any order, handles waited for in any order or dropped.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <unistd.h>

#include "comm_world.h"

#define N_MANY 1000

static int sum_of_ranks(void)
{
    return mesh_world_size() * (mesh_world_size() - 1) / 2;
}

static int many_in_flight(void *arg)
{
    static _Thread_local int64_t values[N_MANY];
    mesh_work *works[N_MANY];
    (void)arg;
    for (int i = 0; i < N_MANY; i++) {
        values[i] = i + mesh_rank();
        works[i] = mesh_all_reduce_async(&values[i], 1, MESH_I64, MESH_SUM, mesh_world());
        if (works[i] == NULL) {
            return err_last()->status;
        }
    }
    for (int i = N_MANY - 1; i >= 0; i--) {
        int r = mesh_wait(works[i], 0);
        if (r < 0) {
            return r;
        }
        if (values[i] != (int64_t)i * mesh_world_size() + sum_of_ranks()) {
            return wrong("call %d gave %lld", i, (long long)values[i]);
        }
    }
    return 0;
}

START_TEST(case_many_a_thousand_calls_in_flight_are_waited_for_in_reverse)
{
    run_world(_i, many_in_flight, NULL);
}
END_TEST

static int nobody_waits(void *arg)
{
    float *x = get_memory(3000000 * sizeof *x);
    (void)arg;
    for (size_t i = 0; i < 3000000; i++) {
        x[i] = (float)mesh_rank();
    }
    mesh_work *w = mesh_all_reduce_async(x, 3000000, MESH_F32, MESH_SUM, mesh_world());
    int64_t deadline = deadline_in(20000);
    while (!mesh_done(w) && deadline_left(deadline) > 0) {
        usleep(1000); /* the control thread does it all */
    }
    int r = mesh_done(w) ? mesh_wait(w, MESH_NO_WAIT) : wrong("nobody moved the call");
    if (r == 0 && x[2999999] != (float)sum_of_ranks()) {
        r = wrong("the sum is %g", (double)x[2999999]);
    }
    free(x);
    return r;
}

START_TEST(the_control_thread_finishes_what_nobody_waits_for)
{
    run_world(_i, nobody_waits, NULL);
}
END_TEST

static int dropped(void *arg)
{
    int32_t values[50];
    int64_t *large = get_memory(100000 * sizeof *large);
    (void)arg;
    memset(large, 0, 100000 * sizeof *large);
    mesh_scope *s = mesh_scope_begin();
    for (int i = 0; i < 50; i++) {
        values[i] = mesh_rank() + i;
        (void)mesh_all_reduce_async(&values[i], 1, MESH_I32, MESH_SUM, mesh_world());
    }
    (void)mesh_broadcast_async(large, 100000, MESH_I64, 0, mesh_world());
    (void)mesh_barrier_async(mesh_world());
    int r = mesh_scope_end(s); /* waits for all of them */
    for (int i = 0; i < 50 && r == 0; i++) {
        r = values[i] == i * mesh_world_size() + sum_of_ranks() ? 0 : wrong("value %d is %d", i, (int)values[i]);
    }
    free(large);
    return r;
}

START_TEST(a_scope_waits_for_dropped_handles)
{
    run_world(_i, dropped, NULL);
}
END_TEST

static int mixed(void *arg)
{
    int n = mesh_world_size(), me = mesh_rank();
    int32_t a = me, b = me, all[9], from[9], to[9], part = 0;
    float sums[9];
    (void)arg;
    for (int i = 0; i < n; i++) {
        from[i] = me * 100 + i;
        sums[i] = (float)i;
    }
    float sum = 0;
    mesh_work *w[6] = {
        mesh_all_gather_async(all, &a, 1, MESH_I32, mesh_world()),
        mesh_all_to_all_async(to, from, 1, MESH_I32, mesh_world()),
        mesh_reduce_scatter_async(&sum, sums, 1, MESH_F32, MESH_SUM, mesh_world()),
        mesh_broadcast_async(&b, 1, MESH_I32, n - 1, mesh_world()),
        mesh_barrier_async(mesh_world()),
        NULL,
    };
    part = me;
    int r = mesh_all_reduce(&part, 1, MESH_I32, MESH_MAX, mesh_world()); /* a synchronous call behind them */
    r = r < 0 ? r : (part == n - 1 ? 0 : wrong("max is %d", (int)part));
    for (int i = 4; i >= 0 && r == 0; i--) {
        r = mesh_wait(w[(i * 2) % 5], 0);
    }
    for (int i = 0; i < n && r == 0; i++) {
        r = all[i] == i && to[i] == i * 100 + me ? 0 : wrong("part %d is wrong", i);
    }
    return r < 0 || (b == n - 1 && sum == (float)(me * n)) ? r : wrong("broadcast or reduce_scatter is wrong");
}

START_TEST(different_calls_in_flight_keep_their_order)
{
    run_world(_i, mixed, NULL);
}
END_TEST

/* Groups ----------------------------------------------------------------------------------------------------------- */

/* Even ranks make pairs of neighbours from the left, odd ones from the right. */
static int pairs_in_both_orders(void *arg)
{
    int n = mesh_world_size(), me = mesh_rank();
    mesh_group *mine = NULL;
    (void)arg;
    for (int i = 0; i + 1 < n; i += 2) {
        int first = me % 2 == 0 ? i : (n / 2 - 1 - i / 2) * 2, ranks[2] = { first + 1, first };
        mesh_group *g = mesh_new_group(ranks, 2);
        if (g == NULL) {
            return err_last()->status;
        }
        if (mesh_group_rank(g) >= 0) {
            mine = g;
        } else if (mesh_barrier(g) != MESH_ENOTMEMBER) {
            return wrong("a rank outside took part");
        }
    }
    int32_t one = 1, ranks[2];
    if (mine == NULL) {
        return 0;
    }
    int r = mesh_all_reduce(&one, 1, MESH_I32, MESH_SUM, mine);
    r = r < 0 ? r : mesh_all_gather(ranks, &(int32_t){ me }, 1, MESH_I32, mine);
    if (r == 0 && (one != 2 || ranks[0] != me / 2 * 2 + 1 || ranks[1] != me / 2 * 2)) {
        return wrong("the pair of rank %d has %d members, %d and %d", me, (int)one, (int)ranks[0], (int)ranks[1]);
    }
    mesh_free_group(mine);
    return r;
}

START_TEST(case_gord_groups_made_in_different_orders_do_not_wait_for_each_other)
{
    run_world(_i, pairs_in_both_orders, NULL);
}
END_TEST

static int permuted(void *arg)
{
    static const int order[4] = { 3, 1, 2, 0 };
    int32_t ranks[4];
    (void)arg;
    mesh_group *g = mesh_new_group(order, 4), *again = mesh_new_group(order, 4);
    if (g == NULL || again == NULL || order[mesh_group_rank(g)] != mesh_rank() || mesh_group_size(g) != 4) {
        return wrong("rank %d has another place", mesh_rank());
    }
    int r = mesh_all_gather(ranks, &(int32_t){ mesh_rank() }, 1, MESH_I32, g);
    r = r < 0 ? r : mesh_barrier(again);
    for (int i = 0; i < 4 && r == 0; i++) {
        r = ranks[i] == order[i] ? 0 : wrong("part %d comes from rank %d", i, (int)ranks[i]);
    }
    return r;
}

START_TEST(case_gsrt_group_rank_is_the_place_in_the_list)
{
    ck_assert_int_eq(world_run_linked(4, world_links[_i], 10000, permuted, NULL), 0);
}
END_TEST

static int overlapping(void *arg)
{
    static const int left[] = { 0, 1, 2 }, right[] = { 1, 2, 3 };
    mesh_group *a = mesh_new_group(left, 3), *b = mesh_new_group(right, 3);
    (void)arg;
    for (int i = 0; i < 100; i++) {
        int32_t x = 1, y = 1;
        int r = mesh_rank() < 3 ? mesh_all_reduce(&x, 1, MESH_I32, MESH_SUM, a) : 0;
        r = r == 0 && mesh_rank() > 0 ? mesh_all_reduce(&y, 1, MESH_I32, MESH_SUM, b) : r;
        if (r < 0) {
            return r;
        }
        if ((mesh_rank() < 3 && x != 3) || (mesh_rank() > 0 && y != 3)) {
            return wrong("round %d gives %d and %d", i, (int)x, (int)y);
        }
    }
    return 0;
}

START_TEST(case_govl_overlapping_groups_interleave)
{
    ck_assert_int_eq(world_run_linked(4, world_links[_i], 10000, overlapping, NULL), 0);
}
END_TEST

struct second_thread {
    mesh_session *session;
    mesh_group *group;
    int r;
};

static void *attached(void *arg)
{
    struct second_thread *t = arg;
    t->r = mesh_attach(t->session);
    for (int i = 0; i < 200 && t->r == 0; i++) {
        int64_t x = mesh_rank();
        t->r = mesh_all_reduce(&x, 1, MESH_I64, MESH_SUM, t->group);
        t->r = t->r == 0 && x != sum_of_ranks() ? wrong("round %d", i) : t->r;
    }
    if (t->r == 0 && mesh_finalize() != MESH_ESTATE) {
        t->r = wrong("an attached thread ended the session");
    }
    int r = mesh_attach(NULL);
    t->r = t->r < 0 ? t->r : r;
    return NULL;
}

static int two_threads(void *arg)
{
    int ranks[9];
    pthread_t thread;
    (void)arg;
    for (int i = 0; i < mesh_world_size(); i++) {
        ranks[i] = i;
    }
    struct second_thread second = { .session = mesh_current(), .group = mesh_new_group(ranks, mesh_world_size()) };
    if (second.group == NULL || pthread_create(&thread, NULL, attached, &second) != 0) {
        return wrong("no second thread");
    }
    int r = mesh_attach(NULL) == MESH_ESTATE ? 0 : wrong("the thread that joined detached");
    for (int i = 0; i < 200 && r == 0; i++) {
        int64_t x = mesh_rank();
        r = mesh_all_reduce(&x, 1, MESH_I64, MESH_SUM, mesh_world());
    }
    pthread_join(thread, NULL);
    return r < 0 ? r : second.r;
}

START_TEST(two_threads_of_a_rank_use_two_groups_at_once)
{
    run_world(_i, two_threads, NULL);
}
END_TEST

static int shared_group(void *arg)
{
    (void)arg;
    int64_t x[64];
    mesh_work *w[64];
    for (int i = 0; i < 64; i++) {
        x[i] = mesh_rank();
        w[i] = mesh_all_reduce_async(&x[i], 1, MESH_I64, MESH_SUM, mesh_world());
        if (i % 8 == 3 && mesh_barrier(mesh_world()) < 0) {
            return err_last()->status;
        }
    }
    for (int i = 0; i < 64; i++) {
        while (mesh_wait(w[i], MESH_NO_WAIT) == MESH_ETIMEDOUT) {
            usleep(100);
        }
        if (x[i] != sum_of_ranks()) {
            return wrong("call %d", i);
        }
    }
    return 0;
}

START_TEST(looking_without_waiting_hands_the_group_to_and_fro)
{
    run_world(_i, shared_group, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("comm_async");
    TCase *c = tcase_create("async");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, case_many_a_thousand_calls_in_flight_are_waited_for_in_reverse, 0, N_WORLDS);
    tcase_add_loop_test(c, the_control_thread_finishes_what_nobody_waits_for, 0, N_WORLDS);
    tcase_add_loop_test(c, a_scope_waits_for_dropped_handles, 0, N_WORLDS);
    tcase_add_loop_test(c, different_calls_in_flight_keep_their_order, 0, N_WORLDS);
    tcase_add_loop_test(c, case_gord_groups_made_in_different_orders_do_not_wait_for_each_other, 0, N_WORLDS);
    tcase_add_loop_test(c, case_gsrt_group_rank_is_the_place_in_the_list, 0, 3);
    tcase_add_loop_test(c, case_govl_overlapping_groups_interleave, 0, 3);
    tcase_add_loop_test(c, two_threads_of_a_rank_use_two_groups_at_once, 0, N_WORLDS);
    tcase_add_loop_test(c, looking_without_waiting_hands_the_group_to_and_fro, 0, N_WORLDS);
    suite_add_tcase(s, c);
    return s;
}
