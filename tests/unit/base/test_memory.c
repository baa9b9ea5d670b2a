/* tests/unit/base/test_memory.c - allocation and its switch, growing buffers and arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/vec.h"

static void tear_down(void)
{
    fault_disarm(FAULT_ALLOC);
}

START_TEST(memory_is_aligned_to_a_cache_line)
{
    const size_t sizes[] = { 0, 1, 63, 64, 65, 4096, 100001 };
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        char *p = mem_zalloc(sizes[i]);
        ck_assert_uint_eq((uintptr_t)p % 64, 0);
        for (size_t k = 0; k < sizes[i]; k++) {
            ck_assert_int_eq(p[k], 0);
        }
        p = mem_realloc(p, sizes[i], sizes[i] * 2 + 1);
        ck_assert_uint_eq((uintptr_t)p % 64, 0);
        ck_assert_ptr_null(mem_free(p));
    }
    ck_assert_ptr_null(mem_free(NULL));
}
END_TEST

START_TEST(realloc_keeps_what_fits)
{
    char *p = mem_strdup("twelve bytes");
    p = mem_realloc(p, 13, 6);
    ck_assert_mem_eq(p, "twelve", 6);
    p = mem_realloc(p, 6, 1000);
    ck_assert_mem_eq(p, "twelve", 6);
    mem_free(p);
    p = mem_realloc(NULL, 0, 10);
    ck_assert_ptr_nonnull(p);
    mem_free(p);
}
END_TEST

START_TEST(the_peak_is_the_most_that_was_in_use_at_once)
{
    mem_peak_reset();
    size_t before = mem_in_use();
    ck_assert_uint_eq(mem_peak(), before);
    void *a = mem_alloc(1 << 20);
    mem_free(a);
    void *b = mem_alloc(1 << 19), *c = mem_alloc(1 << 19);
    size_t both = mem_in_use() - before;
    ck_assert_uint_ge(both, 1 << 20);
    ck_assert_uint_le(both, (1 << 20) + 8192);
    ck_assert_uint_ge(mem_peak() - before, 1 << 20);
    ck_assert_uint_le(mem_peak() - before, (1 << 20) + 8192);
    c = mem_realloc(c, 1 << 19, 64);
    mem_peak_reset();
    ck_assert_uint_lt(mem_peak() - before, 1 << 20);
    mem_free(b);
    mem_free(c);
    ck_assert_uint_eq(mem_in_use(), before);
}
END_TEST

START_TEST(absurd_sizes_are_refused)
{
    ck_assert_ptr_null(mem_alloc(SIZE_MAX));
    ck_assert_ptr_null(mem_alloc(SIZE_MAX - 63));
    ck_assert_ptr_null(mem_alloc((size_t)PTRDIFF_MAX));
    ck_assert_ptr_null(mem_alloc_array(SIZE_MAX / 4, 8));
    ck_assert_ptr_null(mem_alloc_array(SIZE_MAX, SIZE_MAX));
    void *none = mem_alloc_array(0, 8);
    ck_assert_ptr_nonnull(none);
    mem_free(none);
}
END_TEST

START_TEST(the_nth_allocation_fails_and_as_many_after_it_as_told)
{
    fault_arm(FAULT_ALLOC, 3, 1);
    for (int i = 1; i <= 6; i++) {
        void *p = mem_alloc(8);
        ck_assert_int_eq(p == NULL, i == 3 || i == 4);
        mem_free(p);
    }
    ck_assert_uint_eq(fault_fired(FAULT_ALLOC), 2);
    fault_arm(FAULT_ALLOC, 1, UINT64_MAX - 1);
    for (int i = 0; i < 100; i++) {
        ck_assert_ptr_null(mem_alloc(8));
    }
    ck_assert(!fault_hits(FAULT_READ)); /* another point */
    fault_disarm(FAULT_ALLOC);
    void *p = mem_alloc(8);
    ck_assert_ptr_nonnull(p);
    mem_free(p);
    ck_assert_uint_eq(fault_fired(FAULT_ALLOC), 100);
}
END_TEST

static void *allocate_a_thousand(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++) {
        mem_free(mem_alloc(8));
    }
    return NULL;
}

START_TEST(threads_share_one_countdown)
{
    pthread_t threads[4];
    fault_arm(FAULT_ALLOC, 2000, 9);
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, allocate_a_thousand, NULL);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_uint_eq(fault_fired(FAULT_ALLOC), 10);
}
END_TEST

START_TEST(a_buffer_collects_and_gives_up_its_front)
{
    struct buf b = BUF_INIT;
    ck_assert_str_eq(buf_text(&b), "");
    for (int i = 0; i < 1000; i++) {
        buf_printf(&b, "%d,", i);
    }
    ck_assert_uint_eq(b.len, 10 * 2 + 90 * 3 + 900 * 4);
    ck_assert_uint_eq(strlen(buf_text(&b)), b.len);
    buf_consume(&b, b.len - 4);
    ck_assert_str_eq(buf_text(&b), "999,");
    buf_append(&b, "\0z", 2);
    ck_assert_uint_eq(b.len, 6);
    memset(buf_extend(&b, 3), '!', 3);
    ck_assert_mem_eq(b.data, "999,\0z!!!", 10);
    buf_append(&b, NULL, 0);
    buf_clear(&b);
    ck_assert_str_eq(buf_text(&b), "");
    ck_assert_int_eq(buf_status(&b), 0);
    buf_fini(&b);
    ck_assert_ptr_null(b.data);
    buf_fini(&b);
    buf_fini(NULL);
}
END_TEST

START_TEST(a_buffer_that_failed_stays_failed_until_cleared)
{
    struct buf b = BUF_INIT;
    buf_append(&b, "kept", 4);
    fault_arm(FAULT_ALLOC, 1, 0);
    ck_assert_ptr_null(buf_extend(&b, 1000));
    buf_append(&b, "x", 1); /* there would be room */
    buf_printf(&b, "y");
    ck_assert_str_eq(buf_text(&b), "kept");
    ck_assert_int_eq(buf_status(&b), MESH_ENOMEM);
    buf_clear(&b);
    ck_assert_int_eq(buf_status(&b), 0);
    buf_append(&b, "z", 1);
    ck_assert_str_eq(buf_text(&b), "z");
    ck_assert_ptr_null(buf_extend(&b, SIZE_MAX));
    ck_assert_int_eq(buf_status(&b), MESH_ENOMEM);
    buf_fini(&b);
}
END_TEST

START_TEST(an_array_grows_and_keeps_its_items)
{
    VEC(int) v = { 0 };
    for (int i = 0; i < 10000; i++) {
        int *p = VEC_PUSH(&v);
        ck_assert_ptr_nonnull(p);
        *p = i;
    }
    for (int i = 0; i < 10000; i++) {
        ck_assert_int_eq(v.at[i], i);
    }
    VEC_REMOVE(&v, 5);
    ck_assert_int_eq(v.at[5], 9999);
    ck_assert_uint_eq(v.n, 9999);
    ck_assert(!VEC_RESERVE(&v, SIZE_MAX / 4));
    fault_arm(FAULT_ALLOC, 1, 0);
    ck_assert(!VEC_RESERVE(&v, v.cap + 1));
    ck_assert_int_eq(v.at[9998], 9998);
    VEC_FINI(&v);
    ck_assert_ptr_null(v.at);
}
END_TEST

START_TEST(a_false_claim_ends_the_program)
{
    CHECK(1 + 1 == 2);
    CHECK(1 + 1 == 3);
}
END_TEST

START_TEST(consuming_more_than_there_is_is_a_bug)
{
    struct buf b = BUF_INIT;
    buf_consume(&b, 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("memory");
    TCase *t = tcase_create("memory");
    tcase_add_checked_fixture(t, NULL, tear_down);
    tcase_add_test(t, memory_is_aligned_to_a_cache_line);
    tcase_add_test(t, realloc_keeps_what_fits);
    tcase_add_test(t, the_peak_is_the_most_that_was_in_use_at_once);
    tcase_add_test(t, absurd_sizes_are_refused);
    tcase_add_test(t, the_nth_allocation_fails_and_as_many_after_it_as_told);
    tcase_add_test(t, threads_share_one_countdown);
    tcase_add_test(t, a_buffer_collects_and_gives_up_its_front);
    tcase_add_test(t, a_buffer_that_failed_stays_failed_until_cleared);
    tcase_add_test(t, an_array_grows_and_keeps_its_items);
    tcase_add_test_raise_signal(t, a_false_claim_ends_the_program, SIGABRT);
    tcase_add_test_raise_signal(t, consuming_more_than_there_is_is_a_bug, SIGABRT);
    suite_add_tcase(s, t);
    return s;
}
