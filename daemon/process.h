/* daemon/process.h - whether a process runs, is stopped, or is gone, as the system says.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

#include <sys/types.h>

#include "daemon/diagnose.h"

/* From /proc/PID/stat; PROCESS_UNKNOWN where that cannot be read, or belongs to another user. */
enum process_state process_look(pid_t pid, uid_t uid);

/* The state in the text of /proc/PID/stat. */
enum process_state process_state_of(const char *stat);

#endif
