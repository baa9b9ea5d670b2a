/* tests/bench/rows.h - the rows of a collectives benchmark, in the same columns whoever is measured.
 *
 *   peer,mode,op,ranks,bytes,reps,iters,median_us,min_us,max_us,GBps,check
 *
 * reps is the number of batches, iters the calls in each; what they mean is in ctl/bench_rules.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include "ctl/bench_rules.h"

#define ROWS_MAX_SIZES 32

#define ROWS_OPTIONS   "[--ops NAME,...] [--sizes BYTES,...] [--reps N] [--batch-ms MS] [--point-ms MS]"

struct rows {
    bool is_asked[BENCH_N_OPS];
    size_t size[ROWS_MAX_SIZES];
    int n_sizes;
    struct bench_rules rules;
};

/* The six usual collectives at seven sizes from 8 bytes to 64 MiB. */
void rows_init(struct rows *rows);

/* Takes the words "--name value"; false: it is none of ours, or has no such value. */
bool rows_option(struct rows *rows, const char *name, const char *value);

/* All of argv, in pairs; false, with a line on standard error, when one is unknown. */
bool rows_options(struct rows *rows, int argc, char **argv);

/* Measures and, on rank 0, prints; a status.  A wrong result says WRONG in its row. */
int rows_run(const struct rows *rows, const struct bench_library *library);

#endif
