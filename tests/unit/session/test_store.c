/* tests/unit/session/test_store.c - the public store over a world of threads; ids as in the list of cases.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/store.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "harness/check_main.h"
#include "ranks.h"

static struct local_world *world;
static struct mesh_session *session;

static void open_world_of_one(void)
{
    world = local_world_new(1);
    session = session_new(LONG_MS);
    session->control = control_local_new(session, world, 0);
    session_set_current(session);
    ck_assert_int_eq(session_join(session, &(struct join_request){ .rank = -1, .timeout_ms = LONG_MS }), 0);
}

static void close_world(void)
{
    session_free(session);
    local_world_free(world);
}

static void set(const char *key, const char *value)
{
    ck_assert_int_eq(mesh_store_set(key, value, strlen(value)), 0);
}

static void assert_value(const char *key, const char *want)
{
    char value[64];
    size_t len;
    ck_assert_int_eq(mesh_store_get(key, value, sizeof value, &len, MESH_NO_WAIT), 0);
    ck_assert_uint_eq(len, strlen(want));
    ck_assert_mem_eq(value, want, len);
}

static void gets_what_another_sets(struct rank *me)
{
    char value[8];
    size_t len;
    if (me->rank == 0) {
        sleep_ms(20);
        set("x", "1");
        return;
    }
    ck_assert_int_eq(mesh_store_get("x", value, sizeof value, &len, 0), 0);
    ck_assert_uint_eq(len, 1);
    ck_assert_int_eq(value[0], '1');
}

START_TEST(kget_a_get_waits_until_another_rank_sets_the_key)
{
    run_ranks(3, gets_what_another_sets);
}
END_TEST

START_TEST(kto_a_get_of_a_missing_key_times_out_naming_key_and_limit)
{
    char value[8];
    int64_t begin_ms = clock_now_ms();
    ck_assert_int_eq(mesh_store_get("x/missing", value, sizeof value, NULL, 30), MESH_ETIMEDOUT);
    ck_assert_int_ge(clock_now_ms() - begin_ms, 30);
    assert_sentence_has("\"x/missing\" did not appear within 30 ms");
    ck_assert_str_eq(mesh_last_error()->where, "mesh_store_get");
    ck_assert_int_eq(mesh_store_get("x/missing", value, sizeof value, NULL, MESH_NO_WAIT), MESH_ENOTFOUND);
    set("x", "usable");
}
END_TEST

static void waits_for_two(struct rank *me)
{
    if (me->rank == 0) {
        set("1", "");
        sleep_ms(20);
        set("2", "");
        return;
    }
    ck_assert_int_eq(mesh_store_wait(MESH_NAMES("1", "2"), 0), 0);
    ck_assert_int_eq(mesh_store_wait(MESH_NAMES("1", "2"), MESH_NO_WAIT), 0);
}

START_TEST(kwt_a_wait_returns_when_the_last_key_appears)
{
    run_ranks(2, waits_for_two);
}
END_TEST

START_TEST(kwt_a_wait_for_no_keys_returns_at_once)
{
    const char *const none[] = { NULL };
    ck_assert_int_eq(mesh_store_wait(none, 0), 0);
    ck_assert_int_eq(mesh_store_wait(NULL, 0), MESH_EINVAL);
}
END_TEST

START_TEST(a_wait_that_times_out_names_what_is_absent)
{
    set("b", "");
    ck_assert_int_eq(mesh_store_wait(MESH_NAMES("b", "a", "c"), 20), MESH_ETIMEDOUT);
    assert_sentence_has("store wait: \"a\" and 1 more did not appear within 20 ms");
    ck_assert_int_eq(mesh_store_wait(MESH_NAMES("b", "c"), MESH_NO_WAIT), MESH_ENOTFOUND);
    assert_sentence_has("\"c\"");
    ck_assert_int_eq(mesh_store_wait(MESH_NAMES("b", ""), 0), MESH_EINVAL);
    const char *many[1026] = { NULL };
    for (int i = 0; i < 1025; i++) {
        many[i] = "b";
    }
    ck_assert_int_eq(mesh_store_wait(many, 0), MESH_ETOOLARGE);
}
END_TEST

START_TEST(kadd_counts_from_nothing_and_is_kept_as_text)
{
    int64_t sum = 99;
    ck_assert_int_eq(mesh_store_add("c", 5, &sum), 0);
    ck_assert_int_eq(sum, 5);
    assert_value("c", "5");
    ck_assert_int_eq(mesh_store_add("c", -7, &sum), 0);
    ck_assert_int_eq(sum, -2);
    ck_assert_int_eq(mesh_store_add("c", 1, NULL), 0);
    assert_value("c", "-1");
}
END_TEST

START_TEST(kaddx_what_is_not_a_number_is_refused_and_unchanged)
{
    static const char *const bad[] = { "abc", "", "12abc", " 1", "1 ", "+1", "-", "9223372036854775808", "1\n" };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int64_t sum = 99;
        set("k", bad[i]);
        ck_assert_int_eq(mesh_store_add("k", 1, &sum), MESH_EINVAL);
        ck_assert_int_eq(sum, 99);
        assert_value("k", bad[i]);
    }
    assert_sentence_has("is not a 64-bit decimal number");
}
END_TEST

START_TEST(kaddo_a_sum_that_overflows_is_refused_and_unchanged)
{
    int64_t sum = 0;
    ck_assert_int_eq(mesh_store_add("k", INT64_MAX, &sum), 0);
    ck_assert_int_eq(mesh_store_add("k", 1, &sum), MESH_ERANGE);
    assert_value("k", "9223372036854775807");
    set("k", "-9223372036854775808");
    ck_assert_int_eq(mesh_store_add("k", -1, &sum), MESH_ERANGE);
    ck_assert_int_eq(mesh_store_add("k", 1, &sum), 0);
    ck_assert_int_eq(sum, INT64_MIN + 1);
}
END_TEST

START_TEST(kcas_swaps_only_what_is_expected)
{
    char now[8];
    size_t len = 0;
    ck_assert_int_eq(mesh_store_compare_set("k", "a", 1, "b", 1, now, sizeof now, &len), MESH_ENOTFOUND);
    ck_assert_int_eq(mesh_store_compare_set("k", NULL, 0, "a", 1, now, sizeof now, &len), 0);
    assert_value("k", "a");
    ck_assert_int_eq(mesh_store_compare_set("k", NULL, 0, "z", 1, now, sizeof now, &len), MESH_EEXIST);
    ck_assert_int_eq(mesh_store_compare_set("k", "b", 1, "z", 1, now, sizeof now, &len), MESH_EEXIST);
    ck_assert_uint_eq(len, 1);
    ck_assert_int_eq(now[0], 'a');
    ck_assert_int_eq(mesh_store_compare_set("k", "b", 1, "z", 1, NULL, 0, &len), MESH_ERANGE);
    ck_assert_uint_eq(len, 1);
    ck_assert_int_eq(mesh_store_compare_set("k", "a", 1, "bb", 2, NULL, 0, NULL), 0);
    assert_value("k", "bb");
    ck_assert_int_eq(mesh_store_compare_set("k", "b", 1, "z", 1, now, sizeof now, &len), MESH_EEXIST);
    ck_assert_int_eq(mesh_store_compare_set("k", "bb", 2, "", 0, now, sizeof now, &len), 0);
    ck_assert_int_eq(mesh_store_compare_set("k", "", 0, "c", 1, now, sizeof now, &len), 0); /* empty is a value */
    assert_value("k", "c");
}
END_TEST

/* Increments by hand, with retries; every failed try means that another rank got on. */
static void increment(void)
{
    char now[32] = "", next[32];
    size_t len = 0;
    ck_assert_int_eq(mesh_store_get("cas", now, sizeof now - 1, &len, 0), 0);
    for (int tries = 0; tries < 100000; tries++) {
        now[len] = 0;
        int n = snprintf(next, sizeof next, "%d", atoi(now) + 1);
        int r = mesh_store_compare_set("cas", now, len, next, (size_t)n, now, sizeof now - 1, &len);
        if (r == 0) {
            return;
        }
        ck_assert_int_eq(r, MESH_EEXIST);
    }
    ck_abort_msg("no try succeeded");
}

static void counts_two_ways(struct rank *me)
{
    struct control *c = control_of(me);
    if (me->rank == 0) {
        set("cas", "0");
    }
    for (int i = 0; i < 200; i++) {
        increment();
        ck_assert_int_eq(mesh_store_add("add", 1, NULL), 0);
    }
    ck_assert_int_eq(c->ops->barrier(c, "end", NULL, 0, LONG_MS), 0);
    assert_value("cas", "1600");
    assert_value("add", "1600");
}

START_TEST(kcas5_increments_from_eight_ranks_are_all_counted)
{
    run_ranks(8, counts_two_ways);
}
END_TEST

START_TEST(kdel_deletes_once)
{
    set("k", "v");
    ck_assert_int_eq(mesh_store_delete("k"), 0);
    ck_assert_int_eq(mesh_store_delete("k"), MESH_ENOTFOUND);
    assert_sentence_has("there is no key \"k\"");
    ck_assert_int_eq(mesh_store_get("k", NULL, 0, NULL, 10), MESH_ETIMEDOUT);
}
END_TEST

static void sees_a_deleted_key_come_back(struct rank *me)
{
    if (me->rank == 0) {
        sleep_ms(10);
        set("a", "");
        ck_assert_int_eq(mesh_store_delete("a"), 0);
        set("b", "");
        sleep_ms(20);
        set("told", "");
        set("a", "");
        return;
    }
    ck_assert_int_eq(mesh_store_wait(MESH_NAMES("a", "b"), 0), 0);
    ck_assert_int_eq(mesh_store_get("told", NULL, 0, NULL, MESH_NO_WAIT), 0);
}

START_TEST(kdw_all_keys_are_there_when_a_wait_returns)
{
    run_ranks(2, sees_a_deleted_key_come_back);
}
END_TEST

START_TEST(kbin_values_come_back_byte_for_byte)
{
    size_t len = 99;
    char bytes[8];
    ck_assert_int_eq(mesh_store_set("empty", NULL, 0), 0);
    ck_assert_int_eq(mesh_store_get("empty", NULL, 0, &len, MESH_NO_WAIT), 0);
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(mesh_store_set("binary", "a\0b\xff", 4), 0);
    ck_assert_int_eq(mesh_store_get("binary", bytes, sizeof bytes, &len, MESH_NO_WAIT), 0);
    ck_assert_uint_eq(len, 4);
    ck_assert_mem_eq(bytes, "a\0b\xff", 4);
    size_t big = (size_t)1 << 20;
    uint8_t *zeros = mem_zalloc(big + 1), *back = mem_alloc(big);
    ck_assert_int_eq(mesh_store_set("big", zeros, big), 0);
    ck_assert_int_eq(mesh_store_get("big", back, big, &len, MESH_NO_WAIT), 0);
    ck_assert_uint_eq(len, big);
    ck_assert_int_eq(memcmp(zeros, back, big), 0);
    ck_assert_int_eq(mesh_store_set("big", zeros, big + 1), MESH_ETOOLARGE);
    assert_sentence_has("has 1048577 bytes; at most 1048576 are allowed");
    ck_assert_int_eq(mesh_store_get("big", NULL, 0, &len, MESH_NO_WAIT), MESH_ERANGE);
    ck_assert_uint_eq(len, big);
    mem_free(zeros);
    mem_free(back);
}
END_TEST

START_TEST(kkey_any_string_of_1_to_1024_bytes_is_a_key)
{
    static const char *const good[] = { "a/b", "/", " ", "\xc3\xa4\xe6\xbc\xa2", "\x01" };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        set(good[i], good[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_value(good[i], good[i]);
    }
    char key[1026];
    memset(key, 'k', sizeof key);
    key[1025] = 0;
    ck_assert_int_eq(mesh_store_set(key, "v", 1), MESH_EINVAL);
    assert_sentence_has("has 1025 bytes; at most 1024 are allowed");
    key[1024] = 0;
    set(key, "longest");
    assert_value(key, "longest");
    ck_assert_int_eq(mesh_store_set("", "v", 1), MESH_EINVAL);
    ck_assert_int_eq(mesh_store_get(NULL, NULL, 0, NULL, 0), MESH_EINVAL);
    ck_assert_int_eq(mesh_store_add("", 1, NULL), MESH_EINVAL);
    ck_assert_int_eq(mesh_store_delete(""), MESH_EINVAL);
    ck_assert_int_eq(mesh_store_compare_set("", NULL, 0, NULL, 0, NULL, 0, NULL), MESH_EINVAL);
}
END_TEST

START_TEST(a_buffer_too_small_is_untouched_and_told_the_length)
{
    char value[3] = "xx";
    size_t len = 0;
    set("k", "three");
    ck_assert_int_eq(mesh_store_get("k", value, 2, &len, 0), MESH_ERANGE);
    ck_assert_uint_eq(len, 5);
    ck_assert_str_eq(value, "xx");
    assert_sentence_has("has 5 bytes, the buffer 2");
}
END_TEST

START_TEST(wrong_arguments_are_named)
{
    ck_assert_int_eq(mesh_store_set("k", NULL, 3), MESH_EINVAL);
    assert_sentence_has("the value is NULL but has 3 bytes");
    ck_assert_int_eq(mesh_store_get("k", NULL, 3, NULL, 0), MESH_EINVAL);
    ck_assert_int_eq(mesh_store_get("k", NULL, 0, NULL, -2), MESH_EINVAL);
    ck_assert_int_eq(mesh_store_wait(MESH_NAMES("k"), -7), MESH_EINVAL);
    ck_assert_int_eq(mesh_store_compare_set("k", NULL, 0, NULL, 1, NULL, 0, NULL), MESH_EINVAL);
    ck_assert_int_eq(mesh_store_compare_set("k", NULL, 1, NULL, 0, NULL, 0, NULL), MESH_EINVAL);
}
END_TEST

START_TEST(without_a_session_every_call_says_what_to_do)
{
    size_t len;
    ck_assert_int_eq(mesh_store_set("k", "v", 1), MESH_ESTATE);
    ck_assert_int_eq(mesh_store_get("k", NULL, 0, &len, 0), MESH_ESTATE);
    ck_assert_int_eq(mesh_store_add("k", 1, NULL), MESH_ESTATE);
    ck_assert_int_eq(mesh_store_compare_set("k", NULL, 0, NULL, 0, NULL, 0, NULL), MESH_ESTATE);
    ck_assert_int_eq(mesh_store_wait(MESH_NAMES("k"), 0), MESH_ESTATE);
    ck_assert_int_eq(mesh_store_delete("k"), MESH_ESTATE);
    assert_sentence_has("mesh_init()");
}
END_TEST

/* 0, or the status of the first call that failed. */
static int use_everything(void)
{
    char value[16];
    struct local_world *w = local_world_new(1);
    struct mesh_session *s = session_new(LONG_MS);
    struct control *c = s != NULL && w != NULL ? control_local_new(s, w, 0) : NULL;
    int r = c != NULL ? 0 : MESH_ENOMEM;
    if (c != NULL) {
        const char *const addresses[] = { "tcp:127.0.0.1:1", NULL };
        s->control = c;
        session_set_current(s);
        r = session_join(s, &(struct join_request){ .rank = -1, .addresses = addresses, .timeout_ms = LONG_MS });
    }
    r = r < 0 ? r : mesh_store_set("k", "1", 1);
    r = r < 0 ? r : mesh_store_get("k", value, sizeof value, NULL, 0);
    r = r < 0 ? r : mesh_store_add("k", 1, NULL);
    r = r < 0 ? r : mesh_store_compare_set("k", "2", 1, "3", 1, value, sizeof value, NULL);
    r = r < 0 ? r : mesh_store_wait(MESH_NAMES("k"), 0);
    r = r < 0 ? r : c->ops->agree(c, "mesh/0", NULL, 0, "x=1", LONG_MS);
    r = r < 0 ? r : c->ops->barrier(c, "b", NULL, 0, LONG_MS);
    r = r < 0 ? r : mesh_store_delete("k");
    session_free(s);
    local_world_free(w);
    return r;
}

START_TEST(every_allocation_may_fail)
{
    for (uint64_t nth = 1; nth < 1000; nth++) {
        fault_arm(FAULT_ALLOC, nth, 0);
        int r = use_everything();
        uint64_t fired = fault_fired(FAULT_ALLOC);
        fault_disarm(FAULT_ALLOC);
        if (fired == 0) {
            ck_assert_int_eq(r, 0);
            ck_assert_uint_gt(nth, 10);
            return;
        }
        ck_assert_int_eq(r, MESH_ENOMEM);
        ck_assert_int_eq(mesh_last_error()->status, MESH_ENOMEM);
    }
    ck_abort_msg("the scenario never ended without a failure");
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("store");
    TCase *tcase = tcase_create("one rank");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, open_world_of_one, close_world);
    tcase_add_test(tcase, kto_a_get_of_a_missing_key_times_out_naming_key_and_limit);
    tcase_add_test(tcase, kwt_a_wait_for_no_keys_returns_at_once);
    tcase_add_test(tcase, a_wait_that_times_out_names_what_is_absent);
    tcase_add_test(tcase, kadd_counts_from_nothing_and_is_kept_as_text);
    tcase_add_test(tcase, kaddx_what_is_not_a_number_is_refused_and_unchanged);
    tcase_add_test(tcase, kaddo_a_sum_that_overflows_is_refused_and_unchanged);
    tcase_add_test(tcase, kcas_swaps_only_what_is_expected);
    tcase_add_test(tcase, kdel_deletes_once);
    tcase_add_test(tcase, kbin_values_come_back_byte_for_byte);
    tcase_add_test(tcase, kkey_any_string_of_1_to_1024_bytes_is_a_key);
    tcase_add_test(tcase, a_buffer_too_small_is_untouched_and_told_the_length);
    tcase_add_test(tcase, wrong_arguments_are_named);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("many ranks");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, kget_a_get_waits_until_another_rank_sets_the_key);
    tcase_add_test(tcase, kwt_a_wait_returns_when_the_last_key_appears);
    tcase_add_test(tcase, kcas5_increments_from_eight_ranks_are_all_counted);
    tcase_add_test(tcase, kdw_all_keys_are_there_when_a_wait_returns);
    tcase_add_test(tcase, without_a_session_every_call_says_what_to_do);
    tcase_add_test(tcase, every_allocation_may_fail);
    suite_add_tcase(suite, tcase);
    return suite;
}
