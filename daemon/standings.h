/* daemon/standings.h - where each rank of a job stands, as rows of the reply to ListRanks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_STANDINGS_H
#define DAEMON_STANDINGS_H

#include "daemon/snapshot.h"
#include "mesh/v1/control.pb-c.h"

struct standing_row {
    Mesh__V1__RankStanding info; /* points into the snapshot and the texts */
    char call[120];
};

struct standings {
    struct snapshot snapshot;
    struct standing_row *row; /* [snapshot.n] */
};

int standings_take(const struct server *s, struct job *job, struct standings *ret_standings);
void standings_fini(struct standings *t);

#endif
