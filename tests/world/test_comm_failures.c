/* tests/world/test_comm_failures.c - when ranks disagree, leave, fail or never call, every call ends with an error that says so.
 * SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "comm_world.h"

#define N_LINKS ((int)ARRAY_SIZE(world_links))

/* Runs fn on n ranks; its return value must be 0. */
static void run(int n, int link, int64_t timeout_ms, mesh_world_fn fn, void *arg)
{
    int r = world_run_linked(n, world_links[link], timeout_ms, fn, arg);
    ck_assert_msg(r == 0, "%d ranks, link %d: %s", n, (int)world_links[link], err_last()->message);
}

static int expect(int r, int status, const char *part)
{
    mesh_error e = *err_last();
    if (r != status) {
        return wrong("rank %d: %s instead of %s: %.150s", mesh_rank(), mesh_status_name((mesh_status)r),
                     mesh_status_name((mesh_status)status), r < 0 ? e.message : "");
    }
    if (part != NULL && strstr(e.message, part) == NULL) {
        return wrong("rank %d: \"%s\" is not in: %.180s", mesh_rank(), part, e.message);
    }
    return 0;
}

/* Different calls -------------------------------------------------------------------------------------------------- */

static float in_buffer[9][4096], out_buffer[9][4096];

static int call_sum(mesh_group *g, int me)
{
    return mesh_all_reduce(out_buffer[me], 16, MESH_F32, MESH_SUM, g);
}
static int call_max(mesh_group *g, int me)
{
    return mesh_all_reduce(out_buffer[me], 16, MESH_F32, MESH_MAX, g);
}
static int call_integers(mesh_group *g, int me)
{
    return mesh_all_reduce(out_buffer[me], 16, MESH_I32, MESH_SUM, g);
}
static int call_longer(mesh_group *g, int me)
{
    return mesh_all_reduce(out_buffer[me], 17, MESH_F32, MESH_SUM, g);
}
static int call_much_longer(mesh_group *g, int me)
{
    (void)me;
    static _Thread_local float large[1 << 20];
    return mesh_all_reduce(large, 1 << 20, MESH_F32, MESH_SUM, g);
}
static int call_nothing(mesh_group *g, int me)
{
    return mesh_all_reduce(out_buffer[me], 0, MESH_F32, MESH_SUM, g);
}
static int call_gather(mesh_group *g, int me)
{
    return mesh_all_gather(out_buffer[me], in_buffer[me], 16, MESH_F32, g);
}
static int call_gather_more(mesh_group *g, int me)
{
    return mesh_all_gather(out_buffer[me], in_buffer[me], 17, MESH_F32, g);
}
static int call_scatter(mesh_group *g, int me)
{
    return mesh_reduce_scatter(out_buffer[me], in_buffer[me], 16, MESH_F32, MESH_SUM, g);
}
static int call_exchange(mesh_group *g, int me)
{
    return mesh_all_to_all(out_buffer[me], in_buffer[me], 16, MESH_F32, g);
}
static int call_barrier(mesh_group *g, int me)
{
    (void)me;
    return mesh_barrier(g);
}
static int gather_splits(mesh_group *g, int me, size_t mine)
{
    size_t sizes[9];
    for (int i = 0; i < 9; i++) {
        sizes[i] = (size_t)i + mine;
    }
    return mesh_all_gather_v(out_buffer[me], sizes, in_buffer[me], MESH_F32, g);
}
static int call_splits(mesh_group *g, int me)
{
    return gather_splits(g, me, 1);
}
static int call_other_splits(mesh_group *g, int me)
{
    return gather_splits(g, me, 2);
}
static int exchange_splits(mesh_group *g, int me, size_t more)
{
    size_t out[9], in[9];
    for (int i = 0; i < 9; i++) {
        out[i] = in[i] = 2;
    }
    in[0] += more; /* rank 0 does not expect that much */
    return mesh_all_to_all_v(out_buffer[me], out, in_buffer[me], in, MESH_F32, g);
}
static int call_even_exchange(mesh_group *g, int me)
{
    return exchange_splits(g, me, 0);
}
static int call_uneven_exchange(mesh_group *g, int me)
{
    return exchange_splits(g, me, 1);
}
static int call_root_0(mesh_group *g, int me)
{
    int r = mesh_broadcast(out_buffer[me], 16, MESH_F32, 0, g);
    return r < 0 ? r : mesh_barrier(g); /* who only sent hears of it in its next call */
}
static int call_root_1(mesh_group *g, int me)
{
    int r = mesh_broadcast(out_buffer[me], 16, MESH_F32, 1, g);
    return r < 0 ? r : mesh_barrier(g);
}

struct difference {
    int (*by_most)(mesh_group *g, int me);
    int (*by_last)(mesh_group *g, int me);
    const char *text[2]; /* how the calls read, NULL: not checked */
};

static const struct difference differences[] = {
    { call_sum, call_max, { "all_reduce sum f32[16]", "all_reduce max f32[16]" } },
    { call_sum, call_integers, { "all_reduce sum f32[16]", "all_reduce sum i32[16]" } },
    { call_sum, call_longer, { "all_reduce sum f32[16]", "all_reduce sum f32[17]" } },
    { call_sum, call_much_longer, { "all_reduce sum f32[16]", "all_reduce sum f32[1048576]" } },
    { call_much_longer, call_sum, { "all_reduce sum f32[1048576]", "all_reduce sum f32[16]" } },
    { call_longer, call_nothing, { "all_reduce sum f32[17]", "all_reduce sum f32[0]" } },
    { call_sum, call_gather, { "all_reduce sum f32[16]", "all_gather f32[16]" } },
    { call_gather, call_gather_more, { "all_gather f32[16]", "all_gather f32[17]" } },
    { call_gather, call_barrier, { "all_gather f32[16]", "barrier" } },
    { call_much_longer, call_barrier, { "all_reduce sum f32[1048576]", "barrier" } },
    { call_scatter, call_exchange, { "reduce_scatter sum f32[16]", "all_to_all f32[16]" } },
    { call_splits, call_other_splits, { "all_gather f32[", "split as #" } },
    { call_even_exchange, call_uneven_exchange, { "all_to_all f32[2]", "all_to_all f32[3]" } },
    { call_root_0, call_root_1, { NULL, NULL } },
};

/* Most ranks make one call, the last rank another: all get MESH_EMISMATCH, and the group is of no use any more. */
static int differ(void *arg)
{
    const struct difference *d = arg;
    int me = mesh_rank(), n = mesh_world_size();
    int r = mesh_barrier(mesh_world()); /* the news may come while a slow rank is in here */
    if (r == 0) {
        r = me == n - 1 ? d->by_last(mesh_world(), me) : d->by_most(mesh_world(), me);
    }
    for (int i = 0; i < 2 && r == 0; i++) {
        r = mesh_barrier(mesh_world()); /* this rank had got all it needed */
    }
    r = expect(r, MESH_EMISMATCH, "of group world");
    if (r == 0 && d->text[0] != NULL) {
        r = expect(MESH_EMISMATCH, MESH_EMISMATCH, d->text[0]);
        r = r < 0 ? r : expect(MESH_EMISMATCH, MESH_EMISMATCH, d->text[1]);
    }
    return r < 0 ? r : expect(mesh_barrier(mesh_world()), MESH_EPOISONED, "group world failed earlier: rank");
}

START_TEST(case_mdt_mop_different_calls_are_a_mismatch_on_every_rank)
{
    static const int sizes[] = { 2, 3, 4, 5, 8, 9 };
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        union {
            const struct difference *in;
            void *arg;
        } d = { .in = &differences[_i / N_LINKS] };
        run(sizes[i], _i % N_LINKS, 8000, differ, d.arg);
    }
}
END_TEST

static int one_call_more(void *arg)
{
    int64_t x = 1;
    (void)arg;
    int r = mesh_rank() == 1 ? mesh_barrier(mesh_world()) : 0; /* rank 1 is one call ahead */
    r = r < 0 ? r : mesh_all_reduce(&x, 1, MESH_I64, MESH_SUM, mesh_world());
    return expect(r, MESH_EMISMATCH, "barrier (seq 1");
}

START_TEST(a_forgotten_call_is_a_mismatch)
{
    run(3, _i, 20000, one_call_more, NULL);
}
END_TEST

static int uneven_without_v(void *arg)
{
    float in[4] = { 0 }, out[16];
    (void)arg;
    int r = mesh_all_gather(out, in, (size_t)mesh_rank() + 1, MESH_F32, mesh_world());
    return expect(r, MESH_EMISMATCH, "all_gather f32[");
}

START_TEST(all_gather_of_different_counts_is_a_mismatch_on_all_ranks)
{
    run(4, _i, 20000, uneven_without_v, NULL);
}
END_TEST

/* Payloads that are read together with their header, and such as are not. */
static int deliver_nothing(void *arg)
{
    static const int both[] = { 0, 1 };
    static const size_t counts[] = { 1, 1000, 8192, 8193, 100000 };
    static uint32_t in[2][100000], out[2][200000];
    int me = mesh_rank(), r = 0;
    (void)arg;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && r == 0; i++) {
        mesh_group *g = mesh_new_group(both, 2);
        memset(in[me], 0x11, sizeof in[me]);
        memset(out[me], 0x22, sizeof out[me]);
        r = mesh_all_gather(out[me], in[me], counts[i], me == 0 ? MESH_F32 : MESH_I32, g);
        r = expect(r, MESH_EMISMATCH, "all_gather");
        const uint32_t *theirs = out[me] + (me == 0 ? counts[i] : 0);
        for (size_t k = 0; k < counts[i] && r == 0; k++) {
            r = theirs[k] == 0x22222222u ? 0 : wrong("element %zu of %zu was delivered", k, counts[i]);
        }
        (void)mesh_free_group(g);
    }
    return r;
}

START_TEST(what_belongs_to_another_call_is_not_delivered)
{
    run(2, _i, 20000, deliver_nothing, NULL);
}
END_TEST

/* A new group works after the old one failed. */
static int survive(void *arg)
{
    static const int both[] = { 0, 1 };
    int32_t x = 1;
    (void)arg;
    mesh_group *g = mesh_new_group(both, 2);
    int r = mesh_rank() == 0 ? mesh_barrier(g) : mesh_all_reduce(&x, 1, MESH_I32, MESH_SUM, g);
    r = expect(r, MESH_EMISMATCH, NULL);
    g = mesh_free_group(g);
    g = mesh_new_group(both, 2);
    x = 1;
    r = r < 0 ? r : mesh_all_reduce(&x, 1, MESH_I32, MESH_SUM, g);
    r = r < 0 ? r : mesh_all_reduce(&x, 1, MESH_I32, MESH_SUM, mesh_world()); /* and the world never failed */
    return r < 0 ? r : (x == 4 ? 0 : wrong("the sum is %d", (int)x));
}

START_TEST(case_pois_a_new_group_of_the_same_ranks_works_after_a_failure)
{
    run(2, _i, 20000, survive, NULL);
}
END_TEST

/* Ranks that do not come ------------------------------------------------------------------------------------------- */

static int one_never_calls(void *arg)
{
    float x = 0;
    (void)arg;
    int r = mesh_barrier(mesh_world());
    if (r < 0 || mesh_rank() == 1) {
        usleep(900000);
        return r;
    }
    int64_t begun = clock_now_ms();
    r = mesh_all_reduce(&x, 1, MESH_F32, MESH_SUM, mesh_world());
    int64_t took = clock_now_ms() - begun;
    if (took < 290) {
        return wrong("the call ended after %d ms", (int)took);
    }
    r = expect(r, MESH_ETIMEDOUT, "all_reduce sum f32[1] (seq 2 of group world): no answer of rank");
    return r < 0 ? r : expect(mesh_barrier(mesh_world()), MESH_EPOISONED, "no answer of");
}

START_TEST(case_miss_a_rank_that_never_calls_is_named_at_the_deadline)
{
    run(_i / N_LINKS + 2, _i % N_LINKS, 300, one_never_calls, NULL);
}
END_TEST

static int nobody_waits_and_one_never_calls(void *arg)
{
    static _Thread_local float x[1000];
    (void)arg;
    if (mesh_rank() == 1) {
        usleep(900000);
        return 0;
    }
    mesh_scope *s = mesh_scope_begin();
    mesh_work *w = mesh_all_reduce_async(x, 1000, MESH_F32, MESH_SUM, mesh_world());
    int64_t deadline = deadline_in(5000);
    while (!mesh_done(w) && deadline_left(deadline) > 0) {
        usleep(5000);
    }
    int r = expect(mesh_wait(w, MESH_NO_WAIT), MESH_ETIMEDOUT, "no answer of rank 1");
    int end = mesh_scope_end(s);
    return r < 0 ? r : end;
}

START_TEST(a_call_that_nobody_waits_for_times_out_by_itself)
{
    run(2, _i, 300, nobody_waits_and_one_never_calls, NULL);
}
END_TEST

static int short_wait(void *arg)
{
    int32_t x = 1;
    (void)arg;
    if (mesh_rank() == 1) {
        usleep(200000);
    }
    mesh_work *w = mesh_all_reduce_async(&x, 1, MESH_I32, MESH_SUM, mesh_world());
    int r = mesh_rank() == 0 ? expect(mesh_wait(w, 20), MESH_ETIMEDOUT, "still goes on") : 0;
    int again = mesh_wait(w, 0);
    return r < 0 ? r : (again == 0 && x == 2 ? 0 : wrong("the second wait gives %d", again));
}

START_TEST(a_wait_may_be_shorter_than_its_call)
{
    run(2, _i, 10000, short_wait, NULL);
}
END_TEST

/* Ranks that go ---------------------------------------------------------------------------------------------------- */

static int one_leaves(void *arg)
{
    float x = 0;
    (void)arg;
    int r = mesh_barrier(mesh_world());
    if (r < 0 || mesh_rank() == mesh_world_size() - 1) {
        return r < 0 ? r : mesh_finalize();
    }
    int64_t begun = clock_now_ms();
    r = mesh_all_reduce(&x, 1, MESH_F32, MESH_SUM, mesh_world());
    int64_t took = clock_now_ms() - begun;
    r = expect(r, MESH_EPEER, "left the job");
    return r < 0 || took < 5000 ? r : wrong("it took %d ms", (int)took);
}

START_TEST(a_rank_that_left_early_is_named)
{
    run(_i / N_LINKS + 2, _i % N_LINKS, 20000, one_leaves, NULL);
}
END_TEST

/* The root sends and leaves at once: its bytes must arrive all the same. */
static int root_leaves(void *arg)
{
    static _Thread_local int32_t x[20000];
    (void)arg;
    int r = mesh_barrier(mesh_world());
    for (int i = 0; i < 20000; i++) {
        x[i] = mesh_rank() == 0 ? i : -1;
    }
    if (mesh_rank() > 0) {
        usleep(100000);
    }
    r = r < 0 ? r : mesh_broadcast(x, 12000, MESH_I32, 0, mesh_world());
    return r < 0 ? r : (x[11999] == 11999 ? 0 : wrong("the last element is %d", (int)x[11999]));
}

START_TEST(what_a_rank_sent_before_it_left_arrives)
{
    run(3, _i, 20000, root_leaves, NULL);
}
END_TEST

static int one_aborts(void *arg)
{
    static _Thread_local float x[100000];
    const int *culprit = arg;
    int r = mesh_barrier(mesh_world());
    if (r == 0 && mesh_rank() == *culprit) {
        usleep(50000);
        return mesh_abort("the disk is full");
    }
    r = mesh_all_reduce(x, 100000, MESH_F32, MESH_SUM, mesh_world());
    r = expect(r, MESH_EABORTED, "the disk is full");
    if (r == 0 && err_last()->rank != *culprit) {
        r = wrong("rank %d is blamed", err_last()->rank);
    }
    return r < 0 ? r : expect(mesh_barrier(mesh_world()), MESH_EABORTED, "the disk is full");
}

START_TEST(an_abort_ends_pending_and_later_calls_of_all_ranks)
{
    int culprit = 1;
    run(_i / N_LINKS + 2, _i % N_LINKS, 20000, one_aborts, &culprit);
}
END_TEST

static int one_fails(void *arg)
{
    (void)arg;
    if (mesh_rank() == 2) {
        return err_set(MESH_EIO, "cannot read shard 2");
    }
    int r = mesh_barrier(mesh_world());
    return r == MESH_EABORTED ? 0 : wrong("the barrier gives %d", r);
}

START_TEST(a_function_that_fails_ends_the_world_with_its_error)
{
    int r = world_run_linked(4, world_links[_i], 20000, one_fails, NULL);
    ck_assert_int_eq(r, MESH_EIO);
    ck_assert_str_eq(mesh_last_error()->message, "cannot read shard 2");
    ck_assert_int_eq(mesh_last_error()->rank, 2);
}
END_TEST

static int free_in_flight(void *arg)
{
    static const int both[] = { 0, 1 };
    float x = 0;
    (void)arg;
    if (mesh_rank() == 1) {
        usleep(100000);
        return 0;
    }
    mesh_group *g = mesh_new_group(both, 2);
    mesh_work *w = mesh_all_reduce_async(&x, 1, MESH_F32, MESH_SUM, g);
    usleep(30000);
    mesh_free_group(g);
    return expect(mesh_wait(w, 0), MESH_EABORTED, "freed with calls in flight");
}

START_TEST(case_gdst_freeing_a_group_ends_its_calls)
{
    run(2, _i, 20000, free_in_flight, NULL);
}
END_TEST

/* Bad arguments ---------------------------------------------------------------------------------------------------- */

static int refused(void *arg)
{
    float x[64] = { 0 };
    size_t huge[2] = { SIZE_MAX / 8, SIZE_MAX / 8 };
    mesh_group *g = mesh_world();
    static const int twice[] = { 0, 0 }, outside[] = { 0, 7 };
    (void)arg;
    int r = expect(mesh_all_reduce(NULL, 4, MESH_F32, MESH_SUM, g), MESH_EINVAL, "NULL");
    r = r < 0 ? r : expect(mesh_all_reduce(x, 4, (mesh_dtype)77, MESH_SUM, g), MESH_EINVAL, "dtype");
    r = r < 0 ? r : expect(mesh_all_reduce(x, 4, MESH_F32, (mesh_reduce_op)0, g), MESH_EINVAL, "op");
    r = r < 0 ? r : expect(mesh_all_reduce(x, 4, MESH_F16, MESH_BOR, g), MESH_EUNSUPPORTED, "f16");
    r = r < 0 ? r : expect(mesh_all_reduce(x, 4, MESH_F32, MESH_SUM, NULL), MESH_EINVAL, "group");
    r = r < 0 ? r : expect(mesh_all_reduce(x, SIZE_MAX / 2, MESH_F32, MESH_SUM, g), MESH_ETOOLARGE, NULL);
    r = r < 0 ? r : expect(mesh_broadcast(x, 4, MESH_F32, 2, g), MESH_EINVAL, "root 2");
    r = r < 0 ? r : expect(mesh_broadcast(x, 4, MESH_F32, -1, g), MESH_EINVAL, "root -1");
    r = r < 0 ? r : expect(mesh_all_gather(x, x + 1, 4, MESH_F32, g), MESH_EINVAL, "overlap");
    r = r < 0 ? r : expect(mesh_all_to_all(x, x, 4, MESH_F32, g), MESH_EINVAL, "overlap");
    r = r < 0 ? r : expect(mesh_all_gather_v(x, NULL, x + 32, MESH_F32, g), MESH_EINVAL, "counts");
    r = r < 0 ? r : expect(mesh_all_gather_v(x, huge, x + 32, MESH_F32, g), MESH_ETOOLARGE, NULL);
    r = r < 0 ? r : (mesh_new_group(twice, 2) == NULL ? expect(MESH_EINVAL, MESH_EINVAL, "twice") : wrong("0, 0"));
    r = r < 0 ? r : (mesh_new_group(outside, 2) == NULL ? expect(MESH_EINVAL, MESH_EINVAL, "rank 7") : wrong("0, 7"));
    r = r < 0 ? r : (mesh_new_group(NULL, 0) == NULL ? 0 : wrong("an empty group"));
    r = r < 0 ? r : expect(mesh_wait(mesh_all_reduce_async(x, 4, MESH_I8, MESH_AVG, g), 0), MESH_EUNSUPPORTED, "i8");
    return r < 0 ? r : mesh_barrier(g); /* and nothing of it has touched the group */
}

START_TEST(bad_arguments_are_refused_before_any_traffic)
{
    run(2, _i, 5000, refused, NULL);
}
END_TEST

/* Beginning and ending --------------------------------------------------------------------------------------------- */

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        n += lseek(fd, 0, SEEK_CUR) >= 0 || dup2(fd, fd) >= 0;
    }
    return n;
}

static int nested(void *arg)
{
    (void)arg;
    int r = mesh_init();
    r = r < 0 ? r : mesh_barrier(mesh_world());
    r = r < 0 ? r : mesh_finalize();
    return r < 0 ? r : mesh_barrier(mesh_world());
}

START_TEST(twenty_worlds_in_a_row_leave_nothing_open)
{
    run(3, _i, 5000, nested, NULL);
    int before = count_fds();
    for (int i = 0; i < 20; i++) {
        run(3, _i, 5000, nested, NULL);
    }
    ck_assert_int_eq(count_fds(), before);
}
END_TEST

START_TEST(a_world_of_one_needs_nobody)
{
    ck_assert_int_eq(mesh_rank(), -1);
    ck_assert_int_eq(mesh_init(), 0);
    ck_assert_int_eq(mesh_rank(), 0);
    ck_assert_int_eq(mesh_world_size(), 1);
    float x = 3;
    ck_assert_int_eq(mesh_all_reduce(&x, 1, MESH_F32, MESH_AVG, mesh_world()), 0);
    ck_assert(x == 3);
    ck_assert_int_eq(mesh_init(), MESH_ESTATE);
    ck_assert_int_eq(mesh_finalize(), 0);
    ck_assert_int_eq(mesh_finalize(), MESH_ESTATE);
    ck_assert_int_eq(mesh_init(), 0);
    ck_assert_int_eq(mesh_finalize(), 0);
}
END_TEST

START_TEST(bad_settings_get_one_clear_sentence)
{
    int rank = 5;
    ck_assert_int_eq(mesh_init(.world_size = 4), MESH_EDAEMON);
    ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, "meshctl run -n 4"));
    ck_assert_int_eq(mesh_init(.world_size = -1), MESH_EINVAL);
    ck_assert_int_eq(mesh_init(.world_size = 4, .rank = &rank), MESH_EINVAL);
    ck_assert_int_eq(mesh_init(.timeout_ms = -1), MESH_EINVAL);
    ck_assert_int_eq(mesh_init(.address = "unix:/nowhere/meshd.sock"), MESH_EINVAL);
    setenv("MESH_WORLD_SIZE", "four", 1);
    ck_assert_int_eq(mesh_init(), MESH_EINVAL);
    ck_assert_ptr_nonnull(strstr(mesh_last_error()->message, "MESH_WORLD_SIZE is \"four\""));
    setenv("MESH_WORLD_SIZE", "2", 1);
    setenv("MESH_RANK", "2", 1);
    ck_assert_int_eq(mesh_init(), MESH_EINVAL);
    unsetenv("MESH_RANK");
    unsetenv("MESH_WORLD_SIZE");
    setenv("MESH_LINK", "carrier pigeon", 1);
    ck_assert_int_eq(mesh_init(), MESH_EINVAL);
    ck_assert_str_eq(mesh_last_error()->where, "mesh_init");
    unsetenv("MESH_LINK");
    setenv("MESH_LOG", "comm:loud", 1);
    ck_assert_int_eq(mesh_init(), MESH_EINVAL);
    ck_assert_ptr_nonnull(
        strstr(mesh_last_error()->message, "MESH_LOG: log levels: \"loud\" is not one of off, error"));
    unsetenv("MESH_LOG");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("comm_failures");
    TCase *c = tcase_create("failures");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, case_mdt_mop_different_calls_are_a_mismatch_on_every_rank, 0,
                        (int)ARRAY_SIZE(differences) * N_LINKS);
    tcase_add_loop_test(c, a_forgotten_call_is_a_mismatch, 0, N_LINKS);
    tcase_add_loop_test(c, all_gather_of_different_counts_is_a_mismatch_on_all_ranks, 0, N_LINKS);
    tcase_add_loop_test(c, what_belongs_to_another_call_is_not_delivered, 0, N_LINKS);
    tcase_add_loop_test(c, case_pois_a_new_group_of_the_same_ranks_works_after_a_failure, 0, N_LINKS);
    tcase_add_loop_test(c, case_miss_a_rank_that_never_calls_is_named_at_the_deadline, 0, 3 * N_LINKS);
    tcase_add_loop_test(c, a_call_that_nobody_waits_for_times_out_by_itself, 0, N_LINKS);
    tcase_add_loop_test(c, a_wait_may_be_shorter_than_its_call, 0, N_LINKS);
    tcase_add_loop_test(c, a_rank_that_left_early_is_named, 0, 3 * N_LINKS);
    tcase_add_loop_test(c, what_a_rank_sent_before_it_left_arrives, 0, N_LINKS);
    tcase_add_loop_test(c, an_abort_ends_pending_and_later_calls_of_all_ranks, 0, 3 * N_LINKS);
    tcase_add_loop_test(c, a_function_that_fails_ends_the_world_with_its_error, 0, N_LINKS);
    tcase_add_loop_test(c, case_gdst_freeing_a_group_ends_its_calls, 0, N_LINKS);
    tcase_add_loop_test(c, bad_arguments_are_refused_before_any_traffic, 0, N_LINKS);
    tcase_add_loop_test(c, twenty_worlds_in_a_row_leave_nothing_open, 0, N_LINKS);
    tcase_add_test(c, a_world_of_one_needs_nobody);
    tcase_add_test(c, bad_settings_get_one_clear_sentence);
    suite_add_tcase(s, c);
    return s;
}
