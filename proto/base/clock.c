/* proto/base/clock.c - the monotonic clock in three units.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

int64_t clock_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_now_us(void)
{
    return clock_now_ns() / 1000;
}

int64_t clock_now_ms(void)
{
    return clock_now_ns() / 1000000;
}

int64_t deadline_in(int64_t timeout_ms)
{
    int64_t now = clock_now_ms();
    if (timeout_ms <= 0) {
        return now;
    }
    return timeout_ms >= DEADLINE_NEVER - now ? DEADLINE_NEVER : now + timeout_ms;
}

int64_t deadline_left(int64_t deadline_ms)
{
    if (deadline_ms == DEADLINE_NEVER) {
        return INT32_MAX;
    }
    int64_t now = clock_now_ms();
    if (deadline_ms <= now) {
        return 0;
    }
    int64_t left = deadline_ms - now;
    return left < INT32_MAX ? left : INT32_MAX;
}
