/* daemon/client_conn.h - one client: who it is, what it belongs to, from its connection to its end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CLIENT_CONN_H
#define DAEMON_CLIENT_CONN_H

#include "daemon/server.h"

struct client {
    struct server *server;
    struct conn *conn;
    uint64_t id; /* from 1 */
    uid_t uid;
    pid_t pid;
    bool has_said_hello;
    bool is_closing;
    struct job *job;              /* it created or joined; borrowed from the server's jobs */
    uint32_t generation;          /* it joined; 0: none */
    struct loop_timer *last_word; /* it is gone, and who started it may say how; NULL: no such wait */
};

/* The listener's callback: takes the connection. */
void client_accept(struct conn *conn, void *server);
void client_close(struct client *c);
/* Who started the rank that this client is has told how it ended: nothing is waited for any more. */
void client_last_word(struct server *s, uint64_t client);

/* Belongs to the job from now on: MESH_ESTATE when it belongs to another one. */
int client_attach(struct client *c, struct job *job);
/* The job a request speaks of: by name, or, for "", the one the client belongs to (MESH_ESTALE when a later generation
 * of it runs). */
int client_find_job(struct client *c, const char *name, struct job **ret_job);
/* The same for requests that only look: for "" the client's own job, or the only one it may see. */
int client_find_shown(struct client *c, const char *name, struct job **ret_job);
bool client_may_see(const struct client *c, uid_t uid);

#endif
