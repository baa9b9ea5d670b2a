/* daemon/reply_joined.h - the answer to a join: who one is, and the table of all ranks.
 *
 * The table is the same for all, so it is packed once and kept while the answers of one generation are sent.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_REPLY_JOINED_H
#define DAEMON_REPLY_JOINED_H

#include "daemon/client_conn.h"
#include "mesh/v1/control.pb-c.h"

void reply_joined(struct client *c, struct job *job, const struct action *a);
void packed_table_forget(struct packed_table *t);

/* The rank table of the job's generation: [size] of rows, their strings borrowed from the job.  Free with mem_free(). */
Mesh__V1__RankInfo **rank_table_new(const struct job *job, int64_t now_ms);

#endif
