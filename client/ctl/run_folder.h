/* client/ctl/run_folder.h - a private folder for the time of one job: sockets of the ranks and of a meshd of our own.
 *
 * The ranks are told of it by MESH_RUN_DIR, so that nothing of a rank that was killed stays behind.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_RUN_FOLDER_H
#define CTL_RUN_FOLDER_H

#define RUN_FOLDER_BYTES 60 /* a socket in a folder of a rank in it must fit the 107 bytes of a socket's path */

/* Mode 0700, in $XDG_RUNTIME_DIR, $TMPDIR or /tmp.  MESH_EIO: none can be made. */
int run_folder_make(char ret_path[RUN_FOLDER_BYTES]);
void run_folder_remove(const char *path); /* with all that is in it; "" is fine */

#endif
