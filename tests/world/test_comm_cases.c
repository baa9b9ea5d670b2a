/* tests/world/test_comm_cases.c - the corners of collectives, by value: sums that wrap, truth values, 16-bit floats,
 * splits.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/log.h"
#include "comm_world.h"

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int r_ = (call);                                                                                               \
        if (r_ < 0) {                                                                                                  \
            return r_;                                                                                                 \
        }                                                                                                              \
    } while (0)

#define CLAIM(claim)                                                                                                   \
    do {                                                                                                               \
        if (!(claim)) {                                                                                                \
            return wrong("rank %d: not so: %s", mesh_rank(), #claim);                                                  \
        }                                                                                                              \
    } while (0)

struct value { /* one element of any dtype, as a number */
    mesh_dtype dtype;
    union {
        float f32;
        double f64;
        uint16_t half;
        int8_t i8;
        uint8_t u8;
        int32_t i32;
        int64_t i64;
    } as;
};

static struct value value_of(mesh_dtype t, int n)
{
    struct value v = { .dtype = t };
    switch (t) {
    case MESH_F32:
        v.as.f32 = (float)n;
        break;
    case MESH_F64:
        v.as.f64 = n;
        break;
    case MESH_F16:
        v.as.half = float_to_f16((float)n);
        break;
    case MESH_BF16:
        v.as.half = float_to_bf16((float)n);
        break;
    case MESH_I8:
        v.as.i8 = (int8_t)n;
        break;
    case MESH_I32:
        v.as.i32 = n;
        break;
    case MESH_I64:
        v.as.i64 = n;
        break;
    default:
        v.as.u8 = (uint8_t)n;
    }
    return v;
}

static int expect_sum(mesh_dtype t, int mine, int want)
{
    struct value v = value_of(t, mine), w = value_of(t, want);
    TRY(mesh_all_reduce(&v.as, 1, t, MESH_SUM, mesh_world()));
    return memcmp(&v.as, &w.as, dtype_size(t)) == 0 ? 0 : wrong("the sum of %s is not %d", dtype_name(t), want);
}

/* Cases sum, wrap, avg, fp16, rroot, rsm of four ranks. */
static int four(void *arg)
{
    int me = mesh_rank();
    (void)arg;
    for (int t = MESH_F32; t < MESH_BOOL; t++) {
        TRY(expect_sum((mesh_dtype)t, me + 1, 10));
    }
    TRY(expect_sum(MESH_I8, 100, -112));
    TRY(expect_sum(MESH_U8, 100, 144));
    TRY(expect_sum(MESH_F16, me < 2 ? 40000 : -40000, 0));

    float mean = (float)me + 1;
    int32_t whole = me;
    TRY(mesh_all_reduce(&mean, 1, MESH_F32, MESH_AVG, mesh_world()));
    CLAIM(mean == 2.5f);
    CLAIM(mesh_all_reduce(&whole, 1, MESH_I32, MESH_AVG, mesh_world()) == MESH_EUNSUPPORTED && whole == me);

    float full[8], sum[8] = { 0 };
    for (int i = 0; i < 8; i++) {
        full[i] = (float)me + 1;
    }
    TRY(mesh_reduce(sum, full, 8, MESH_F32, MESH_SUM, 0, mesh_world()));
    CLAIM(full[0] == (float)me + 1 && full[7] == (float)me + 1 && sum[7] == (me == 0 ? 10.0f : 0.0f));

    static const int32_t want[3][4] = { { 3, 1, 9, 2 }, { 0, 1, 6, 2 }, { 0, 1, 3024, 16 } };
    static const mesh_reduce_op ops[3] = { MESH_MAX, MESH_MIN, MESH_PROD };
    for (int o = 0; o < 3; o++) {
        int32_t in[4] = { me, 1, 9 - me, 2 }, out = -1;
        TRY(mesh_reduce_scatter(&out, in, 1, MESH_I32, ops[o], mesh_world()));
        CLAIM(out == want[o][me]);
    }
    return 0;
}

START_TEST(case_sum_wrap_avg_fp16_rroot_rsm_numbers_of_four_ranks)
{
    int r = world_run_linked(4, world_links[_i], 20000, four, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

static int expect_bools(const bool *mine, mesh_reduce_op op, bool a, bool b, bool c)
{
    bool x[3];
    memcpy(x, mine, sizeof x);
    TRY(mesh_all_reduce(x, 3, MESH_BOOL, op, mesh_world()));
    CLAIM(x[0] == a && x[1] == b && x[2] == c);
    return 0;
}

/* Case bool of two ranks. */
static int truth_values(void *arg)
{
    static const bool values[2][3] = { { true, true, false }, { false, true, false } };
    const bool *mine = values[mesh_rank()];
    (void)arg;
    TRY(expect_bools(mine, MESH_SUM, true, true, false));
    TRY(expect_bools(mine, MESH_MAX, true, true, false));
    TRY(expect_bools(mine, MESH_BOR, true, true, false));
    TRY(expect_bools(mine, MESH_PROD, false, true, false));
    TRY(expect_bools(mine, MESH_MIN, false, true, false));
    TRY(expect_bools(mine, MESH_BAND, false, true, false));
    TRY(expect_bools(mine, MESH_BXOR, true, false, false));
    bool x[3] = { false };
    CLAIM(mesh_all_reduce(x, 3, MESH_BOOL, MESH_AVG, mesh_world()) == MESH_EUNSUPPORTED);
    return 0;
}

START_TEST(case_bool_truth_values_of_two_ranks)
{
    int r = world_run_linked(2, world_links[_i], 20000, truth_values, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

/* Cases rsv and a2a of three ranks. */
static int three(void *arg)
{
    static const size_t send[3][3] = { { 0, 2, 1 }, { 3, 0, 0 }, { 1, 1, 1 } }, counts[3] = { 2, 0, 1 };
    static const int32_t want[3][4] = { { 10, 11, 12, 20 }, { 0, 1, 21 }, { 2, 22 } };
    static const size_t n_want[3] = { 4, 3, 2 };
    int me = mesh_rank();
    (void)arg;
    int32_t in[3] = { me, me + 1, me + 2 }, part[2] = { -1, -1 };
    TRY(mesh_reduce_scatter_v(part, in, counts, MESH_I32, MESH_SUM, mesh_world()));
    CLAIM(part[0] == (me == 0 ? 3 : me == 1 ? -1 : 9) && part[1] == (me == 0 ? 6 : -1));

    int32_t out[4] = { 0 }, mine[3] = { 10 * me, 10 * me + 1, 10 * me + 2 };
    const size_t received[3] = { send[0][me], send[1][me], send[2][me] };
    TRY(mesh_all_to_all_v(out, received, mine, send[me], MESH_I32, mesh_world()));
    CLAIM(memcmp(out, want[me], n_want[me] * sizeof out[0]) == 0);
    return 0;
}

START_TEST(case_rsv_a2a_splits_of_three_ranks)
{
    int r = world_run_linked(3, world_links[_i], 20000, three, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

/* Cases agv and zero: r + 1 copies of r; calls without elements, then one with against none. */
static int uneven_and_empty(void *arg)
{
    static const int32_t want[10] = { 0, 1, 1, 2, 2, 2, 3, 3, 3, 3 };
    static const size_t counts[4] = { 1, 2, 3, 4 };
    int me = mesh_rank();
    int32_t in[4] = { me, me, me, me }, out[16];
    (void)arg;
    TRY(mesh_all_gather_v(out, counts, in, MESH_I32, mesh_world()));
    CLAIM(memcmp(out, want, sizeof want) == 0);
    memset(out, 0, sizeof out);
    TRY(mesh_gather_v(out, counts, in, MESH_I32, 2, mesh_world()));
    CLAIM(me != 2 || memcmp(out, want, sizeof want) == 0);

    TRY(mesh_all_reduce(NULL, 0, MESH_F32, MESH_SUM, mesh_world()));
    TRY(mesh_all_gather(NULL, NULL, 0, MESH_F32, mesh_world()));
    TRY(mesh_broadcast(NULL, 0, MESH_F32, 1, mesh_world()));
    TRY(mesh_reduce_scatter(NULL, NULL, 0, MESH_F32, MESH_SUM, mesh_world()));
    TRY(mesh_reduce(NULL, NULL, 0, MESH_F16, MESH_SUM, 3, mesh_world()));
    TRY(mesh_scatter(NULL, NULL, 0, MESH_F32, 0, mesh_world()));
    TRY(mesh_barrier(mesh_world()));
    int r = mesh_all_gather(out, in, (size_t)me % 2, MESH_I32, mesh_world());
    CLAIM(r == MESH_EMISMATCH || r == MESH_EPOISONED);
    return 0;
}

START_TEST(case_agv_zero_uneven_and_empty_parts_of_four_ranks)
{
    int r = world_run_linked(4, world_links[_i], 20000, uneven_and_empty, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

#define N_ALONE 100001

/* Case w1: of one rank every op leaves what it gets, signalling NaNs and all. */
static int alone(void *arg)
{
    static uint16_t x[N_ALONE], before[N_ALONE];
    (void)arg;
    for (size_t i = 0; i < N_ALONE; i++) {
        before[i] = (uint16_t)(i * 40503u);
    }
    for (int t = MESH_F16; t <= MESH_BF16; t++) {
        for (int op = MESH_SUM; op <= MESH_MAX; op++) {
            memcpy(x, before, sizeof x);
            TRY(mesh_all_reduce(x, N_ALONE, (mesh_dtype)t, (mesh_reduce_op)op, mesh_world()));
            CLAIM(memcmp(x, before, sizeof x) == 0);
            TRY(mesh_reduce_scatter(x, before, N_ALONE, (mesh_dtype)t, (mesh_reduce_op)op, mesh_world()));
            CLAIM(memcmp(x, before, sizeof x) == 0);
        }
    }
    return 0;
}

START_TEST(case_w1_a_rank_alone_keeps_every_bit)
{
    int r = world_run_linked(1, world_links[_i], 20000, alone, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
}
END_TEST

/* A rank that is late ---------------------------------------------------------------------------------------------- */

static atomic_int n_told[3];

static void count_told(enum log_level level, const char *line, void *arg)
{
    (void)level, (void)arg;
    const char *says = strstr(line, ": barrier (seq 2 of group world) has waited ");
    if (says != NULL && strstr(says, " ms for rank 2") != NULL && says[-1] >= '0' && says[-1] <= '2') {
        (void)atomic_fetch_add(&n_told[says[-1] - '0'], 1);
    }
}

static int come_late(void *arg)
{
    (void)arg;
    TRY(mesh_barrier(mesh_world()));
    if (mesh_rank() == 2) {
        (void)usleep(1500000);
    }
    return mesh_barrier(mesh_world());
}

START_TEST(case_glate_a_late_rank_is_named_in_the_log_and_the_call_goes_on)
{
    log_set_sink(count_told, NULL);
    int r = world_run_linked(3, world_links[_i], 30000, come_late, NULL);
    log_set_sink(NULL, NULL);
    ck_assert_msg(r == 0, "%s", err_last()->message);
    ck_assert_int_eq(n_told[0], 1);
    ck_assert_int_eq(n_told[1], 1);
    ck_assert_int_eq(n_told[2], 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("comm_cases");
    TCase *c = tcase_create("cases");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, case_sum_wrap_avg_fp16_rroot_rsm_numbers_of_four_ranks, 0, 3);
    tcase_add_loop_test(c, case_bool_truth_values_of_two_ranks, 0, 3);
    tcase_add_loop_test(c, case_rsv_a2a_splits_of_three_ranks, 0, 3);
    tcase_add_loop_test(c, case_glate_a_late_rank_is_named_in_the_log_and_the_call_goes_on, 0, 3);
    tcase_add_loop_test(c, case_agv_zero_uneven_and_empty_parts_of_four_ranks, 0, 3);
    tcase_add_loop_test(c, case_w1_a_rank_alone_keeps_every_bit, 0, 3);
    suite_add_tcase(s, c);
    return s;
}
