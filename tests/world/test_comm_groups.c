/* tests/world/test_comm_groups.c - groups by color and key, the barrier that names who is late, several buffers in one call.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/scope.h>
#include <unistd.h>

#include "comm_world.h"

/* Splitting -------------------------------------------------------------------------------------------------------- */

/* Even and odd ranks, each in reverse order; within a group that knows where its members stand. */
static int by_parity(void *arg)
{
    int n = mesh_world_size(), me = mesh_rank();
    int32_t all[9];
    (void)arg;
    mesh_group *g = mesh_split_group(mesh_world(), me % 2, -me);
    int members = (n + 1 - me % 2) / 2;
    if (g == NULL || mesh_group_size(g) != members || mesh_group_rank(g) != members - 1 - me / 2) {
        return wrong("rank %d is %d of %d", me, mesh_group_rank(g), mesh_group_size(g));
    }
    int32_t mine = me;
    int r = mesh_all_gather(all, &mine, 1, MESH_I32, g);
    for (int i = 0; i < members && r == 0; i++) {
        int want = 2 * (members - 1 - i) + me % 2;
        r = all[i] == want ? 0 : wrong("place %d has rank %d, not %d", i, (int)all[i], want);
    }
    (void)mesh_free_group(g);
    return r;
}

START_TEST(a_split_orders_ranks_by_key)
{
    run_world(_i, by_parity, NULL);
}
END_TEST

/* Equal keys keep the order of the group that is split, which is not that of the world; the last one takes no part. */
static int of_a_group(void *arg)
{
    int n = mesh_world_size(), me = mesh_rank(), reverse[9];
    (void)arg;
    for (int i = 0; i < n; i++) {
        reverse[i] = n - 1 - i;
    }
    mesh_group *all = mesh_new_group(reverse, n);
    mesh_group *some = mesh_split_group(all, me == 0 && n > 1 ? -1 : 5, 0);
    int32_t x = 1;
    int r = some == NULL ? (int)err_last()->status : mesh_all_reduce(&x, 1, MESH_I32, MESH_SUM, some);
    if (me == 0 && n > 1) {
        return r == MESH_ENOTMEMBER && mesh_group_rank(some) == -1 ? 0 : wrong("rank 0 is in the group");
    }
    bool is_right = x == (n > 1 ? n - 1 : 1) && mesh_group_rank(some) == n - 1 - me;
    return r < 0 || is_right ? r : wrong("rank %d is %d, the sum %d", me, mesh_group_rank(some), (int)x);
}

START_TEST(a_split_of_a_group_keeps_its_order_and_leaves_out_who_has_no_color)
{
    run_world(_i, of_a_group, NULL);
}
END_TEST

static int no_color(void *arg)
{
    (void)arg;
    mesh_group *g = mesh_split_group(mesh_world(), -1, 0);
    if (g != NULL || err_last()->status != MESH_EINVAL || mesh_split_group(NULL, 0, 0) != NULL) {
        return wrong("a group of nobody");
    }
    return mesh_barrier(mesh_world());
}

START_TEST(a_split_into_nothing_is_refused)
{
    run_world(_i, no_color, NULL);
}
END_TEST

/* Only the members make the group; the others go on with something else. */
static int members_only(void *arg)
{
    static const int ranks[] = { 3, 1 };
    int32_t x = mesh_rank();
    (void)arg;
    if (mesh_rank() != 1 && mesh_rank() != 3) {
        return 0;
    }
    mesh_group *g = mesh_new_group(ranks, 2);
    int r = mesh_all_reduce(&x, 1, MESH_I32, MESH_SUM, g);
    return r < 0 || (x == 4 && mesh_group_rank(g) == (mesh_rank() == 3 ? 0 : 1)) ? r : wrong("the sum is %d", (int)x);
}

START_TEST(case_gmem_a_group_needs_nobody_but_its_members)
{
    int r = world_run_linked(4, world_links[_i], 20000, members_only, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

/* The monitored barrier -------------------------------------------------------------------------------------------- */

static int in_time(void *arg)
{
    int r = 0;
    (void)arg;
    for (int i = 0; i < 20 && r == 0; i++) {
        r = mesh_monitored_barrier(mesh_world(), i % 2 == 0 ? 0 : 20000);
    }
    return r < 0 || mesh_monitored_barrier(mesh_world(), -1) == MESH_EINVAL ? r : wrong("a negative limit");
}

START_TEST(a_monitored_barrier_ends_when_all_have_come)
{
    run_world(_i, in_time, NULL);
}
END_TEST

static int two_late(void *arg)
{
    (void)arg;
    if (mesh_rank() == 1 || mesh_rank() == 3) {
        usleep(1500000);
        int r = mesh_monitored_barrier(mesh_world(), 300);
        return r < 0 ? 0 : wrong("who is late gets through");
    }
    int64_t begin_ms = clock_now_ms();
    int r = mesh_monitored_barrier(mesh_world(), 300);
    const char *text = err_last()->message;
    if (r >= 0 || strstr(text, "ranks 1 3") == NULL || clock_now_ms() - begin_ms > 1400) {
        return wrong("rank %d after %d ms: %s %.150s", mesh_rank(), (int)(clock_now_ms() - begin_ms),
                     mesh_status_name((mesh_status)r), text);
    }
    return 0;
}

START_TEST(a_monitored_barrier_names_all_who_are_late_on_every_rank)
{
    int r = world_run_linked(5, world_links[_i], 20000, two_late, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

/* Coalesced -------------------------------------------------------------------------------------------------------- */

static int several(void *arg)
{
    float a[3] = { 1, 2, 3 }, b[1] = { 4 }, c[500];
    void *bufs[] = { a, NULL, b, c };
    const size_t counts[] = { 3, 0, 1, 500 };
    float n = (float)mesh_world_size();
    (void)arg;
    for (int i = 0; i < 500; i++) {
        c[i] = (float)i;
    }
    int r = mesh_all_reduce_coalesced(bufs, counts, 4, MESH_F32, MESH_SUM, mesh_world());
    r = r < 0 ? r : mesh_all_reduce_coalesced(NULL, NULL, 0, MESH_F32, MESH_SUM, mesh_world());
    if (r == 0 && (a[2] != 3 * n || b[0] != 4 * n || c[499] != 499 * n)) {
        r = wrong("the sums are %g %g %g", (double)a[2], (double)b[0], (double)c[499]);
    }
    bool are_refused =
        mesh_all_reduce_coalesced(bufs, counts, 4, MESH_F32, MESH_BOR, mesh_world()) == MESH_EUNSUPPORTED &&
        mesh_all_reduce_coalesced(bufs, NULL, 4, MESH_F32, MESH_SUM, mesh_world()) == MESH_EINVAL &&
        mesh_all_reduce_coalesced(bufs, (const size_t[]){ 1, 1 }, 2, MESH_F32, MESH_SUM, mesh_world()) == MESH_EINVAL;
    return r < 0 || are_refused ? r : wrong("nonsense is not refused");
}

START_TEST(several_buffers_are_reduced_in_one_call)
{
    run_world(_i, several, NULL);
}
END_TEST

/* Two in flight that are waited for the other way round, one that is dropped. */
static int several_at_once(void *arg)
{
    float x[3][2] = { { 1, 2 }, { 3, 4 }, { 5, 6 } }, n = (float)mesh_world_size();
    (void)arg;
    mesh_work *works[2];
    mesh_scope *scope = mesh_scope_begin();
    for (int i = 0; i < 3; i++) {
        void *bufs[] = { x[i] + 1, x[i] }; /* the lists may go as soon as the call has begun */
        mesh_work *w =
            mesh_all_reduce_coalesced_async(bufs, (const size_t[]){ 1, 1 }, 2, MESH_F32, MESH_SUM, mesh_world());
        if (w == NULL) {
            return err_last()->status;
        }
        works[i % 2] = i < 2 ? w : works[i % 2];
    }
    int r = mesh_wait(works[1], 0);
    r = r < 0 ? r : mesh_wait(works[0], 0);
    if (r == 0 && (x[0][0] != n || x[0][1] != 2 * n || x[1][0] != 3 * n || x[1][1] != 4 * n)) {
        r = wrong("the sums are %g %g %g %g", (double)x[0][0], (double)x[0][1], (double)x[1][0], (double)x[1][1]);
    }
    int ended = mesh_scope_end(scope);
    r = r < 0 ? r : ended;
    if (r == 0 && (x[2][0] != 5 * n || x[2][1] != 6 * n)) {
        r = wrong("after the scope the sums are %g %g", (double)x[2][0], (double)x[2][1]);
    }
    void *none[] = { NULL };
    bool is_refused =
        mesh_all_reduce_coalesced_async(none, (const size_t[]){ 1 }, 1, MESH_F32, MESH_SUM, mesh_world()) == NULL;
    return r < 0 || is_refused ? r : wrong("a buffer that is NULL is taken");
}

START_TEST(several_buffers_are_reduced_while_the_caller_goes_on)
{
    run_world(_i, several_at_once, NULL);
}
END_TEST

static int cut_differently(void *arg)
{
    float x[4] = { 0 };
    void *bufs[] = { x, x + 2 };
    const size_t counts[] = { mesh_rank() == 0 ? 1 : 2, mesh_rank() == 0 ? 2 : 1 };
    (void)arg;
    int r = mesh_all_reduce_coalesced(bufs, counts, 2, MESH_F32, MESH_SUM, mesh_world());
    return r == MESH_EMISMATCH ? 0 : wrong("buffers of other lengths give %d", r);
}

START_TEST(buffers_of_other_lengths_are_a_mismatch)
{
    int r = world_run_linked(2, world_links[_i], 20000, cut_differently, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("comm_groups");
    TCase *c = tcase_create("groups");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, a_split_orders_ranks_by_key, 0, N_WORLDS);
    tcase_add_loop_test(c, a_split_of_a_group_keeps_its_order_and_leaves_out_who_has_no_color, 0, N_WORLDS);
    tcase_add_loop_test(c, a_split_into_nothing_is_refused, 0, (int)ARRAY_SIZE(world_sizes));
    tcase_add_loop_test(c, case_gmem_a_group_needs_nobody_but_its_members, 0, 3);
    tcase_add_loop_test(c, a_monitored_barrier_ends_when_all_have_come, 0, N_WORLDS);
    tcase_add_loop_test(c, a_monitored_barrier_names_all_who_are_late_on_every_rank, 0, 3);
    tcase_add_loop_test(c, several_buffers_are_reduced_in_one_call, 0, N_WORLDS);
    tcase_add_loop_test(c, several_buffers_are_reduced_while_the_caller_goes_on, 0, N_WORLDS);
    tcase_add_loop_test(c, buffers_of_other_lengths_are_a_mismatch, 0, 3);
    suite_add_tcase(s, c);
    return s;
}
