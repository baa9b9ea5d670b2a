/* client/ctl/bench_rank.h - one rank of `meshctl bench`: times collectives, and rank 0 prints a JSON line for each.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_BENCH_RANK_H
#define CTL_BENCH_RANK_H

#include <stdint.h>

#include "ctl/bench_roof.h"
#include "ctl/bench_rules.h"

#define BENCH_MAX_SIZES 64

struct bench {
    enum bench_op op[BENCH_N_OPS];
    size_t n_ops;
    uint64_t size[BENCH_MAX_SIZES]; /* bytes of the whole vector, ascending or not */
    size_t n_sizes;
    struct roof roof;
};

/* Joins, measures, leaves; the exit code. */
int bench_rank(const struct bench *b);

#endif
