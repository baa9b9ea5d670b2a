/* tests/unit/daemon/seen.c - look up what a step decided.
 * SPDX-License-Identifier: Apache-2.0 */
#include "seen.h"

#include <check.h>
#include <string.h>

#include "base/rng.h"

static const struct action *find(const struct actions *a, uint64_t client, bool is_notice, size_t *ret_n)
{
    const struct action *found = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < a->list.n; i++) {
        const struct action *action = &a->list.at[i];
        if (action->to.client == client && (action->kind == ACTION_NOTICE) == is_notice) {
            found = action;
            ++*ret_n;
        }
    }
    return found;
}

const struct action *seen_answer(const struct actions *a, uint64_t client)
{
    size_t n;
    const struct action *found = find(a, client, false, &n);
    ck_assert_msg(n == 1, "client %lu got %zu answers", (unsigned long)client, n);
    return found;
}

size_t seen_answers(const struct actions *a, uint64_t client)
{
    size_t n;
    find(a, client, false, &n);
    return n;
}

const struct action *seen_notice(const struct actions *a, uint64_t client)
{
    size_t n;
    const struct action *found = find(a, client, true, &n);
    ck_assert_msg(n == 1, "client %lu got %zu notices", (unsigned long)client, n);
    return found;
}

size_t seen_notices(const struct actions *a, uint64_t client)
{
    size_t n;
    find(a, client, true, &n);
    return n;
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
