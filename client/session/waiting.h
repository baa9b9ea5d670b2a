/* client/session/waiting.h - condition variables that wait on the monotonic clock, up to a deadline.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_WAITING_H
#define SESSION_WAITING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void condition_init(pthread_cond_t *condition);
/* lock is held.  False: the deadline has passed; true: look again, whether something happened or not. */
bool condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t deadline_ms);

#endif
