/* proto/wire/unix_bind.h - a listening unix socket on a path, over a stale one but never over a live one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_UNIX_BIND_H
#define WIRE_UNIX_BIND_H

#include <sys/types.h>

/* Which file we made, so that we do not remove somebody else's later. */
struct unix_file {
    dev_t device;
    ino_t inode;
};

/* The descriptor listens already; its file has mode 0600.  MESH_EEXIST when a server answers on it or it is no socket. */
int unix_bind(const char *path, int backlog, int *ret_fd, struct unix_file *ret_file);
void unix_unbind(const char *path, const struct unix_file *file);

#endif
