/* tests/unit/daemon/test_store.c - the key-value store of a job.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "daemon/bounds.h"
#include "harness/check_main.h"
#include "seen.h"

static struct store store;
static struct actions out;

static void set_up(void)
{
    store_init(&store);
    memset(&out, 0, sizeof out);
}

static void tear_down(void)
{
    store_fini(&store);
    actions_fini(&out);
}

static struct ticket client(uint64_t id)
{
    return (struct ticket){ .client = id, .request = 1 };
}

static int set(const char *key, const char *value)
{
    actions_clear(&out);
    return store_set(&store, client(99), text(key), text(value), &out);
}

static int get_now(struct bytes key)
{
    actions_clear(&out);
    return store_get(&store, client(1), key, 0, -1, &out);
}

static void assert_value(const char *key, const char *value)
{
    ck_assert_int_eq(get_now(text(key)), 0);
    const struct action *a = seen_answer(&out, 1);
    ck_assert_uint_eq(a->value.len, strlen(value));
    ck_assert_mem_eq(a->value.data, value, strlen(value));
}

static int64_t add(const char *key, int64_t delta)
{
    actions_clear(&out);
    ck_assert_int_eq(store_add(&store, client(1), text(key), delta, &out), 0);
    return seen_answer(&out, 1)->number;
}

START_TEST(values_come_back_byte_for_byte)
{
    static uint8_t zeros[MAX_VALUE_BYTES];
    const struct bytes values[] = { { NULL, 0 }, { (const uint8_t *)"a\0b\xff", 4 }, { zeros, sizeof zeros } };
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        actions_clear(&out);
        ck_assert_int_eq(store_set(&store, client(2), text("k"), values[i], &out), 0);
        ck_assert_int_eq(get_now(text("k")), 0);
        struct bytes got = seen_answer(&out, 1)->value;
        ck_assert_uint_eq(got.len, values[i].len);
        ck_assert(got.len == 0 || memcmp(got.data, values[i].data, got.len) == 0);
    }
    ck_assert_int_eq(get_now(text("other")), MESH_ENOTFOUND);
}
END_TEST

START_TEST(keys_of_any_printable_kind_work_and_bad_ones_are_refused)
{
    const char *good[] = { "a/b", "/", " ", "\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87", "\xe9\x8d\xb5" };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        ck_assert_int_eq(set(good[i], good[i]), 0);
        assert_value(good[i], good[i]);
    }
    static uint8_t long_key[MAX_KEY_BYTES + 1];
    memset(long_key, 'k', sizeof long_key);
    struct bytes key = { long_key, MAX_KEY_BYTES };
    ck_assert_int_eq(store_set(&store, client(1), key, text("v"), &out), 0);
    key.len++;
    ck_assert_int_eq(store_set(&store, client(1), key, text("v"), &out), MESH_ETOOLARGE);
    ck_assert_int_eq(set("", "v"), MESH_EINVAL);
    ck_assert_int_eq(store_set(&store, client(1), (struct bytes){ (const uint8_t *)"a\0b", 3 }, text("v"), &out),
                     MESH_EINVAL);
}
END_TEST

START_TEST(a_value_over_the_limit_is_refused_without_effect)
{
    uint8_t *big = calloc(1, MAX_VALUE_BYTES + 1);
    ck_assert_int_eq(set("k", "old"), 0);
    ck_assert_int_eq(store_set(&store, client(1), text("k"), (struct bytes){ big, MAX_VALUE_BYTES + 1 }, &out),
                     MESH_ETOOLARGE);
    assert_says(mesh_last_error()->message, "1048577");
    assert_value("k", "old");
    free(big);
}
END_TEST

START_TEST(quotas_of_keys_and_bytes_hold)
{
    store.max_keys = 2;
    ck_assert_int_eq(set("a", "1"), 0);
    ck_assert_int_eq(set("b", "1"), 0);
    ck_assert_int_eq(set("c", "1"), MESH_ETOOLARGE);
    ck_assert_int_eq(set("b", "2"), 0);
    store.max_bytes = 6;
    ck_assert_int_eq(set("b", "123"), 0); /* a1 b123: 6 bytes */
    ck_assert_int_eq(set("b", "1234"), MESH_ETOOLARGE);
    assert_value("b", "123");
    ck_assert_int_eq(store_delete(&store, client(1), text("a"), &out), 0);
    ck_assert_uint_eq(store.n_bytes, 4);
}
END_TEST

START_TEST(a_waiting_get_is_answered_by_the_set)
{
    ck_assert_int_eq(store_get(&store, client(1), text("x"), 0, 200, &out), 0);
    ck_assert_int_eq(store_get(&store, client(2), text("x"), 0, 200, &out), 0);
    ck_assert_uint_eq(out.list.n, 0);
    ck_assert_int_eq(set("x", "1"), 0);
    ck_assert_uint_eq(out.list.n, 3);
    ck_assert_uint_eq(out.list.at[0].to.client, 1); /* by arrival */
    ck_assert_mem_eq(seen_answer(&out, 1)->value.data, "1", 1);
    ck_assert_mem_eq(seen_answer(&out, 2)->value.data, "1", 1);
    ck_assert_uint_eq(store.n_waiters, 0);
    ck_assert_uint_eq(store.watched.n, 0);
}
END_TEST

START_TEST(a_get_that_times_out_names_key_and_limit)
{
    ck_assert_int_eq(store_get(&store, client(1), text("x\n"), 1000, 1200, &out), 0);
    ck_assert_int_eq(store.next_deadline_ms, 1200);
    store_tick(&store, 1199, &out);
    ck_assert_uint_eq(out.list.n, 0);
    store_tick(&store, 1200, &out);
    const struct action *a = seen_answer(&out, 1);
    ck_assert_int_eq(a->status, MESH_ETIMEDOUT);
    assert_says(a->sentence, "\"x\\x0a\"");
    assert_says(a->sentence, "200 ms");
    ck_assert_int_eq(store.next_deadline_ms, INT64_MAX);
    ck_assert_int_eq(set("x\n", "late"), 0);
    ck_assert_uint_eq(seen_answers(&out, 1), 0);
}
END_TEST

static int wait_for(uint64_t who, const char *const *keys, size_t n, int64_t deadline_ms)
{
    struct bytes key[8];
    for (size_t i = 0; i < n; i++) {
        key[i] = text(keys[i]);
    }
    const struct store_wait w = { .key = key, .n = n, .now_ms = 0, .deadline_ms = deadline_ms };
    return store_wait(&store, client(who), &w, &out);
}

START_TEST(a_wait_returns_when_all_keys_are_there_at_once)
{
    ck_assert_int_eq(wait_for(1, (const char *[]){ "a", "b" }, 2, 500), 0);
    ck_assert_int_eq(set("a", "1"), 0);
    ck_assert_uint_eq(seen_answers(&out, 1), 0);
    ck_assert_int_eq(store_delete(&store, client(2), text("a"), &out), 0);
    ck_assert_int_eq(set("b", "1"), 0);
    ck_assert_uint_eq(seen_answers(&out, 1), 0); /* a is gone again */
    ck_assert_int_eq(set("a", "2"), 0);
    ck_assert_int_eq(seen_answer(&out, 1)->status, 0);
}
END_TEST

START_TEST(a_wait_for_present_keys_or_none_returns_at_once)
{
    ck_assert_int_eq(set("1", ""), 0);
    ck_assert_int_eq(wait_for(1, (const char *[]){ "1" }, 1, 500), 0);
    ck_assert_int_eq(wait_for(2, NULL, 0, 500), 0);
    ck_assert_int_eq(seen_answer(&out, 1)->status, 0);
    ck_assert_int_eq(seen_answer(&out, 2)->status, 0);
    ck_assert_int_eq(wait_for(3, (const char *[]){ "1", "2" }, 2, -1), MESH_ENOTFOUND);
}
END_TEST

START_TEST(a_wait_that_times_out_lists_only_what_is_missing)
{
    ck_assert_int_eq(set("b", ""), 0);
    ck_assert_int_eq(wait_for(1, (const char *[]){ "a", "b", "c" }, 3, 100), 0);
    actions_clear(&out);
    store_tick(&store, 100, &out);
    const struct action *a = seen_answer(&out, 1);
    ck_assert_int_eq(a->status, MESH_ETIMEDOUT);
    ck_assert_uint_eq(a->n_missing, 2);
    ck_assert_mem_eq(a->missing[0].data, "a", 1);
    ck_assert_mem_eq(a->missing[1].data, "c", 1);
    assert_says(a->sentence, "\"a\" and 1 more");
}
END_TEST

START_TEST(a_key_named_twice_in_one_wait_is_no_trouble)
{
    ck_assert_int_eq(wait_for(1, (const char *[]){ "a", "a", "b" }, 3, 100), 0);
    ck_assert_int_eq(set("a", ""), 0);
    ck_assert_int_eq(set("b", ""), 0);
    ck_assert_int_eq(seen_answer(&out, 1)->status, 0);
    ck_assert_uint_eq(store.watched.n, 0);
}
END_TEST

START_TEST(add_counts_in_decimal_text)
{
    ck_assert_int_eq(add("c", 5), 5);
    assert_value("c", "5");
    ck_assert_int_eq(add("c", -7), -2);
    assert_value("c", "-2");
}
END_TEST

START_TEST(add_refuses_what_is_no_number)
{
    const char *bad[] = { "abc", "", "12abc", " 1", "1 ", "+1", "-", "0x10", "99999999999999999999", "1.0" };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        ck_assert_int_eq(set("k", bad[i]), 0);
        ck_assert_int_eq(store_add(&store, client(1), text("k"), 1, &out), MESH_EINVAL);
        assert_value("k", bad[i]);
    }
}
END_TEST

START_TEST(add_refuses_to_overflow)
{
    ck_assert_int_eq(add("k", INT64_MAX), INT64_MAX);
    ck_assert_int_eq(store_add(&store, client(1), text("k"), 1, &out), MESH_ERANGE);
    assert_value("k", "9223372036854775807");
    ck_assert_int_eq(add("m", INT64_MIN), INT64_MIN);
    ck_assert_int_eq(store_add(&store, client(1), text("m"), -1, &out), MESH_ERANGE);
    ck_assert_int_eq(add("m", INT64_MAX), -1);
}
END_TEST

START_TEST(compare_set_swaps_only_what_was_expected)
{
    struct store_compare_set c = { .key = text("k"), .desired = text("new"), .expected = text("old") };
    ck_assert_int_eq(store_compare_set(&store, client(1), &c, &out), MESH_ENOTFOUND);
    c.expect_absent = true;
    ck_assert_int_eq(store_compare_set(&store, client(1), &c, &out), 0);
    uint64_t version = seen_answer(&out, 1)->version;
    actions_clear(&out);
    ck_assert_int_eq(store_compare_set(&store, client(1), &c, &out), 0);
    ck_assert_int_eq(seen_answer(&out, 1)->status, MESH_EEXIST);
    c.expect_absent = false;
    actions_clear(&out);
    ck_assert_int_eq(store_compare_set(&store, client(1), &c, &out), 0);
    const struct action *a = seen_answer(&out, 1);
    ck_assert_int_eq(a->status, MESH_EEXIST);
    ck_assert_mem_eq(a->value.data, "new", 3); /* what stands */
    c.expected = text("new");
    actions_clear(&out);
    ck_assert_int_eq(store_compare_set(&store, client(1), &c, &out), 0);
    ck_assert_int_eq(seen_answer(&out, 1)->status, 0);
    ck_assert_uint_gt(seen_answer(&out, 1)->version, version);
}
END_TEST

START_TEST(eight_clients_that_count_by_compare_set_lose_nothing)
{
    ck_assert_int_eq(set("n", "0"), 0);
    char seen[8][16];
    int left[8];
    for (int i = 0; i < 8; i++) {
        snprintf(seen[i], sizeof seen[i], "0");
        left[i] = 1000;
    }
    int n_left = 8;
    for (uint64_t step = 0; n_left > 0; step++) {
        int i = (int)rng_below((struct rng_key){ .seed = 3 }, step, 8);
        if (left[i] == 0) {
            continue;
        }
        char next[16];
        snprintf(next, sizeof next, "%d", atoi(seen[i]) + 1);
        const struct store_compare_set c = { .key = text("n"), .expected = text(seen[i]), .desired = text(next) };
        actions_clear(&out);
        ck_assert_int_eq(store_compare_set(&store, client(1), &c, &out), 0);
        const struct action *a = seen_answer(&out, 1);
        snprintf(seen[i], sizeof seen[i], "%.*s", (int)a->value.len, (const char *)a->value.data);
        left[i] -= a->status == 0;
        n_left -= a->status == 0 && left[i] == 0;
    }
    assert_value("n", "8000");
}
END_TEST

START_TEST(delete_tells_whether_there_was_something)
{
    ck_assert_int_eq(set("k", "v"), 0);
    ck_assert_int_eq(store_delete(&store, client(1), text("k"), &out), 0);
    ck_assert_int_eq(store_delete(&store, client(1), text("k"), &out), MESH_ENOTFOUND);
    ck_assert_int_eq(get_now(text("k")), MESH_ENOTFOUND);
    ck_assert_uint_eq(store.entries.n, 0);
    ck_assert_uint_eq(store.n_bytes, 0);
}
END_TEST

START_TEST(a_client_that_goes_stops_waiting)
{
    ck_assert_int_eq(wait_for(1, (const char *[]){ "a", "b" }, 2, 500), 0);
    ck_assert_int_eq(store_get(&store, client(2), text("a"), 0, 500, &out), 0);
    store_client_gone(&store, 1);
    ck_assert_uint_eq(store.n_waiters, 1);
    ck_assert_uint_eq(store.watched.n, 1);
    ck_assert_int_eq(set("a", "1"), 0);
    ck_assert_uint_eq(seen_answers(&out, 1), 0);
    ck_assert_uint_eq(seen_answers(&out, 2), 1);
}
END_TEST

START_TEST(stopping_answers_everyone_who_waits)
{
    for (uint64_t i = 1; i <= 300; i++) {
        ck_assert_int_eq(store_get(&store, client(i), text(i % 2 == 0 ? "a" : "b"), 0, 500, &out), 0);
    }
    store_stop(&store, "meshd is stopping", &out);
    for (uint64_t i = 1; i <= 300; i++) {
        ck_assert_int_eq(seen_answer(&out, i)->status, MESH_EABORTED);
    }
    ck_assert_uint_eq(store.n_waiters, 0);
}
END_TEST

START_TEST(forgetting_keeps_those_who_wait)
{
    ck_assert_int_eq(set("a", "1"), 0);
    ck_assert_int_eq(wait_for(1, (const char *[]){ "a", "b" }, 2, 500), 0);
    store_forget(&store);
    ck_assert_int_eq(set("b", "1"), 0);
    ck_assert_uint_eq(seen_answers(&out, 1), 0);
    ck_assert_int_eq(set("a", "1"), 0);
    ck_assert_uint_eq(seen_answers(&out, 1), 1);
}
END_TEST

/* Many waits, sets and deletes in a random order against a plain model: who is answered is exactly who should be. */
START_TEST(random_waits_agree_with_a_plain_model)
{
    enum { N_KEYS = 6, N_STEPS = 1000 };
    bool there[N_KEYS] = { false };
    struct {
        uint64_t id;
        unsigned keys;
    } waiting[N_STEPS];
    size_t n = 0;
    for (uint64_t step = 1; step <= N_STEPS; step++) {
        struct rng_key key = { .seed = (uint64_t)_i + 1 };
        unsigned what = (unsigned)rng_below(key, step * 3, 3);
        unsigned k = (unsigned)rng_below(key, step * 3 + 1, N_KEYS);
        unsigned mask = (unsigned)rng_below(key, step * 3 + 2, (1u << N_KEYS) - 1) + 1;
        char name[2] = { (char)('a' + k), 0 };
        actions_clear(&out);
        if (what == 0) {
            ck_assert_int_eq(store_set(&store, client(1u << 30), text(name), text("v"), &out), 0);
            there[k] = true;
        } else if (what == 1) {
            int r = store_delete(&store, client(1u << 30), text(name), &out);
            ck_assert_int_eq(r, there[k] ? 0 : MESH_ENOTFOUND);
            there[k] = false;
        } else {
            const char *keys[N_KEYS];
            static const char *const names[N_KEYS] = { "a", "b", "c", "d", "e", "f" };
            size_t n_keys = 0;
            for (unsigned i = 0; i < N_KEYS; i++) {
                if ((mask >> i & 1) != 0) {
                    keys[n_keys++] = names[i];
                }
            }
            ck_assert_int_eq(wait_for(step, keys, n_keys, 1000000), 0);
            waiting[n].id = step;
            waiting[n++].keys = mask;
        }
        for (size_t i = n; i-- > 0;) {
            bool all = true;
            for (unsigned b = 0; b < N_KEYS; b++) {
                all = all && ((waiting[i].keys >> b & 1) == 0 || there[b]);
            }
            ck_assert_uint_eq(seen_answers(&out, waiting[i].id), all);
            if (all) {
                waiting[i] = waiting[--n];
            }
        }
        ck_assert_uint_eq(store.n_waiters, n);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("store");
    TCase *tc = tcase_create("store");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, values_come_back_byte_for_byte);
    tcase_add_test(tc, keys_of_any_printable_kind_work_and_bad_ones_are_refused);
    tcase_add_test(tc, a_value_over_the_limit_is_refused_without_effect);
    tcase_add_test(tc, quotas_of_keys_and_bytes_hold);
    tcase_add_test(tc, a_waiting_get_is_answered_by_the_set);
    tcase_add_test(tc, a_get_that_times_out_names_key_and_limit);
    tcase_add_test(tc, a_wait_returns_when_all_keys_are_there_at_once);
    tcase_add_test(tc, a_wait_for_present_keys_or_none_returns_at_once);
    tcase_add_test(tc, a_wait_that_times_out_lists_only_what_is_missing);
    tcase_add_test(tc, a_key_named_twice_in_one_wait_is_no_trouble);
    tcase_add_test(tc, add_counts_in_decimal_text);
    tcase_add_test(tc, add_refuses_what_is_no_number);
    tcase_add_test(tc, add_refuses_to_overflow);
    tcase_add_test(tc, compare_set_swaps_only_what_was_expected);
    tcase_add_test(tc, eight_clients_that_count_by_compare_set_lose_nothing);
    tcase_add_test(tc, delete_tells_whether_there_was_something);
    tcase_add_test(tc, a_client_that_goes_stops_waiting);
    tcase_add_test(tc, stopping_answers_everyone_who_waits);
    tcase_add_test(tc, forgetting_keeps_those_who_wait);
    tcase_add_loop_test(tc, random_waits_agree_with_a_plain_model, 0, 4);
    suite_add_tcase(suite, tc);
    return suite;
}
