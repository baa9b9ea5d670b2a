/* proto/wire/unix_bind.c - binding a unix socket's path without a moment in which it is open to others or half there.
 *
 * Happy path   Take the folder's lock, see that nothing is at the path, bind, listen, let the lock go.
 * Failures     A server answers at the path: MESH_EEXIST.  Nobody answers: the file is stale, remove it and go on.  It is
 *              not a socket: MESH_EEXIST, and we touch nothing.
 *
 * The lock (flock on the folder) keeps two servers that start at once from each taking the other's fresh socket, bound but
 * not listening yet, for a stale one.  If a stranger holds it for LOCK_MS we go on without: then only that race is open.
 *
 * The mode comes from fchmod() on the socket before bind(): on Linux bind() gives the file that mode less the umask.  So it
 * is 0600 from its first moment on, without changing the umask, which all threads of a process share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/unix_bind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

#define LOCK_MS 1000

static int fail(const char *path, const char *what)
{
    int status = errno == EACCES || errno == EPERM || errno == EROFS ? MESH_EAUTH : MESH_EIO;
    return err_set(status, "cannot %s unix:%s: %s", what, path, strerror(errno));
}

static struct sockaddr_un socket_address(const char *path)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    return a;
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* -1 when there is no lock to be had; closing it lets it go. */
static int lock_folder(const char *path)
{
    char folder[sizeof((struct sockaddr_un *)0)->sun_path] = ".";
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    if (len > 0) {
        snprintf(folder, sizeof folder, "%.*s", (int)len, path);
    }
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    int64_t deadline = deadline_in(LOCK_MS);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0 && deadline_left(deadline) > 0) {
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    }
    return fd;
}

/* 0: nothing is at the path any more. */
static int clear_path(const char *path)
{
    struct stat st;
    struct sockaddr_un a = socket_address(path);
    if (lstat(path, &st) < 0) {
        return errno == ENOENT ? 0 : fail(path, "listen on");
    }
    if (!S_ISSOCK(st.st_mode)) {
        return err_set(MESH_EEXIST, "cannot listen on unix:%s: the file is there and is not a socket", path);
    }
    int fd = new_socket();
    if (fd < 0) {
        return fail(path, "listen on");
    }
    int error = connect(fd, (const struct sockaddr *)&a, sizeof a) < 0 ? errno : 0;
    close(fd);
    if (error == ECONNREFUSED) {
        return unlink(path) == 0 || errno == ENOENT ? 0 : fail(path, "replace the stale");
    }
    if (error == 0 || error == EAGAIN) {
        return err_set(MESH_EEXIST, "cannot listen on unix:%s: a server already answers there", path);
    }
    errno = error;
    return error == ENOENT ? 0 : fail(path, "listen on");
}

static int bind_and_listen(const char *path, int backlog, int fd, struct unix_file *ret_file)
{
    struct stat st;
    struct sockaddr_un a = socket_address(path);
    if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&a, sizeof a) < 0) {
        return errno == EADDRINUSE ? err_set(MESH_EEXIST, "cannot listen on unix:%s: it was taken just now", path)
                                   : fail(path, "listen on");
    }
    if (listen(fd, backlog) < 0 || lstat(path, &st) < 0) {
        int r = fail(path, "listen on");
        unlink(path);
        return r;
    }
    *ret_file = (struct unix_file){ .device = st.st_dev, .inode = st.st_ino };
    return 0;
}

int unix_bind(const char *path, int backlog, int *ret_fd, struct unix_file *ret_file)
{
    int lock = lock_folder(path);
    int fd = -1;
    int r = clear_path(path);
    if (r < 0) {
        goto unlock;
    }
    fd = new_socket();
    if (fd < 0) {
        r = fail(path, "listen on");
        goto unlock;
    }
    r = bind_and_listen(path, backlog, fd, ret_file);
    if (r < 0) {
        close(fd);
        goto unlock;
    }
    *ret_fd = fd;

unlock:
    if (lock >= 0) {
        close(lock);
    }
    return r;
}

void unix_unbind(const char *path, const struct unix_file *file)
{
    struct stat st;
    if (lstat(path, &st) == 0 && st.st_dev == file->device && st.st_ino == file->inode) {
        unlink(path);
    }
}
