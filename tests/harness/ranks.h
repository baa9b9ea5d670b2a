/* tests/harness/ranks.h - test code that runs as every rank of a simulated world, and complaints that cross threads.
 *
 * Inside a rank a failed claim ends that rank's function with a status; ranks_run() then fails the test with the first
 * complaint and its place.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HARNESS_RANKS_H
#define HARNESS_RANKS_H

#include <mesh/mesh.h>

typedef int (*rank_fn)(void *arg);

/* Runs fn(arg) as each of n ranks. */
void ranks_run(int n, rank_fn fn, void *arg);

/* The first complaint of this process; "" when there is none. */
const char *ranks_complaint(void);

/* Keeps the first complaint; returns a failure, for `return`. */
int ranks_complain(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* 0, or the complaint that got is not want to within tolerance (1 + |want|); NaN equals NaN. */
int ranks_near(const char *file, int line, double got, double want, double tolerance);

#define REQUIRE(claim)                                                                                                 \
    do {                                                                                                               \
        if (!(claim)) {                                                                                                \
            return ranks_complain(__FILE__, __LINE__, "%s; last error: %s", #claim, mesh_last_error()->message);       \
        }                                                                                                              \
    } while (0)

#define REQUIRE_NEAR(got, want, tolerance)                                                                             \
    do {                                                                                                               \
        if (ranks_near(__FILE__, __LINE__, (got), (want), (tolerance)) < 0) {                                          \
            return -1;                                                                                                 \
        }                                                                                                              \
    } while (0)

/* Runs another such function. */
#define REQUIRE_OK(call)                                                                                               \
    do {                                                                                                               \
        if ((call) < 0) {                                                                                              \
            return -1;                                                                                                 \
        }                                                                                                              \
    } while (0)

#endif
