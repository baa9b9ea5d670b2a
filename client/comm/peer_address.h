/* client/comm/peer_address.h - the addresses at which this rank may reach another one, best first.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_PEER_ADDRESS_H
#define COMM_PEER_ADDRESS_H

#include "comm/link.h"
#include "session/session.h"
#include "wire/dial.h"

struct peer_address {
    enum link_kind kind; /* LINK_TCP or LINK_UNIX */
    struct address address;
    const char *text; /* of the session */
};

/* Number i of them: unix ones first (between ranks of one host), then tcp; policy leaves one kind out.  False: no more. */
bool peer_address_at(const struct mesh_session *s, int rank, enum link_kind policy, int i,
                     struct peer_address *ret_address);
/* A non-blocking socket that is connecting or connected; -1 with errno. */
int peer_address_connect(const struct peer_address *a);
/* Loopback pacing is not for us: full speed, before listen() or connect().  Not allowed or not there: as it was. */
void peer_address_tune(int fd);

#endif
