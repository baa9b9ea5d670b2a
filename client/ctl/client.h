/* client/ctl/client.h - one question to meshd and its answer, waited for on this thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include "ctl/ctl.h"
#include "mesh/v1/control.pb-c.h"
#include "wire/dial.h"

struct client {
    struct address address;
    char text[400];     /* the address as people write it */
    bool is_named;      /* by --address or MESH_ADDRESS, so that no other one may take its place */
    int64_t timeout_ms; /* for each call, connecting included */
    bool was_reached;   /* a connection stood at some time */
};

/* Where meshd is: --address, $MESH_ADDRESS, else the first of the usual places that exists.  MESH_EDAEMON: none does;
 * MESH_EINVAL: the address is no address. */
int client_find(const struct ctl *ctl, struct client *ret_client);

/* Connects, says hello, sends m, waits for the answer.  MESH_EDAEMON: nothing answers there; MESH_ETIMEDOUT; else the status
 * of the answer with meshd's sentence.  Ownership: the reply is the caller's, for codec_free_daemon(). */
int client_call(struct client *client, Mesh__V1__ClientMessage *m, Mesh__V1__DaemonMessage **ret_reply);

/* client_find() and client_call() in one; checks that the answer has the wanted body. */
int client_ask(const struct ctl *ctl, Mesh__V1__ClientMessage *m, int want_body, Mesh__V1__DaemonMessage **ret_reply);

#endif
