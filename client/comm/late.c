/* client/comm/late.c - says whom a call has been waiting for, long before its time limit.
 *
 * A slow rank is no failure, but whoever watches should not have to ask.  A program in which every call waits so long
 * is told every QUIET_MS only.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/log.h"
#include "comm/progress.h"

#define LATE_MS  1000
#define QUIET_MS 10000

void tell_late(mesh_group *g, int64_t now_ms)
{
    char call[130], names[100];
    const struct mesh_work *w = g->current;
    bool is_told = g->told_late_call == w->header.sequence || now_ms < g->next_late_ms;
    if (now_ms - w->begun_ms < LATE_MS || is_told) {
        return;
    }
    g->told_late_call = w->header.sequence;
    g->next_late_ms = now_ms + QUIET_MS;
    (void)name_waited(g, names, sizeof names);
    log_warn("comm",
             "rank %d: %s has waited %" PRId64 " ms for %s, and goes on to wait until its limit of %" PRId64 " ms",
             g->session->rank, describe_head(g, call, sizeof call), now_ms - w->begun_ms, names,
             w->deadline_ms - w->begun_ms);
}
