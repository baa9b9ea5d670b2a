/* proto/wire/conn.h - one framed control connection: read, bounded write queue, closed exactly once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_CONN_H
#define WIRE_CONN_H

#include <stdint.h>
#include <sys/types.h>

#include "wire/frame.h"
#include "wire/loop.h"

struct conn;

/* The table is borrowed for the life of the conn (make it static const).  Both are called on the loop's thread. */
struct conn_events {
    /* payload [header->length] is borrowed until the callback returns. */
    void (*frame)(struct conn *c, const struct frame_header *header, const uint8_t *payload, void *arg);
    /* Exactly once, never from inside conn_* of the caller: 0 after conn_close(), MESH_EPEER when the other side ended,
     * MESH_EPROTO, MESH_ETOOLARGE, MESH_EIO with `sentence` otherwise.  The conn is freed when it returns. */
    void (*closed)(struct conn *c, int status, const char *sentence, void *arg);
};

/* How much may wait to be written before a peer that does not read is given up (MESH_ETOOLARGE). */
#define CONN_MAX_QUEUED_BYTES (16u << 20)

/* A connected stream socket (unix or tcp) becomes a conn, which takes it.  NULL: error set, fd still the caller's. */
struct conn *conn_open(struct loop *l, int fd);

/* Sends one control frame; the payload is copied.  After the connection ended: MESH_EPEER; too much waiting: MESH_ETOOLARGE,
 * and the connection ends (closed() follows); a payload over FRAME_MAX_CONTROL_BYTES: MESH_ETOOLARGE, nothing else. */
int conn_send(struct conn *c, const void *payload, size_t len);
/* Flushes what is queued for at most 1 s, then closes; closed() follows.  NULL and a second call are fine. */
void conn_close(struct conn *c);
/* Reading begins with the first call.  NULL events: nobody listens any more. */
void conn_set_events(struct conn *c, const struct conn_events *events, void *arg);
/* The next frame must arrive within this time from now, else the connection ends with MESH_ETIMEDOUT; 0: no limit
 * (default).  The frame that arrives lifts it. */
void conn_expect_frame_within(struct conn *c, int64_t timeout_ms);
int conn_peer_credentials(struct conn *c, uid_t *ret_uid, pid_t *ret_pid); /* unix connections only */

#endif
