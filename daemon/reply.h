/* daemon/reply.h - answers and notices as frames.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_REPLY_H
#define DAEMON_REPLY_H

#include "daemon/client_conn.h"
#include "mesh/v1/control.pb-c.h"

/* Nothing is sent for request 0. */
void reply_status(struct client *c, uint64_t request, int status, const char *sentence);
/* m->request is written here; a message that cannot be sent becomes an error. */
void reply_message(struct client *c, uint64_t request, Mesh__V1__DaemonMessage *m);
/* request 0: unasked. */
void reply_notice(struct client *c, uint64_t request, const struct notice *n, const char *sentence);

/* Sends the action to its client; job: of ACTION_JOINED. */
void reply_action(struct server *s, struct job *job, const struct action *a);

#endif
