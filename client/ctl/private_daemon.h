/* client/ctl/private_daemon.h - a meshd of our own for the time of one job.
 *
 * It ends when we do, however we end: it reads a pipe whose other end is ours.  Of a meshctl that was killed it removes
 * the folder.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_PRIVATE_DAEMON_H
#define CTL_PRIVATE_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#include "wire/dial.h"

struct private_daemon {
    pid_t pid;   /* 0: none */
    int life_fd; /* its end, when we are killed, ends the daemon, which then removes the folder */
    struct address address;
};

/* Starts it on a socket in the folder, where its log goes as well, and waits until it listens.  0, or a status with the
 * sentence; then it does not run. */
int private_daemon_start(struct private_daemon *ret_daemon, const char *folder, bool shows_log);

/* Ends it, within 3 s.  None running: does nothing. */
void private_daemon_stop(struct private_daemon *d);

#endif
