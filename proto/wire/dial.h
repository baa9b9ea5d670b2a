/* proto/wire/dial.h - resolve an address and connect to it within a deadline.
 *
 * Addresses: "unix:/run/meshd/meshd.sock", "tcp:host:port", "tcp:[::1]:port"; a bare path with a '/' is a unix socket.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_DIAL_H
#define WIRE_DIAL_H

#include "wire/conn.h"

struct dial;

struct address {
    bool is_unix;
    char path[108]; /* unix */
    char host[256]; /* tcp */
    int port;
};

int address_parse(const char *text, struct address *ret_address); /* MESH_EINVAL says what is wrong with it */
void address_format(const struct address *a, char *buf, size_t cap);

/* Exactly once, never before dial_start() returned: a conn (taken by the callee, which calls conn_set_events() or
 * conn_close() before it returns), or NULL with status and sentence: MESH_EPEER refused, MESH_ENOTFOUND no such socket or
 * host, MESH_EAUTH not allowed, MESH_ETIMEDOUT the deadline, MESH_EABORTED cancelled. */
typedef void (*dial_fn)(struct conn *conn, int status, const char *sentence, void *arg);

/* keep_trying: a refusal or a missing socket is retried with growing pauses until the deadline; else it fails at once.
 * NULL: error set, fn is never called. */
struct dial *dial_start(struct loop *l, const struct address *a, int64_t timeout_ms, bool keep_trying, dial_fn fn,
                        void *arg);
void dial_cancel(struct dial *d); /* before fn was called; fn follows with MESH_EABORTED */

#endif
