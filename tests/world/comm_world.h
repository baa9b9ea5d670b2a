/* tests/world/comm_world.h - worlds of threads for the tests of comm: every size, over every kind of link.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORLD_COMM_WORLD_H
#define WORLD_COMM_WORLD_H

#include <mesh/collective.h>
#include <mesh/debug.h>
#include <mesh/scope.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/collective.h"
#include "comm/group.h"
#include "comm/world.h"
#include "harness/check_main.h"

static const enum link_kind world_links[] = { LINK_SIM, LINK_UNIX, LINK_TCP };
static const int world_sizes[] = { 1, 2, 3, 4, 5, 8, 9 };

#define N_WORLDS ((int)(ARRAY_SIZE(world_links) * ARRAY_SIZE(world_sizes)))

/* World number i of N_WORLDS must run well. */
static inline void run_world(int i, mesh_world_fn fn, void *arg)
{
    int n = world_sizes[i % (int)ARRAY_SIZE(world_sizes)];
    int r = world_run_linked(n, world_links[i / (int)ARRAY_SIZE(world_sizes)], 30000, fn, arg);
    ck_assert_msg(r == 0, "%d ranks, link %d: %s", n, (int)world_links[i / (int)ARRAY_SIZE(world_sizes)],
                  err_last()->message);
}

/* For the functions of ranks, in which Check's own assertions have no place: `return wrong("...")`. */
#define wrong(...) err_set(MESH_ESTATE, __VA_ARGS__)

static inline void *get_memory(size_t bytes)
{
    void *p = malloc(bytes > 0 ? bytes : 1);
    if (p == NULL) {
        abort();
    }
    return p;
}

#endif
