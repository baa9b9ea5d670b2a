/* tests/unit/base/test_pool.c - small blocks are used again by the thread that freed them, and are gone when it ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/fault.h"
#include "base/util.h"
#include "harness/check_main.h"

static const size_t SIZES[] = { 0, 1, 64, 65, 300, POOL_MAX_BYTES, POOL_MAX_BYTES + 1, 1 << 20 };

START_TEST(blocks_of_every_size_are_aligned_apart_and_zeroed_when_asked)
{
    for (int round = 0; round < 3; round++) {
        unsigned char *blocks[ARRAY_SIZE(SIZES)];
        for (size_t i = 0; i < ARRAY_SIZE(SIZES); i++) {
            blocks[i] = pool_zalloc(SIZES[i]);
            ck_assert_ptr_nonnull(blocks[i]);
            ck_assert_uint_eq((uintptr_t)blocks[i] % 64, 0);
            size_t n_other = 0;
            for (size_t k = 0; k < SIZES[i]; k++) {
                n_other += blocks[i][k] != 0;
            }
            ck_assert_uint_eq(n_other, 0);
            memset(blocks[i], 0xee, SIZES[i]);
        }
        for (size_t i = 0; i < ARRAY_SIZE(SIZES); i++) {
            pool_free(blocks[i], SIZES[i]);
        }
    }
    pool_free(NULL, 64);
}
END_TEST

static void *free_elsewhere(void *arg)
{
    void **blocks = arg;
    for (int i = 0; i < 1000; i++) {
        pool_free(blocks[i], 100);
        blocks[i] = pool_alloc(100);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    return NULL;
}

START_TEST(a_block_may_be_freed_by_another_thread_and_outlives_the_thread_that_made_it)
{
    static void *blocks[1000];
    pthread_t thread;
    for (int i = 0; i < 1000; i++) {
        blocks[i] = pool_alloc(100);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, free_elsewhere, blocks), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        memset(blocks[i], 1, 100);
        pool_free(blocks[i], 100);
    }
}
END_TEST

START_TEST(an_armed_fault_hits_a_block_that_was_kept_too)
{
    pool_free(pool_alloc(64), 64);
    fault_arm(FAULT_ALLOC, 1, 0);
    void *p = pool_alloc(64), *q = pool_alloc(64);
    fault_disarm(FAULT_ALLOC);
    ck_assert_ptr_null(p);
    ck_assert_ptr_nonnull(q);
    pool_free(q, 64);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("pool");
    TCase *t = tcase_create("pool");
    tcase_add_test(t, blocks_of_every_size_are_aligned_apart_and_zeroed_when_asked);
    tcase_add_test(t, a_block_may_be_freed_by_another_thread_and_outlives_the_thread_that_made_it);
    tcase_add_test(t, an_armed_fault_hits_a_block_that_was_kept_too);
    suite_add_tcase(s, t);
    return s;
}
