/* tests/unit/tensor/test_random.c - random numbers by the hundred are those of one index at a time, and the same on
 * every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <math.h>
#include <string.h>

#include "tensor/random.h"

static const struct rng_key key = { .seed = 42, .call = UINT64_C(0x123456789a) };

static const uint64_t starts[] = { 0, 1, 2, 3, 5, 4097, (UINT64_C(1) << 34) - 7, (UINT64_C(1) << 60) + 11 };
static const int64_t counts[] = { 0, 1, 2, 3, 4, 63, 64, 65, 255, RANDOM_MOST - 1, RANDOM_MOST };
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static void check_bits(const struct random_range *r)
{
    uint32_t bits[RANDOM_MOST];
    random_bits(r, bits);
    for (int64_t i = 0; i < r->n; i++) {
        uint32_t want = rng_bits(r->key, r->index + (uint64_t)i * r->step);
        if (bits[i] != want) {
            ck_abort_msg("number %lld of %lld from %llu, step %llu: %08x instead of %08x", (long long)i,
                         (long long)r->n, (unsigned long long)r->index, (unsigned long long)r->step, bits[i], want);
        }
    }
}

/* By the C library, whose angle is rounded. */
static double normal_by_definition(uint64_t index)
{
    uint32_t words[4];
    rng_block(key, index / 4, words);
    const uint32_t *pair = &words[index % 4 / 2 * 2];
    double radius = sqrt(-2 * log((pair[0] + 1.0) * 0x1p-32)), angle = 6.283185307179586476925 * (pair[1] * 0x1p-32);
    return radius * (index % 2 == 0 ? cos(angle) : sin(angle));
}

static void check_normal(const struct random_range *r)
{
    double numbers[RANDOM_MOST];
    random_normal(r, numbers);
    for (int64_t i = 0; i < r->n; i++) {
        double want = normal_by_definition(r->index + (uint64_t)i * r->step);
        if (!(fabs(numbers[i] - want) < 1e-14)) {
            ck_abort_msg("number %lld from %llu: %.17g instead of %.17g", (long long)i, (unsigned long long)r->index,
                         numbers[i], want);
        }
    }
}

START_TEST(many_are_those_of_one_index_at_a_time)
{
    for (size_t i = 0; i < COUNT(starts); i++) {
        for (size_t k = 0; k < COUNT(counts); k++) {
            for (uint64_t step = 1; step < 4; step++) {
                struct random_range r = { .key = key, .index = starts[i], .step = step, .n = counts[k] };
                check_bits(&r);
                check_normal(&r);
            }
        }
    }
}
END_TEST

START_TEST(a_normal_number_does_not_depend_on_what_is_drawn_with_it)
{
    double all[RANDOM_MOST], one;
    random_normal(&(struct random_range){ .key = key, .index = 3, .step = 1, .n = RANDOM_MOST }, all);
    for (uint64_t i = 0; i < RANDOM_MOST; i++) {
        random_normal(&(struct random_range){ .key = key, .index = 3 + i, .step = i % 3, .n = 1 }, &one);
        ck_assert(memcmp(&one, &all[i], sizeof one) == 0);
    }
}
END_TEST

START_TEST(normal_numbers_have_their_moments)
{
    enum { N = 200 };
    double x[RANDOM_MOST], sum = 0, squares = 0, fourth = 0, products = 0, last = 0;
    for (uint64_t i = 0; i < N; i++) {
        random_normal(
            &(struct random_range){ .key = { .seed = 2 }, .index = i * RANDOM_MOST, .step = 1, .n = RANDOM_MOST }, x);
        for (int k = 0; k < RANDOM_MOST; k++) {
            sum += x[k];
            squares += x[k] * x[k];
            fourth += x[k] * x[k] * x[k] * x[k];
            products += x[k] * last;
            last = x[k];
        }
    }
    double n = N * RANDOM_MOST;
    ck_assert_double_eq_tol(sum / n, 0, 0.02);
    ck_assert_double_eq_tol(squares / n, 1, 0.03);
    ck_assert_double_eq_tol(fourth / n, 3, 0.2);
    ck_assert_double_eq_tol(products / n, 0,
                            0.02); /* neighbours come from one pair of bits, and are still independent */
}
END_TEST

/* FNV-1a of the bits of the first numbers: whatever the compiler and the processor. */
START_TEST(normal_numbers_are_the_same_bits_on_every_machine)
{
    double x[RANDOM_MOST];
    uint64_t hash = 0xcbf29ce484222325U;
    for (uint64_t i = 0; i < 100; i++) {
        random_normal(&(struct random_range){ .key = key, .index = i * RANDOM_MOST, .step = 1, .n = RANDOM_MOST }, x);
        for (int k = 0; k < RANDOM_MOST; k++) {
            uint64_t bits;
            memcpy(&bits, &x[k], sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3U;
        }
    }
    ck_assert_msg(hash == UINT64_C(0x8b7fa4f750aadfc1), "%016llx", (unsigned long long)hash);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("random");
    TCase *t = tcase_create("random");
    tcase_add_test(t, many_are_those_of_one_index_at_a_time);
    tcase_add_test(t, a_normal_number_does_not_depend_on_what_is_drawn_with_it);
    tcase_add_test(t, normal_numbers_have_their_moments);
    tcase_add_test(t, normal_numbers_are_the_same_bits_on_every_machine);
    suite_add_tcase(s, t);
    return s;
}
