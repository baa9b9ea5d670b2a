/* tests/bench/processor.c - keeping a thread on one processor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "processor.h"

#include <sched.h>
#include <stddef.h>

/* As the process began: the caller's own set shrinks. */
static const cpu_set_t *allowed(void)
{
    static cpu_set_t set;
    static bool is_known;
    if (!is_known) {
        is_known = sched_getaffinity(0, sizeof set, &set) == 0;
    }
    return &set;
}

int processor_count(void)
{
    return CPU_COUNT(allowed());
}

bool processor_stay_on(int i)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, allowed()) && i-- == 0) {
            CPU_SET(cpu, &one);
            return sched_setaffinity(0, sizeof one, &one) == 0;
        }
    }
    return false;
}
