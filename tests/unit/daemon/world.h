/* tests/unit/daemon/world.h - ranks that are all alive, for steps that depend on their lives.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include "daemon/liveness.h"

/* Rank r is client r + 1, pid 4000 + r, on node1.  The caller's are table [n] and the liveness_fini(). */
void world_begin(struct liveness *ret_lives, struct member *table, uint32_t n);

#endif
