/* proto/base/clock.h - monotonic time and deadlines.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t clock_now_ms(void);
int64_t clock_now_us(void);
int64_t clock_now_ns(void);

/* A deadline is a point on the ms clock; DEADLINE_NEVER only for what something else bounds. */
#define DEADLINE_NEVER INT64_MAX
int64_t deadline_in(int64_t timeout_ms);    /* from now, saturating */
int64_t deadline_left(int64_t deadline_ms); /* >= 0; INT32_MAX at most, so that it fits poll() */

#endif
