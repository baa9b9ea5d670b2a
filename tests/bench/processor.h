/* tests/bench/processor.h - the processors that this process may use, by number from 0 on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_PROCESSOR_H
#define BENCH_PROCESSOR_H

#include <stdbool.h>

int processor_count(void);

/* From now on this thread, and what it starts, runs on the ith of them only; false: there is no such one. */
bool processor_stay_on(int i);

#endif
