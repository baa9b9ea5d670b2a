/* tests/unit/base/test_rng.c - known answers of Philox, and the shape of what is drawn from it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* philox4x32-10 of the paper's authors' known-answer file: counter, key, result. */
static const struct {
    uint32_t counter[4], key[2], words[4];
} known[] = {
    { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

static uint64_t join(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

START_TEST(the_known_answers_come_out)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct rng_key key = { .seed = join(known[i].key[0], known[i].key[1]),
                               .call = join(known[i].counter[2], known[i].counter[3]) };
        uint64_t block = join(known[i].counter[0], known[i].counter[1]);
        uint32_t words[4];
        rng_block(key, block, words);
        ck_assert_mem_eq(words, known[i].words, sizeof words);
        for (uint64_t k = 0; k < 4 && block < UINT64_MAX / 4; k++) {
            ck_assert_uint_eq(rng_bits(key, 4 * block + k), known[i].words[k]);
        }
    }
}
END_TEST

START_TEST(an_element_does_not_depend_on_its_neighbours)
{
    struct rng_key key = { .seed = 42, .call = 7 };
    double forward[100];
    for (uint64_t i = 0; i < 100; i++) {
        forward[i] = rng_uniform(key, i);
    }
    for (uint64_t i = 100; i-- > 0;) {
        ck_assert(rng_uniform(key, i) == forward[i]);
    }
    ck_assert(rng_bits(key, 5) != rng_bits((struct rng_key){ .seed = 42, .call = 8 }, 5));
    ck_assert(rng_bits(key, 5) != rng_bits((struct rng_key){ .seed = 43, .call = 7 }, 5));
}
END_TEST

/* ck_assert() notes each claim it checks, which is too slow for hundreds of thousands. */
#define MUST(claim)                                                                                                    \
    do {                                                                                                               \
        if (!(claim)) {                                                                                                \
            ck_abort_msg("%s", #claim);                                                                                \
        }                                                                                                              \
    } while (0)

START_TEST(uniform_is_even_over_zero_to_one)
{
    enum { N = 100000, BINS = 20 };
    struct rng_key key = { .seed = 1 };
    int bins[BINS] = { 0 };
    double sum = 0;
    for (uint64_t i = 0; i < N; i++) {
        double u = rng_uniform(key, i);
        MUST(u >= 0 && u < 1);
        bins[(int)(u * BINS)]++;
        sum += u;
    }
    MUST(fabs(sum / N - 0.5) < 0.005); /* 5.5 sigma */
    for (int b = 0; b < BINS; b++) {
        ck_assert_int_lt(abs(bins[b] - N / BINS), 400); /* 5.8 sigma */
    }
}
END_TEST

START_TEST(below_stays_below_and_is_even)
{
    struct rng_key key = { .seed = 3 };
    int counts[7] = { 0 };
    for (uint64_t i = 0; i < 70000; i++) {
        counts[rng_below(key, i, 7)]++;
        MUST(rng_below(key, i, 1) == 0);
        MUST(rng_below(key, i, (uint64_t)1 << 32) == rng_bits(key, i));
        MUST(rng_below(key, i, 1000000000000) < 1000000000000);
    }
    for (int k = 0; k < 7; k++) {
        ck_assert_int_lt(abs(counts[k] - 10000), 550);
    }
    uint64_t highest = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t x = rng_below(key, i, UINT64_MAX);
        highest = x > highest ? x : highest;
    }
    MUST(highest > UINT64_MAX / 100 * 95);
}
END_TEST

START_TEST(secrets_differ)
{
    uint8_t a[300] = { 0 }, b[300] = { 0 };
    ck_assert_int_eq(rng_secret(a, sizeof a), 0);
    ck_assert_int_eq(rng_secret(b, sizeof b), 0);
    ck_assert_mem_ne(a, b, 32);
    ck_assert_mem_ne(a + 268, b + 268, 32);
    ck_assert_int_eq(rng_secret(a, 0), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("rng");
    TCase *t = tcase_create("rng");
    tcase_add_test(t, the_known_answers_come_out);
    tcase_add_test(t, an_element_does_not_depend_on_its_neighbours);
    tcase_add_test(t, uniform_is_even_over_zero_to_one);
    tcase_add_test(t, below_stays_below_and_is_even);
    tcase_add_test(t, secrets_differ);
    suite_add_tcase(s, t);
    return s;
}
