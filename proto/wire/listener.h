/* proto/wire/listener.h - accept control connections on a unix or tcp address.
 *
 * A unix socket is bound under umask 077; a stale socket file (nobody answers on it) is replaced, a live one is an error.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_LISTENER_H
#define WIRE_LISTENER_H

#include "wire/dial.h"

struct listener;

typedef void (*listener_fn)(struct conn *conn,
                            void *arg); /* takes conn; must call conn_set_events() before it returns */

struct listener *listener_new(struct loop *l, const struct address *a, listener_fn fn, void *arg); /* NULL: error set */
struct listener *listener_free(struct listener *l); /* removes the socket file; returns NULL */
void listener_address(const struct listener *l, struct address *ret_address); /* with the port the kernel picked */

#endif
