/* daemon/handlers.h - what each request does; requests.def says which and when.
 *
 * A handler returns 0 when the answer is sent, gathered in the server's actions, or will come later; else a status whose
 * sentence (mesh_last_error()) is the answer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_HANDLERS_H
#define DAEMON_HANDLERS_H

#include "daemon/client_conn.h"
#include "mesh/v1/control.pb-c.h"

typedef int (*request_handler)(struct client *c, const Mesh__V1__ClientMessage *m);

#define REQUEST(CASE, member, handler, need) int handler(struct client *c, const Mesh__V1__ClientMessage *m);
#include "daemon/requests.def"
#undef REQUEST

struct ticket request_ticket(const struct client *c, const Mesh__V1__ClientMessage *m);
/* From now on; 0: the default; negative stays so. */
int64_t request_deadline(int64_t now_ms, int64_t timeout_ms);

#endif
