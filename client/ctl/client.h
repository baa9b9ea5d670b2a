/* client/ctl/client.h - one question to meshd and its answer: on a loop, or waited for on this thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include "ctl/ctl.h"
#include "mesh/v1/control.pb-c.h"
#include "wire/dial.h"
#include "wire/loop.h"

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
/* The same, for who looks into a job or its store: when none is there, the private one of `meshctl run`, if this user
 * has just one. */
int client_find_any(const struct ctl *ctl, struct client *ret_client);

struct call;

struct call_events {
    /* Exactly once, not before call_start() has returned, unless call_close() comes first: 0 with the answer (taken),
     * or a status with the sentence set and NULL. */
    void (*answered)(int status, Mesh__V1__DaemonMessage *answer, void *arg);
    /* Each notice after the answer; may be NULL. */
    void (*notice)(const Mesh__V1__Notice *notice, void *arg);
    /* After the answer, if the connection ends by itself; may be NULL. */
    void (*lost)(void *arg);
    void *arg;
};

/* Connects, says hello, sends m (borrowed until it is answered); the connection stays until call_close().  Statuses of
 * the answer: MESH_EDAEMON: nothing answers there; MESH_ETIMEDOUT; else that of meshd, with its sentence.  NULL: error
 * set. */
struct call *call_start(struct loop *l, struct client *client, Mesh__V1__ClientMessage *m,
                        const struct call_events *events);
int call_send(struct call *call, Mesh__V1__ClientMessage *m); /* one more message; its answer is dropped */
struct call *call_close(struct call *call);                   /* sends what is on its way; NULL is fine; returns NULL */

/* The same, waited for.  Ownership: the reply is the caller's, for codec_free_daemon(). */
int client_call(struct client *client, Mesh__V1__ClientMessage *m, Mesh__V1__DaemonMessage **ret_reply);

/* client_find() and client_call() in one; checks that the answer has the wanted body. */
int client_ask(const struct ctl *ctl, Mesh__V1__ClientMessage *m, int want_body, Mesh__V1__DaemonMessage **ret_reply);

#endif
