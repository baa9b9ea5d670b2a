/* daemon/folder.h - the folder of the daemon's socket.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_FOLDER_H
#define DAEMON_FOLDER_H

#include <stdbool.h>

/* Makes the folder of this file with mode 0700 if it is not there.  must_be_private: a folder that is there and is
 * another user's, a link, or open to others is refused with MESH_EAUTH. */
int folder_make(const char *file_path, bool must_be_private);

/* Removes the folder of a socket that `meshctl run` made for this daemon (RUN_FOLDER_NAME), when that is gone: the end
 * of a process takes a moment, which is waited for. */
void folder_remove_orphan(const char *socket_path);

#endif
