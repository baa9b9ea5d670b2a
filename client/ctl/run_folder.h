/* client/ctl/run_folder.h - a private folder for the time of one job: sockets of the ranks and of a meshd of our own.
 *
 * The ranks are told of it by MESH_RUN_DIR, so that nothing of a rank that was killed stays behind.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_RUN_FOLDER_H
#define CTL_RUN_FOLDER_H

#include "wire/dial.h"
#include "wire/private_folder.h"

#define RUN_SOCKET "meshd.sock" /* of a meshd of our own, in its folder */

/* In $XDG_RUNTIME_DIR, $TMPDIR or /tmp.  MESH_EIO: none can be made. */
int run_folder_make(struct private_folder *ret_folder);

/* The sockets of all private meshds of this user that live where one would be made now, at most cap; returns how
 * many. */
size_t run_folder_sockets(struct address *ret_addresses, size_t cap);

#endif
