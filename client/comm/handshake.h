/* client/comm/handshake.h - a new stream until both sides have proved who they are; on the control thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_HANDSHAKE_H
#define COMM_HANDSHAKE_H

#include "comm/comm.h"

struct handshake;

/* Streams that have not proved themselves, per rank; more wait in the listener's backlog. */
#define HANDSHAKE_MAX_ACCEPTED 64
#define HANDSHAKE_TIMEOUT_MS   5000

struct handshakes { /* all of one comm */
    struct comm *comm;
    struct handshake *first;
    int n_accepted;
    void (*accepted_fn)(void *arg); /* one of them is over: another may be accepted */
    void *arg;
};

void handshake_accept(struct handshakes *all, int fd, enum link_kind kind); /* takes fd, connected */
void handshake_dial(struct handshakes *all, mesh_group *g, int peer);
void handshakes_end(struct handshakes *all);

#endif
