/* daemon/standings.h - where each rank of a job stands, as rows of the reply to ListRanks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_STANDINGS_H
#define DAEMON_STANDINGS_H

#include "daemon/snapshot.h"
#include "mesh/v1/control.pb-c.h"

struct standing_row {
    Mesh__V1__RankStanding info; /* points into the rest */
    char call[120];
    char group[RECORDER_NAME_BYTES + 1];
    char elsewhere[ELSEWHERE_BYTES];
    uint32_t waited[RECORDER_MAX_WAITED];
};

/* [ranks of the running generation]; NULL: out of memory, error set.  For mem_free(). */
struct standing_row *standings_new(const struct server *s, const struct job *job);

#endif
