/* client/comm/world.h - worlds of threads, over any kind of link.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_WORLD_H
#define COMM_WORLD_H

#include <mesh/debug.h>

#include "comm/link.h"

/* As mesh_world_run(), with the ranks linked by LINK_SIM, LINK_TCP or LINK_UNIX; timeout_ms of every wait, 0: the default. */
int world_run_linked(int n_ranks, enum link_kind kind, int64_t timeout_ms, mesh_world_fn fn, void *arg);

#endif
