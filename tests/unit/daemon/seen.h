/* tests/unit/daemon/seen.h - look up what a step decided.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SEEN_H
#define TESTS_SEEN_H

#include "daemon/actions.h"

/* The one answer this client got; fails the test when there is none or more than one. */
const struct action *seen_answer(const struct actions *a, uint64_t client);
size_t seen_answers(const struct actions *a, uint64_t client);
const struct action *seen_notice(const struct actions *a, uint64_t client); /* likewise */
size_t seen_notices(const struct actions *a, uint64_t client);

struct bytes text(const char *s);

/* A pseudo-random order of 0..n-1. */
void shuffle(uint32_t *ret_order, uint32_t n, uint64_t seed);

#define assert_says(sentence, part)                                                                                    \
    ck_assert_msg(strstr((sentence), (part)) != NULL, "\"%s\" does not say \"%s\"", (sentence), (part))

#endif
