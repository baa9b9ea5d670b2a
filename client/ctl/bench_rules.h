/* client/ctl/bench_rules.h - how collectives are timed: the same rules for every library that is measured.
 *
 * What a size S of bytes means among N ranks (rounded up to N elements):
 *
 *      all_reduce      S = the vector on every rank, in place         all_gather      S = the whole output, S/N from each rank
 *      broadcast       S = the vector, in place                       reduce_scatter  S = the whole input, S/N to each rank
 *      all_to_all      S = the whole input, S/N to each rank          barrier         S = 0
 *      reduce          S = the vector; the root gets the sum          gather, scatter S = what the root gets, or gives
 *      ping_pong       S = a message, from rank 0 to rank 1 and back (the time is of both ways; the others wait)
 *
 * The root moves on by one rank with every call, so that no call can overtake another.  First one call on known data, whose
 * result is checked.  Then batches: a barrier, and so many calls back to back that a batch takes about batch_ms.  The time of a
 * batch is that of its slowest rank.  Buffers are made and touched anew for each size.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_BENCH_RULES_H
#define CTL_BENCH_RULES_H

#include <stdbool.h>
#include <stddef.h>

#define BENCH_MAX_BATCHES 63

enum bench_op {
    BENCH_ALL_REDUCE,
    BENCH_ALL_GATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_BROADCAST,
    BENCH_ALL_TO_ALL,
    BENCH_BARRIER,
    BENCH_REDUCE, /* from here on: measured on request */
    BENCH_GATHER,
    BENCH_SCATTER,
    BENCH_PING_PONG,
    BENCH_ALL_REDUCE_F16,
    BENCH_ALL_REDUCE_BF16,
    BENCH_N_OPS
};
#define BENCH_N_USUAL BENCH_REDUCE

struct bench_call {
    enum bench_op op;
    void *x, *y;        /* x is given, or in place; y is the result */
    size_t count, part; /* elements of the whole vector; of it, each rank's */
    int root;
};

struct bench_library {
    const char *name, *mode;
    int rank, n_ranks;
    int (*call)(const struct bench_call *c); /* a status */
};

struct bench_rules {
    int n_batches; /* 3 to BENCH_MAX_BATCHES; fewer where they would take longer than point_ms */
    double batch_ms, point_ms;
};

struct bench_row {
    enum bench_op op;
    int n_ranks, n_batches;
    size_t bytes;
    long n_calls; /* in a batch */
    double median_us, best_us, worst_us;
    bool is_right;
};

extern const struct bench_rules bench_usual_rules;

/* Every rank makes the same call; each gets the row. */
int bench_measure(const struct bench_library *l, const struct bench_rules *rules, enum bench_op op, size_t bytes,
                  struct bench_row *ret_row);

/* What the ops are called, and their elements' size. */
const char *bench_op_name(enum bench_op op);
bool bench_op_find(const char *name, enum bench_op *ret_op);
size_t bench_element_size(enum bench_op op);

/* Makes the call on known data.  Leaves both buffers all zero, whose sums stay zero. */
int bench_check(const struct bench_library *l, const struct bench_call *c, bool *ret_is_right);

#endif
