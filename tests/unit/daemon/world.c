/* tests/unit/daemon/world.c - ranks that are all alive.
 * SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <check.h>
#include <stdio.h>

void world_begin(struct liveness *ret_lives, struct member *table, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        table[i] = (struct member){ .client = i + 1, .rank = i, .pid = 4000 + i };
        snprintf(table[i].host, sizeof table[i].host, "node1");
    }
    *ret_lives = (struct liveness){ .rank_of = MAP_INIT };
    ck_assert_int_eq(liveness_begin(ret_lives, table, n, 0), 0);
}
