/* proto/base/fault.c - countdowns that make the nth use of a fault point fail.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fault.h"

#include <stdatomic.h>

#include "base/check.h"

/* Process-wide on purpose: a scenario fails wherever its nth allocation happens to be, on whichever thread. */
static struct point {
    _Atomic bool armed;
    _Atomic uint64_t uses; /* since armed */
    _Atomic uint64_t countdown, repeat, fired;
} points[N_FAULT_POINTS];

void fault_arm(enum fault_point point, uint64_t countdown, uint64_t repeat)
{
    PRE(point < N_FAULT_POINTS && countdown > 0);
    struct point *p = &points[point];
    atomic_store(&p->armed, false);
    atomic_store(&p->uses, 0);
    atomic_store(&p->fired, 0);
    atomic_store(&p->countdown, countdown);
    atomic_store(&p->repeat, repeat);
    atomic_store(&p->armed, true);
}

void fault_disarm(enum fault_point point)
{
    PRE(point < N_FAULT_POINTS);
    atomic_store(&points[point].armed, false);
}

bool fault_hits(enum fault_point point)
{
    struct point *p = &points[point];
    if (!atomic_load_explicit(&p->armed, memory_order_relaxed)) {
        return false;
    }
    uint64_t use = atomic_fetch_add(&p->uses, 1) + 1;
    uint64_t countdown = atomic_load(&p->countdown);
    if (use < countdown || use - countdown > atomic_load(&p->repeat)) {
        return false;
    }
    atomic_fetch_add(&p->fired, 1);
    return true;
}

uint64_t fault_fired(enum fault_point point)
{
    PRE(point < N_FAULT_POINTS);
    return atomic_load(&points[point].fired);
}
