/* tests/unit/daemon/test_ranks.c - rank assignment.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ranks.h"

#include <stdio.h>
#include <string.h>

#include "harness/check_main.h"
#include "seen.h"

static struct member from(const char *host, uint32_t slot, int32_t wanted, uint64_t client)
{
    struct member m = { .client = client, .wanted = wanted, .slot = slot, .pid = (uint32_t)client };
    snprintf(m.host, sizeof m.host, "%s", host);
    return m;
}

START_TEST(natural_order_compares_runs_of_digits_by_value)
{
    ck_assert_int_lt(natural_compare("node2", "node10"), 0);
    ck_assert_int_gt(natural_compare("node66", "node7"), 0);
    ck_assert_int_lt(natural_compare("rack1-node9", "rack2-node1"), 0);
    ck_assert_int_lt(natural_compare("rack1-node9", "rack1-node11"), 0);
    ck_assert_int_lt(natural_compare("node", "node1"), 0);
    ck_assert_int_eq(natural_compare("node1", "node1"), 0);
    ck_assert_int_ne(natural_compare("node01", "node1"), 0);
    ck_assert_int_lt(natural_compare("node01", "node2"), 0);
    ck_assert_int_lt(natural_compare("165", "1650"), 0);
    ck_assert_int_lt(natural_compare("99999999999999999999998", "99999999999999999999999"), 0);
    ck_assert_int_lt(natural_compare("", "a"), 0);
}
END_TEST

START_TEST(ranks_are_contiguous_per_host_in_natural_order_whatever_the_arrival)
{
    enum { N_HOSTS = 12, N_SLOTS = 8, N = N_HOSTS * N_SLOTS };
    uint32_t order[N];
    shuffle(order, N, (uint64_t)_i + 1);
    struct member m[N];
    for (uint32_t i = 0; i < N; i++) {
        char host[32];
        snprintf(host, sizeof host, "node%u", order[i] / N_SLOTS + 1);
        m[i] = from(host, order[i] % N_SLOTS, -1, order[i] + 1);
    }
    ck_assert_int_eq(ranks_assign(m, N), 0);
    for (uint32_t i = 0; i < N; i++) {
        ck_assert_uint_eq(m[i].client, i + 1);
        ck_assert_uint_eq(m[i].rank, i);
        ck_assert_uint_eq(m[i].local_rank, i % N_SLOTS);
        ck_assert_uint_eq(m[i].local_size, N_SLOTS);
    }
}
END_TEST

START_TEST(wanted_ranks_are_given_and_the_rest_fill_the_gaps)
{
    struct member m[] = { from("b", 0, -1, 1), from("a", 0, 3, 2), from("a", 0, -1, 3), from("b", 0, 0, 4) };
    ck_assert_int_eq(ranks_assign(m, 4), 0);
    ck_assert_uint_eq(m[0].client, 4);
    ck_assert_uint_eq(m[1].client, 3);
    ck_assert_uint_eq(m[2].client, 1);
    ck_assert_uint_eq(m[3].client, 2);
    ck_assert_uint_eq(m[1].local_rank, 0); /* of host a: ranks 1 and 3 */
    ck_assert_uint_eq(m[3].local_rank, 1);
    ck_assert_uint_eq(m[3].local_size, 2);
}
END_TEST

START_TEST(without_slots_arrival_decides_on_a_host)
{
    struct member m[] = { from("h", 0, -1, 7), from("h", 0, -1, 5), from("h", 0, -1, 6) };
    ck_assert_int_eq(ranks_assign(m, 3), 0);
    ck_assert_uint_eq(m[0].client, 7);
    ck_assert_uint_eq(m[1].client, 5);
    ck_assert_uint_eq(m[2].client, 6);
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("ranks");
    TCase *tc = tcase_create("ranks");
    tcase_add_test(tc, natural_order_compares_runs_of_digits_by_value);
    tcase_add_loop_test(tc, ranks_are_contiguous_per_host_in_natural_order_whatever_the_arrival, 0, 10);
    tcase_add_test(tc, wanted_ranks_are_given_and_the_rest_fill_the_gaps);
    tcase_add_test(tc, without_slots_arrival_decides_on_a_host);
    suite_add_tcase(suite, tc);
    return suite;
}
