/* client/ctl/private_daemon.h - a meshd of our own for the time of one job.
 *
 * It lives in a folder of mode 0700 that is made for it and removed with it.  It ends when we do, however we end: it reads
 * a pipe whose other end is ours.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_PRIVATE_DAEMON_H
#define CTL_PRIVATE_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#include "wire/dial.h"

struct private_daemon {
    pid_t pid;   /* 0: none */
    int life_fd; /* closing it ends the daemon */
    char folder[80];
    struct address address;
};

/* Starts it and waits until it listens.  0, or a status with the sentence; then nothing is left behind. */
int private_daemon_start(struct private_daemon *ret_daemon, bool shows_log);

/* Ends it, within 3 s, and removes its folder.  None running: does nothing. */
void private_daemon_stop(struct private_daemon *d);

#endif
