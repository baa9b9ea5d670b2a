/* tests/bench/floor.h - collectives over bare sockets with nothing around them: what this machine lets anybody reach.
 *
 *   floor.c           connects every two ranks by a socket, then forks the ranks
 *   floor_exchange.c  moves bytes through several sockets at once, adding up those that are to be added
 *   floor_calls.c     each collective as a few exchanges
 *
 * No frames, no checks, no peer that may fail: a rank that loses another just ends.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include <stdbool.h>
#include <stddef.h>

#include "ctl/bench_rules.h"

#define FLOOR_MAX_RANKS   8
#define FLOOR_CHUNK_BYTES ((size_t)512 << 10)

/* This rank. */
struct floor {
    int rank, n_ranks;
    int fd[FLOOR_MAX_RANKS];
    bool is_tcp;
    bool is_crowded; /* more ranks than processors: give way instead of spinning */
    char *scratch;   /* [FLOOR_MAX_RANKS][FLOOR_CHUNK_BYTES] */
};
extern struct floor floor_here;

/* What goes to one peer, and what comes from it: into `in`, or added to `sum`. */
struct transfer {
    int peer;
    const char *out;
    size_t to_send;
    char *in;
    size_t to_receive;
    float *sum;
    size_t held; /* bytes in the peer's scratch that are not added yet */
};

/* Returns when all n are done. */
void floor_exchange(struct transfer *transfers, int n);

/* A collective, for bench_rules.h. */
int floor_call(const struct bench_call *c);

_Noreturn void floor_die(const char *what);

#endif
