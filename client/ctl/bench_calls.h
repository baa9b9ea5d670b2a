/* client/ctl/bench_calls.h - our own collectives as a library that bench_rules.h can time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_BENCH_CALLS_H
#define CTL_BENCH_CALLS_H

#include "ctl/bench_rules.h"

/* Of this rank, which has joined; mode is only a word for the rows. */
struct bench_library bench_own_library(const char *mode);

#endif
