/* tests/unit/comm/test_plan.c - every plan, proved by simulation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/choose.h"
#include "comm/plan_check.h"
#include "harness/check_main.h"

#include "base/error.h"

#define MAX_SIZE 17

static void prove(struct plan_request q)
{
    ck_assert_msg(plan_check(&q) == 0, "%s", err_last()->message);
}

/* Counts 0, 1, 2, a few around the group's size, and one large enough for aligned parts. */
static void prove_counts(mesh_comm_kind kind, enum plan_algorithm a, int size, int root)
{
    size_t counts[] = { 0, 1, 7, (size_t)size - 1, (size_t)size + 1, size <= 9 ? (size_t)size * 64 + 13 : 29 };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        prove((struct plan_request){ .kind = kind, .algorithm = a, .size = size, .root = root, .count = counts[i] });
    }
}

static bool has_split_sizes(mesh_comm_kind kind)
{
    return kind == MESH_COMM_REDUCE_SCATTER || kind == MESH_COMM_ALL_GATHER || kind == MESH_COMM_GATHER ||
           kind == MESH_COMM_SCATTER;
}

static void prove_splits(mesh_comm_kind kind, enum plan_algorithm a, int size)
{
    size_t counts[MAX_SIZE];
    for (int seed = 0; seed < 3; seed++) {
        for (int i = 0; i < size; i++) {
            counts[i] = seed == 0 ? (size_t)(i == size / 2 ? 11 : 0) : (size_t)((i * 5 + seed * 3) % 4);
        }
        struct plan_request q = { .kind = kind, .algorithm = a, .size = size, .root = size / 3 };
        bool is_gather = kind == MESH_COMM_ALL_GATHER || kind == MESH_COMM_GATHER;
        q.in_counts = is_gather ? NULL : counts;
        q.out_counts = is_gather ? counts : NULL;
        prove(q);
    }
}

static bool has_root(mesh_comm_kind kind)
{
    return kind == MESH_COMM_BROADCAST || kind == MESH_COMM_REDUCE || kind == MESH_COMM_GATHER ||
           kind == MESH_COMM_SCATTER;
}

START_TEST(every_plan_of_1_to_17_ranks_is_right_for_odd_counts)
{
    enum plan_algorithm a = (enum plan_algorithm)_i;
    for (int size = 1; size <= MAX_SIZE; size++) {
        if (has_root(plan_kind(a))) {
            prove_counts(plan_kind(a), a, size, 0);
            prove_counts(plan_kind(a), a, size, size - 1);
            prove_counts(plan_kind(a), a, size, size / 2);
        } else {
            prove_counts(plan_kind(a), a, size, -1);
        }
        if (has_split_sizes(plan_kind(a))) {
            prove_splits(plan_kind(a), a, size);
        }
    }
}
END_TEST

START_TEST(all_to_all_of_uneven_parts_is_right)
{
    size_t matrix[MAX_SIZE * MAX_SIZE];
    for (int size = 1; size <= MAX_SIZE; size++) {
        for (int i = 0; i < size * size; i++) {
            matrix[i] = (size_t)((i * 7 + size) % 5);
        }
        prove((struct plan_request){ .kind = MESH_COMM_ALL_TO_ALL,
                                     .algorithm = PLAN_ALL_TO_ALL_DIRECT,
                                     .size = size,
                                     .root = -1,
                                     .in_counts = matrix });
    }
}
END_TEST

START_TEST(every_call_has_a_plan_of_its_own_kind)
{
    static const mesh_comm_kind kinds[] = { MESH_COMM_ALL_REDUCE, MESH_COMM_REDUCE_SCATTER, MESH_COMM_ALL_GATHER,
                                            MESH_COMM_ALL_TO_ALL, MESH_COMM_BROADCAST,      MESH_COMM_BARRIER,
                                            MESH_COMM_REDUCE,     MESH_COMM_GATHER,         MESH_COMM_SCATTER };
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (int size = 1; size < 40; size++) {
            for (uint64_t bytes = 0; bytes < (UINT64_C(1) << 40); bytes = bytes * 2 + 1) {
                ck_assert_int_eq(plan_kind(plan_choose(kinds[k], MESH_F32, size, bytes)), kinds[k]);
                ck_assert_int_eq(plan_kind(plan_choose(kinds[k], MESH_BF16, size, bytes)), kinds[k]);
            }
        }
    }
}
END_TEST

START_TEST(the_checker_finds_a_wrong_formula_and_a_wrong_kind_of_length)
{
    /* An all_gather whose rank 0 has another count than its plan says cannot match. */
    size_t counts[2] = { 3, 4 };
    struct plan_request q = {
        .kind = MESH_COMM_ALL_GATHER, .algorithm = PLAN_ALL_GATHER_DIRECT, .size = 2, .root = -1, .out_counts = counts
    };
    ck_assert_int_eq(plan_check(&q), 0);
    struct plan_request half = q;
    half.size = 1;
    half.out_counts = NULL;
    half.count = 3;
    ck_assert_int_eq(plan_check(&half), 0);
    ck_assert_uint_eq(plan_elements_sent(&half), 0);
    ck_assert_uint_eq(plan_elements_sent(&q), 7);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("plan");
    TCase *c = tcase_create("plan");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, every_plan_of_1_to_17_ranks_is_right_for_odd_counts, 1, N_PLAN_ALGORITHMS);
    tcase_add_test(c, all_to_all_of_uneven_parts_is_right);
    tcase_add_test(c, every_call_has_a_plan_of_its_own_kind);
    tcase_add_test(c, the_checker_finds_a_wrong_formula_and_a_wrong_kind_of_length);
    suite_add_tcase(s, c);
    return s;
}
