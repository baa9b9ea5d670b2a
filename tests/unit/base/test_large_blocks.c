/* tests/unit/base/test_large_blocks.c - large blocks are used again, by needs of about their size only, and not without bound.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/large.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/kept.h"
#include "harness/check_main.h"

#define MIB ((size_t)1 << 20)

START_TEST(a_freed_large_block_serves_the_next_need_of_its_size)
{
    char *p = mem_alloc(8 * MIB);
    memset(p, 1, 8 * MIB);
    mem_free(p);
    char *smaller = mem_alloc(4 * MIB), *larger = mem_alloc(9 * MIB), *again = mem_alloc(8 * MIB - 1000);
    ck_assert_ptr_ne(smaller, p);
    ck_assert_ptr_ne(larger, p);
    ck_assert(again == p || !KEEPS_BLOCKS);
    char *other = mem_zalloc(8 * MIB);
    ck_assert_ptr_ne(other, again);
    ck_assert_int_eq(other[0], 0);
    ck_assert_int_eq(other[8 * MIB - 1], 0);
    mem_free(smaller);
    mem_free(larger);
    mem_free(again);
    mem_free(other);
}
END_TEST

START_TEST(zeroed_blocks_are_zero_however_often_they_were_used)
{
    for (int i = 0; i < 3; i++) {
        char *p = mem_zalloc(3 * MIB);
        size_t n_other = 0;
        for (size_t k = 0; k < 3 * MIB; k++) {
            n_other += p[k] != 0;
        }
        ck_assert_uint_eq(n_other, 0);
        memset(p, 7, 3 * MIB);
        mem_free(p);
    }
}
END_TEST

/* How many blocks of this size are given again after n of them were freed. */
static int kept_of(int n, size_t bytes)
{
    void *p[40];
    int n_kept = 0;
    for (int i = 0; i < n; i++) {
        p[i] = mem_alloc(bytes);
        ck_assert_ptr_nonnull(p[i]);
    }
    for (int i = 0; i < n; i++) {
        mem_free(p[i]);
    }
    for (void *q = large_take(bytes); q != NULL; q = large_take(bytes)) {
        n_kept++;
        large_keep(q, 2 * LARGE_KEPT_BYTES); /* over the bound: freed at once */
    }
    return n_kept;
}

START_TEST(what_is_kept_is_bounded_in_bytes_and_in_number)
{
    ck_assert_int_eq(kept_of(3, 100 * MIB), KEEPS_BLOCKS ? 2 : 0);
    ck_assert_int_eq(kept_of(40, MIB), KEEPS_BLOCKS ? 16 : 0);
}
END_TEST

START_TEST(the_oldest_block_goes_first)
{
    void *old = mem_alloc(10 * MIB);
    mem_free(old);
    ck_assert_int_eq(kept_of(16, MIB), KEEPS_BLOCKS ? 16 : 0);
    ck_assert_ptr_null(large_take(10 * MIB));
}
END_TEST

static void *churn(void *arg)
{
    size_t bytes = *(const size_t *)arg;
    for (int i = 0; i < 200; i++) {
        char *p = mem_alloc(bytes), *q = mem_alloc(bytes);
        p[0] = 1;
        q[0] = 2;
        p[bytes - 1] = 3;
        q[bytes - 1] = 4;
        ck_assert_int_eq(p[0] + q[0] + p[bytes - 1] + q[bytes - 1], 10);
        mem_free(p);
        mem_free(q);
    }
    return NULL;
}

START_TEST(threads_never_get_the_same_block)
{
    size_t bytes[4] = { MIB, MIB + 64, 2 * MIB, 2 * MIB };
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, churn, &bytes[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("large_blocks");
    TCase *cases = tcase_create("large_blocks");
    tcase_add_test(cases, a_freed_large_block_serves_the_next_need_of_its_size);
    tcase_add_test(cases, zeroed_blocks_are_zero_however_often_they_were_used);
    tcase_add_test(cases, what_is_kept_is_bounded_in_bytes_and_in_number);
    tcase_add_test(cases, the_oldest_block_goes_first);
    tcase_add_test(cases, threads_never_get_the_same_block);
    suite_add_tcase(suite, cases);
    return suite;
}
