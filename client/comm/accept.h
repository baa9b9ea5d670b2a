/* client/comm/accept.h - where other ranks connect to: the data listener of this rank.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_ACCEPT_H
#define COMM_ACCEPT_H

#include "comm/comm.h"

/* Listens on loopback tcp and, unless policy is LINK_TCP, on a unix socket in a private directory.  NULL: error set. */
struct accepting *accepting_new(struct comm *c, enum link_kind policy);
const char *const *accepting_addresses(const struct accepting *a); /* ends with NULL */
int accepting_start(struct accepting *a);                          /* after joining */
/* Ends listening and every handshake, and returns when the control thread has let go of them. */
struct accepting *accepting_free(struct accepting *a);

/* The group's stream to `peer` (group rank), which this rank has to open.  Never blocks; the link arrives in the group. */
void dial_peer(struct comm *c, mesh_group *g, int peer);

#endif
