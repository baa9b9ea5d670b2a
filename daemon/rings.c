/* daemon/rings.c - the files in which ranks keep their recorders.
 *
 *      SOCKET.PID-JOB.GENERATION.RANK.ring      beside the socket, or in rings-UID/ beside it
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/rings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"

#define SUFFIX    ".ring"
#define MAX_FILES (1 << 20) /* looked at when removing */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool has_suffix(const char *name)
{
    size_t n = strlen(name), k = strlen(SUFFIX);
    return n > k && strcmp(name + n - k, SUFFIX) == 0;
}

/* Removes the files of this folder that begin with prefix and end like ours. */
static void sweep(const char *folder, const char *prefix)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    const struct dirent *entry;
    for (int i = 0; i < MAX_FILES && (entry = readdir(dir)) != NULL; i++) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && has_suffix(entry->d_name)) {
            (void)unlinkat(fd, entry->d_name, 0);
        }
    }
    closedir(dir);
}

static bool is_own(uid_t uid)
{
    return uid == geteuid();
}

static void folder_of(const struct server *s, uid_t uid, char *buf, size_t cap)
{
    int n = is_own(uid) ? snprintf(buf, cap, "%s", s->rings_folder)
                        : snprintf(buf, cap, "%s/rings-%u", s->rings_folder, (unsigned)uid);
    if (s->rings_folder[0] == 0 || n < 0 || (size_t)n >= cap) {
        buf[0] = 0;
    }
}

static void sweep_all(struct server *s)
{
    char prefix[120], folder[sizeof s->rings_folder + 24];
    snprintf(prefix, sizeof prefix, "%s.", base_name(s->config.address.path));
    sweep(s->rings_folder, prefix);
    DIR *dir = opendir(s->rings_folder);
    const struct dirent *entry;
    for (int i = 0; dir != NULL && i < MAX_FILES && (entry = readdir(dir)) != NULL; i++) {
        if (strncmp(entry->d_name, "rings-", 6) == 0 && strlen(entry->d_name) < 20) {
            snprintf(folder, sizeof folder, "%s/%.19s", s->rings_folder, entry->d_name);
            sweep(folder, prefix);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
}

void rings_begin(struct server *s)
{
    char folder[sizeof s->config.address.path], whole[PATH_MAX];
    const char *path = s->config.address.path, *name = base_name(path);
    s->rings_folder[0] = 0;
    snprintf(folder, sizeof folder, "%.*s", name == path ? 1 : (int)(name - path), name == path ? "." : path);
    if (s->config.address.is_unix && name[0] != 0 && realpath(folder, whole) != NULL &&
        strlen(whole) < sizeof s->rings_folder) {
        snprintf(s->rings_folder, sizeof s->rings_folder, "%s", whole);
        sweep_all(s);
    }
}

void rings_end(struct server *s)
{
    if (s->rings_folder[0] != 0) {
        sweep_all(s);
    }
}

static void path_of(const struct server *s, const struct job *job, uint32_t rank, char *buf, size_t cap)
{
    char folder[sizeof s->rings_folder + 24];
    folder_of(s, job->uid, folder, sizeof folder);
    int n = snprintf(buf, cap, "%s/%s.%d-%" PRIu64 ".%u.%u" SUFFIX, folder, base_name(s->config.address.path),
                     (int)getpid(), job->number, job->rendezvous.running, rank);
    if (folder[0] == 0 || n < 0 || (size_t)n >= cap) {
        buf[0] = 0;
    }
}

/* The folder of another user's jobs belongs to that user. */
static bool has_folder(const struct server *s, uid_t uid)
{
    char folder[sizeof s->rings_folder + 24];
    folder_of(s, uid, folder, sizeof folder);
    if (is_own(uid) || folder[0] == 0) {
        return folder[0] != 0;
    }
    if (mkdir(folder, 0700) == 0) {
        return lchown(folder, uid, (gid_t)-1) == 0;
    }
    struct stat st;
    return errno == EEXIST && lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid;
}

void rings_path(const struct server *s, const struct job *job, uint32_t rank, char *buf, size_t cap)
{
    buf[0] = 0;
    if (has_folder(s, job->uid)) {
        path_of(s, job, rank, buf, cap);
    }
}

void rings_remove(const struct server *s, uid_t uid, uint64_t number)
{
    char folder[sizeof s->rings_folder + 24], prefix[160];
    folder_of(s, uid, folder, sizeof folder);
    snprintf(prefix, sizeof prefix, "%s.%d-%" PRIu64 ".", base_name(s->config.address.path), (int)getpid(), number);
    if (folder[0] != 0) {
        sweep(folder, prefix);
    }
}

static int open_ring(const char *path, uid_t uid)
{
    int fd = path[0] != 0 ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    struct stat st;
    if (fd < 0) {
        return err_set(MESH_ENOTFOUND, "there is no recorder: %s", path[0] != 0 ? strerror(errno) : "no place for it");
    }
    bool is_fine = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == uid;
    if (!is_fine) {
        close(fd);
        return err_set(MESH_EAUTH, "%.200s is no file of uid %u", path, (unsigned)uid);
    }
    return fd;
}

/* With pread(): a file that is cut short while we look gives fewer bytes, not a SIGBUS. */
static int look(int fd, uint8_t *bytes)
{
    size_t n = 0;
    while (n < RECORDER_FILE_BYTES) {
        ssize_t got = pread(fd, bytes + n, RECORDER_FILE_BYTES - n, (off_t)n);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return err_set(MESH_EPROTO, "the recorder has %zu bytes, not %d", n, RECORDER_FILE_BYTES);
        }
        n += (size_t)got;
    }
    return 0;
}

int rings_read(const struct server *s, const struct job *job, uint32_t rank, struct recorder_image *ret_image)
{
    char path[PATH_MAX];
    path_of(s, job, rank, path, sizeof path);
    int fd = open_ring(path, job->uid);
    if (fd < 0) {
        return fd;
    }
    uint8_t *bytes = mem_alloc((size_t)2 * RECORDER_FILE_BYTES);
    int r = bytes == NULL ? err_no_memory((size_t)2 * RECORDER_FILE_BYTES, "a recorder") : look(fd, bytes);
    r = r < 0 ? r : look(fd, bytes + RECORDER_FILE_BYTES);
    r = r < 0 ? r : recorder_read(bytes, bytes + RECORDER_FILE_BYTES, ret_image);
    if (r == 0 && (ret_image->rank != rank || ret_image->generation != job->rendezvous.running)) {
        r = err_set(MESH_EPROTO, "the recorder of rank %u is that of rank %u, generation %u", rank, ret_image->rank,
                    ret_image->generation);
    }
    mem_free(bytes);
    close(fd);
    return r;
}
