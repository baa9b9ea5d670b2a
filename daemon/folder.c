/* daemon/folder.c - make the folder of the daemon's socket, or check the one that is there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "wire/private_folder.h"

#define FOLDER_BYTES 256
#define MAX_TRIES    100

static int check_private(const char *folder)
{
    struct stat st;
    if (lstat(folder, &st) < 0) {
        return err_set(MESH_EIO, "%.120s: %s", folder, strerror(errno));
    }
    if (!S_ISDIR(st.st_mode)) {
        return err_set(MESH_EAUTH, "%.120s is not a directory; remove it or name another socket with --socket", folder);
    }
    if (st.st_uid != geteuid()) {
        return err_set(MESH_EAUTH, "%.120s belongs to uid %u, not to uid %u; name another socket with --socket", folder,
                       st.st_uid, geteuid());
    }
    if ((st.st_mode & 077) != 0) {
        return err_set(MESH_EAUTH, "%.120s is open to others (mode %03o); chmod 700 it", folder, st.st_mode & 0777);
    }
    return 0;
}

/* false: the file is in the root or in the current folder. */
static bool folder_of(const char *file_path, char folder[FOLDER_BYTES])
{
    const char *slash = strrchr(file_path, '/');
    if (slash == NULL || slash == file_path) {
        return false;
    }
    snprintf(folder, FOLDER_BYTES, "%.*s", (int)(slash - file_path), file_path);
    return true;
}

void folder_remove_orphan(const char *socket_path)
{
    char folder[FOLDER_BYTES];
    const struct timespec pause = { .tv_nsec = 10000000 };
    bool is_done = !folder_of(socket_path, folder);
    for (int i = 0; i < MAX_TRIES && !is_done; i++) {
        is_done = private_folder_remove_orphan(folder, RUN_FOLDER_NAME);
        if (!is_done) {
            (void)nanosleep(&pause, NULL);
        }
    }
}

int folder_make(const char *file_path, bool must_be_private)
{
    char folder[FOLDER_BYTES];
    if (!folder_of(file_path, folder)) {
        return 0;
    }
    if (mkdir(folder, 0700) < 0 && errno != EEXIST) {
        return err_set(MESH_EIO,
                       "cannot make the directory %.120s of the socket: %s; name another socket with --socket", folder,
                       strerror(errno));
    }
    return must_be_private ? check_private(folder) : 0;
}
