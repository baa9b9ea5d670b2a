/* tests/bench/slowest.h - times that all ranks took together.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SLOWEST_H
#define BENCH_SLOWEST_H

/* Each of n times becomes that of the slowest rank of the world; a status. */
int slowest_rank(double *us, int n);

/* Sorts. */
double median_of(double *us, int n);

#endif
