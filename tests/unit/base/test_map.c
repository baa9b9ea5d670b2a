/* tests/unit/base/test_map.c - the hash map, against what it should hold.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/rng.h"

enum { N_KEYS = 20000 };

static int values[N_KEYS];

static size_t make_key(int i, char ret_key[32])
{
    return (size_t)snprintf(ret_key, 32, "key/%d", i);
}

/* ck_assert() notes each claim it checks, which is too slow for hundreds of thousands. */
#define MUST(claim)                                                                                                    \
    do {                                                                                                               \
        if (!(claim)) {                                                                                                \
            ck_abort_msg("%s", #claim);                                                                                \
        }                                                                                                              \
    } while (0)

START_TEST(many_keys_are_found_again)
{
    struct map m = MAP_INIT;
    char key[32];
    void *old;
    for (int i = 0; i < N_KEYS; i++) {
        size_t len = make_key(i, key);
        MUST(map_set(&m, key, len, &values[i], &old) == 0);
        MUST(old == NULL);
    }
    MUST(m.n == (size_t)N_KEYS);
    for (int i = 0; i < N_KEYS; i++) {
        MUST((map_get(&m, key, make_key(i, key))) == (&values[i]));
    }
    MUST(map_get(&m, "key/", 4) == NULL);
    map_fini(&m);
    MUST(map_get(&m, "key/1", 5) == NULL);
    map_fini(NULL);
}
END_TEST

START_TEST(keys_are_bytes_with_a_length)
{
    struct map m = MAP_INIT;
    map_set(&m, "", 0, &values[0], NULL);
    map_set(&m, "\0", 1, &values[1], NULL);
    map_set(&m, "\0\0", 2, &values[2], NULL);
    map_set(&m, "a\0b", 3, &values[3], NULL);
    ck_assert_ptr_eq(map_get(&m, "", 0), &values[0]);
    ck_assert_ptr_eq(map_get(&m, "\0", 1), &values[1]);
    ck_assert_ptr_eq(map_get(&m, "\0\0", 2), &values[2]);
    ck_assert_ptr_eq(map_get(&m, "a\0b", 3), &values[3]);
    ck_assert_ptr_null(map_get(&m, "a\0c", 3));
    ck_assert_ptr_eq(map_remove(&m, "", 0), &values[0]);
    ck_assert_ptr_null(map_remove(&m, "", 0));
    map_fini(&m);
}
END_TEST

START_TEST(setting_again_gives_the_old_value)
{
    struct map m = MAP_INIT;
    void *old = NULL;
    map_set(&m, "k", 1, &values[0], NULL);
    ck_assert_int_eq(map_set(&m, "k", 1, &values[1], &old), 0);
    ck_assert_ptr_eq(old, &values[0]);
    ck_assert_uint_eq(m.n, 1);
    map_fini(&m);
}
END_TEST

START_TEST(a_hundred_thousand_random_changes_agree_with_an_array)
{
    enum { N = 700 };
    struct map m = MAP_INIT;
    void *model[N] = { NULL };
    size_t n_model = 0;
    char key[32];
    struct rng_key random = { .seed = 5 };
    for (uint64_t step = 0; step < 100000; step++) {
        int i = (int)rng_below(random, 2 * step, N);
        size_t len = make_key(i, key);
        if (rng_below(random, 2 * step + 1, 2) == 0) {
            MUST(map_remove(&m, key, len) == model[i]);
            n_model -= model[i] != NULL;
            model[i] = NULL;
        } else {
            n_model += model[i] == NULL;
            model[i] = &values[step % N_KEYS];
            MUST(map_set(&m, key, len, model[i], NULL) == 0);
        }
        MUST(m.n == n_model);
        int look = (int)(step % N);
        MUST(map_get(&m, key, make_key(look, key)) == model[look]);
    }
    map_fini(&m);
}
END_TEST

START_TEST(a_walk_meets_each_key_once)
{
    struct map m = MAP_INIT;
    struct map_slot *slot;
    char key[32];
    int n = 0;
    memset(values, 0, sizeof values);
    for (int i = 0; i < 1000; i++) {
        map_set(&m, key, make_key(i, key), &values[i], NULL);
    }
    for (size_t i = 0; (slot = map_next(&m, &i)) != NULL;) {
        ck_assert_int_eq((*(int *)slot->value)++, 0);
        n++;
    }
    ck_assert_int_eq(n, 1000);
    map_fini(&m);
}
END_TEST

START_TEST(without_memory_nothing_changes)
{
    struct map m = MAP_INIT;
    char key[32];
    for (int i = 0; i < 200; i++) {
        size_t len = make_key(i, key);
        fault_arm(FAULT_ALLOC, 1, 0);
        ck_assert_int_eq(map_set(&m, key, len, &values[i], NULL), MESH_ENOMEM);
        ck_assert_uint_eq(m.n, (size_t)i);
        ck_assert_ptr_null(map_get(&m, key, len));
        fault_arm(FAULT_ALLOC, 2, 0);
        if (map_set(&m, key, len, &values[i], NULL) < 0) {
            ck_assert_ptr_null(map_get(&m, key, len));
            fault_disarm(FAULT_ALLOC);
            ck_assert_int_eq(map_set(&m, key, len, &values[i], NULL), 0);
        }
        fault_disarm(FAULT_ALLOC);
    }
    map_fini(&m);
}
END_TEST

START_TEST(the_hash_tells_neighbours_apart)
{
    /* 64 bits over some thousand short keys: a collision would be a mistake, not bad luck. */
    enum { N = 4096 };
    struct map m = MAP_INIT;
    for (uint32_t i = 0; i < N; i++) {
        for (size_t len = 4; len <= 12; len += 4) {
            uint8_t bytes[12] = { 0 };
            uint64_t hash;
            memcpy(bytes, &i, 4);
            hash = hash_bytes(bytes, len, 0);
            MUST(map_get(&m, &hash, sizeof hash) == NULL);
            map_set(&m, &hash, sizeof hash, values, NULL);
        }
    }
    MUST(hash_bytes("abc", 3, 0) != hash_bytes("abc", 3, 1));
    map_fini(&m);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("map");
    TCase *t = tcase_create("map");
    tcase_add_test(t, many_keys_are_found_again);
    tcase_add_test(t, keys_are_bytes_with_a_length);
    tcase_add_test(t, setting_again_gives_the_old_value);
    tcase_add_test(t, a_hundred_thousand_random_changes_agree_with_an_array);
    tcase_add_test(t, a_walk_meets_each_key_once);
    tcase_add_test(t, without_memory_nothing_changes);
    tcase_add_test(t, the_hash_tells_neighbours_apart);
    suite_add_tcase(s, t);
    return s;
}
