/* client/ctl/bench_roof.h - what two processes of this machine reach over bare sockets: the roof for collectives.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_BENCH_ROOF_H
#define CTL_BENCH_ROOF_H

#include <stdbool.h>
#include <stdint.h>

struct roof {
    double latency_us;   /* of one exchange of 8 bytes, both ways at once */
    double bytes_per_us; /* each way, while both send */
};

/* Over loopback TCP, or a pair of unix-domain sockets.  Takes about a second. */
int roof_measure(bool is_tcp, struct roof *ret_roof);

/* The least time for a collective in which every rank takes `steps` steps and sends `bytes` bytes. */
double roof_time_us(const struct roof *r, int steps, double bytes);

#endif
