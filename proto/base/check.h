/* proto/base/check.h - assertions about our own mistakes, which stay on in release builds.
 *
 * Never reachable by bad input, a bad peer or a full disk: those are errors and go through base/error.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

_Noreturn void check_failed(const char *file, int line, const char *what);

/* PRE: the caller kept its side.  POST: we kept ours.  CHECK: anything between. */
#define CHECK(claim) ((claim) ? (void)0 : check_failed(__FILE__, __LINE__, #claim))
#define PRE(claim)   CHECK(claim)
#define POST(claim)  CHECK(claim)

/* A place that is never reached, and why. */
#define NEVER(why) check_failed(__FILE__, __LINE__, why)

#endif
