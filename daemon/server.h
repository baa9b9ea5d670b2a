/* daemon/server.h - the listener, all clients, the one timer, the end.
 *
 * Glue: what happens on sockets becomes calls of the pure parts (jobs.h), and the actions they append become frames.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include "base/map.h"
#include "daemon/jobs.h"
#include "wire/listener.h"

struct server_config {
    struct address address;
    size_t max_clients, max_jobs;
    int64_t idle_ms;       /* 0: never ends by itself */
    int ready_fd, life_fd; /* -1: none */
};

struct packed_table { /* see reply_joined.h */
    uint64_t job;     /* its number */
    uint32_t generation;
    uint8_t *bytes; /* NULL: none */
    size_t len;
};

struct server {
    struct server_config config;
    struct loop *loop;
    struct listener *listener;
    struct loop_signal *term, *interrupt, *meaningless[3];
    struct loop_watch *life;
    struct loop_timer *timer; /* of the earliest deadline of any job */
    struct loop_timer *idle;
    int64_t timer_ms;
    int64_t started_ms;
    struct map clients; /* id -> struct client */
    uint64_t n_accepted;
    struct jobs jobs;
    struct actions actions;
    struct packed_table packed_table;
    char address[128];
    char rings_folder[160]; /* of the ranks' recorders; "": none */
    bool is_stopping;
    bool is_abandoned; /* by who held the other end of life_fd */
};

/* Serves until SIGTERM, SIGINT, the end of life_fd, or idle_ms without clients; then 0. */
int server_run(const struct server_config *config);

struct client;
int server_add_client(struct server *s, struct client *c);
void server_remove_client(struct server *s, struct client *c);
struct client *server_client(const struct server *s, uint64_t id); /* NULL: gone */

/* Sends the actions gathered, arms the timer, forgets the job if it is over.  job may be NULL. */
void server_settle(struct server *s, struct job *job);
void server_stop(struct server *s, const char *why);

#endif
