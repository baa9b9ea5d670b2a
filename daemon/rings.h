/* daemon/rings.h - the files in which ranks keep their recorders: where they are, reading them, removing them.
 *
 * They lie beside the socket, which only its user may enter; jobs of another user (meshd of root) have a folder of their
 * own there.  A rank makes its file, which stays when the rank has died, until its job is over.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_RINGS_H
#define DAEMON_RINGS_H

#include "base/recorder.h"
#include "daemon/server.h"

/* Remembers the folder and removes what a meshd that was killed left behind; the socket is ours by now. */
void rings_begin(struct server *s);
void rings_end(struct server *s);

/* The file of this rank of the running generation; "": there can be none. */
void rings_path(const struct server *s, const struct job *job, uint32_t rank, char *buf, size_t cap);
/* Reads one, believing nothing: a status when there is none, or not one of ours. */
int rings_read(const struct server *s, const struct job *job, uint32_t rank, struct recorder_image *ret_image);
/* Of a job that is over.  number: job.number. */
void rings_remove(const struct server *s, uid_t uid, uint64_t number);

#endif
