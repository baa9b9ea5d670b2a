/* proto/base/fault.h - fault points: "fail the nth allocation / read / write from now".
 *
 * Compiled into every build (one relaxed atomic load when disarmed), armed only by tests.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum fault_point { FAULT_ALLOC, FAULT_READ, FAULT_WRITE, N_FAULT_POINTS };

/* The point fails at its countdown-th use from now (1: the next), then `repeat` more times; thread-safe. */
void fault_arm(enum fault_point point, uint64_t countdown, uint64_t repeat);
void fault_disarm(enum fault_point point);
bool fault_hits(enum fault_point point);      /* asked by the fault points themselves */
uint64_t fault_fired(enum fault_point point); /* how often it failed since armed */

#endif
