/* tests/unit/daemon/peer.h - a meshd in a process of its own, and blocking clients of it that speak raw frames.
 *
 * Every read is bounded by PEER_TIMEOUT_S; a failure fails the test.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include <sys/types.h>

#include "wire/codec.h"

#define PEER_TIMEOUT_S 10

struct daemon_process {
    char folder[64], socket[80];
    pid_t pid;
    int life_fd; /* closing it ends the daemon */
};

void daemon_start(struct daemon_process *d);
void daemon_stop(struct daemon_process *d); /* SIGTERM; checks that it exits with 0 and removes its socket */

struct peer {
    int fd;
    uint64_t n_requests;
};

typedef Mesh__V1__ClientMessage Request;
typedef Mesh__V1__DaemonMessage Answer;

int peer_connect(const char *socket);                  /* a bare connection */
struct peer peer_open(const struct daemon_process *d); /* and hello */
void peer_close(struct peer *p);
void peer_send(struct peer *p, Request *m); /* m->request is written */
/* Free with codec_free_daemon(). */
Answer *peer_read(struct peer *p);
Answer *peer_call(struct peer *p, Request *m);
int peer_status(struct peer *p, Request *m); /* of the answer alone */
/* true: the daemon closed the connection; what came before is thrown away. */
bool peer_is_closed(int fd);

void peer_create_job(struct peer *p, const char *job, uint32_t size);
void peer_send_join(struct peer *p, const char *job, int32_t rank, uint32_t size, uint64_t timeout_ms);
int peer_store_set(struct peer *p, const char *key, const char *value);
Answer *peer_store_get(struct peer *p, const char *key, int64_t timeout_ms);

#endif
