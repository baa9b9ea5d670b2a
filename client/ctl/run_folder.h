/* client/ctl/run_folder.h - a private folder for the time of one job: sockets of the ranks and of a meshd of our own.
 *
 * The ranks are told of it by MESH_RUN_DIR, so that nothing of a rank that was killed stays behind.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_RUN_FOLDER_H
#define CTL_RUN_FOLDER_H

#include "wire/private_folder.h"

/* In $XDG_RUNTIME_DIR, $TMPDIR or /tmp.  MESH_EIO: none can be made. */
int run_folder_make(struct private_folder *ret_folder);

#endif
