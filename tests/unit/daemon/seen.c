/* tests/unit/daemon/seen.c - look up what a step decided.
 * SPDX-License-Identifier: Apache-2.0 */
#include "seen.h"

#include <check.h>
#include <string.h>

#include "base/rng.h"

/* How many of a kind this client got; ret_last, when wanted, is the last of them. */
static size_t count(const struct actions *a, uint64_t client, bool is_notice, const struct action **ret_last)
{
    size_t n = 0;
    for (size_t i = 0; i < a->list.n; i++) {
        const struct action *action = &a->list.at[i];
        if (action->to.client == client && (action->kind == ACTION_NOTICE) == is_notice) {
            n++;
            if (ret_last != NULL) {
                *ret_last = action;
            }
        }
    }
    return n;
}

static const struct action *only(const struct actions *a, uint64_t client, bool is_notice)
{
    const struct action *found = NULL;
    size_t n = count(a, client, is_notice, &found);
    ck_assert_msg(n == 1, "client %lu got %zu %s", (unsigned long)client, n, is_notice ? "notices" : "answers");
    return found;
}

const struct action *seen_answer(const struct actions *a, uint64_t client)
{
    return only(a, client, false);
}

size_t seen_answers(const struct actions *a, uint64_t client)
{
    return count(a, client, false, NULL);
}

const struct action *seen_notice(const struct actions *a, uint64_t client)
{
    return only(a, client, true);
}

size_t seen_notices(const struct actions *a, uint64_t client)
{
    return count(a, client, true, NULL);
}

struct bytes text(const char *s)
{
    return (struct bytes){ (const uint8_t *)s, strlen(s) };
}

void shuffle(uint32_t *ret_order, uint32_t n, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++) {
        ret_order[i] = i;
    }
    for (uint32_t i = n; i-- > 1;) {
        uint32_t j = (uint32_t)rng_below((struct rng_key){ .seed = seed }, i, i + 1);
        uint32_t swapped = ret_order[i];
        ret_order[i] = ret_order[j];
        ret_order[j] = swapped;
    }
}
