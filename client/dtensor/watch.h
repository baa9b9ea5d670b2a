/* client/dtensor/watch.h - what a thread may have asked to see or to refuse: communication, and replicas that differ.
 *
 * All of a thread; off, it costs one look at a thread-local word per operator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_WATCH_H
#define DTENSOR_WATCH_H

#include <mesh/inspect.h>

#include "dtensor/redistribute.h"

struct watch {
    bool is_explicit, checks_replicas;
    struct mesh_comm_log *log; /* the innermost that records */
    const char *op;            /* the operator that runs; NULL: none */
    char plan[64];             /* the move that runs, when there is a log */
};
extern _Thread_local struct watch watch;

static inline bool watch_is_on(void)
{
    return watch.is_explicit || watch.checks_replicas || watch.log;
}

/* An operator's input that must move to `to`: MESH_EPLACEMENT in explicit mode, when bytes would travel. */
int watch_implicit(const char *op, int argument, const mesh_dtensor *x, const mesh_placements *to);
/* For the log: this move is about to run; move NULL: no move any more. */
void watch_move(const mesh_device_mesh *m, const struct move *move);
/* MESH_EMISMATCH on every rank when replicas of y hold different bits. */
int watch_replicas(const char *op, const mesh_dtensor *y);

#endif
