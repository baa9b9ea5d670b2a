/* client/session/waiting.c - condition variables that wait on the monotonic clock, up to a deadline.
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/waiting.h"

#include <time.h>

#include "base/check.h"
#include "base/clock.h"

void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    CHECK(pthread_condattr_init(&attributes) == 0);
    CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(condition, &attributes) == 0);
    pthread_condattr_destroy(&attributes);
}

bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline_ms)
{
    int64_t left_ms = deadline_left(deadline_ms);
    if (left_ms == 0) {
        return false;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += left_ms / 1000;
    until.tv_nsec += (left_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(condition, lock, &until);
    return true;
}
