/* proto/wire/default_address.h - where meshd is when nobody named an address.
 *
 *   1  $XDG_RUNTIME_DIR/meshd/meshd.sock   a daemon of this user, in a login session
 *   2  /run/meshd/meshd.sock               the daemon of the system
 *   3  /tmp/meshd-UID/meshd.sock           a daemon of this user, without a login session
 *
 * meshd listens on 1 when the variable is set, else on 2 as root, else on 3.  Clients take the first one that exists.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_DEFAULT_ADDRESS_H
#define WIRE_DEFAULT_ADDRESS_H

#include <stdbool.h>

#include "wire/dial.h"

/* For meshd.  MESH_ERANGE when $XDG_RUNTIME_DIR is too long for a socket address. */
int default_address_to_listen(struct address *ret_address);

/* For clients: true with the first socket of the list that exists (in a folder that is root's or this user's own, so that
 * nobody can pose as meshd in /tmp); false: there is none. */
bool default_address_find(struct address *ret_address);

#endif
