/* proto/wire/private_folder.c - makes, locks, removes private folders, and those whose owners are gone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/private_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

#define LOCK_NAME        "lock"
#define PATH_BYTES       160
#define MAX_OPEN_FOLDERS 8
#define MAX_ENTRIES      8192 /* looked at in one sweep */
#define MAX_REMOVED      64
#define MIN_AGE_S        60 /* a younger one may not be locked yet */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    (void)remove(path);
    return 0;
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, MAX_OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Like those that mkdtemp() made for this user. */
static bool is_ours(const char *path, struct stat *ret_st)
{
    return lstat(path, ret_st) == 0 && S_ISDIR(ret_st->st_mode) && ret_st->st_uid == geteuid() &&
           (ret_st->st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

static int open_lock(const char *path, int flags)
{
    char file[PATH_BYTES + sizeof LOCK_NAME];
    (void)snprintf(file, sizeof file, "%.*s/" LOCK_NAME, PATH_BYTES - 2, path);
    return open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
}

static int lock_or_close(int fd, int how)
{
    if (fd >= 0 && flock(fd, how) < 0) {
        int error = errno;
        (void)close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* The lock of that folder, if nobody else has it; -1: somebody has (EWOULDBLOCK), or it cannot be told. */
static int take_lock(const char *path)
{
    return lock_or_close(open_lock(path, 0), LOCK_EX | LOCK_NB);
}

/* Of a new folder.  Who looks whether it is held has it for a moment, which is waited for. */
static int make_lock(const char *path)
{
    return lock_or_close(open_lock(path, O_CREAT | O_EXCL), LOCK_EX);
}

/* True: it was. */
static bool remove_if_left(const char *path, int min_age_s)
{
    struct stat st;
    if (!is_ours(path, &st) || st.st_mtime > time(NULL) - min_age_s) {
        return false;
    }
    int lock = take_lock(path);
    bool is_left = lock >= 0 || errno == ENOENT; /* without a lock its owner ended before it had made one */
    if (is_left) {
        remove_tree(path);
    }
    if (lock >= 0) {
        (void)close(lock);
    }
    return is_left;
}

/* NAME-XXXXXX? */
static bool is_named(const char *entry, const char *name)
{
    size_t len = strlen(name);
    return strncmp(entry, name, len) == 0 && entry[len] == '-' && strlen(entry) == len + strlen("-XXXXXX");
}

bool private_folder_remove_orphan(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    struct stat st;
    if (!is_named(slash != NULL ? slash + 1 : path, name) || !is_ours(path, &st)) {
        return true;
    }
    int lock = take_lock(path);
    if (lock < 0) {
        return errno != EWOULDBLOCK;
    }
    remove_tree(path);
    (void)close(lock);
    return true;
}

/* The next one of that name in the folder; false: there is none, or enough was looked at. */
static bool next_of(DIR *dir, const char *base, const char *name, int *inout_left, char path[PATH_BYTES])
{
    const struct dirent *entry;
    while (dir != NULL && (*inout_left)-- > 0 && (entry = readdir(dir)) != NULL) {
        if (is_named(entry->d_name, name) && snprintf(path, PATH_BYTES, "%s/%s", base, entry->d_name) < PATH_BYTES) {
            return true;
        }
    }
    return false;
}

void private_folder_sweep(const char *base, const char *name, int min_age_s)
{
    DIR *dir = opendir(base);
    char path[PATH_BYTES];
    int n_left = MAX_ENTRIES, n_removed = 0;
    while (n_removed < MAX_REMOVED && next_of(dir, base, name, &n_left, path)) {
        n_removed += remove_if_left(path, min_age_s);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static bool is_held(const char *path)
{
    struct stat st;
    if (!is_ours(path, &st)) {
        return false;
    }
    int lock = take_lock(path);
    if (lock < 0) {
        return errno == EWOULDBLOCK;
    }
    (void)close(lock);
    return false;
}

size_t private_folder_held(const char *base, const char *name, struct folder_path *ret_paths, size_t cap)
{
    DIR *dir = opendir(base);
    char path[PATH_BYTES];
    int n_left = MAX_ENTRIES;
    size_t n = 0;
    while (n < cap && next_of(dir, base, name, &n_left, path)) {
        if (strlen(path) < sizeof ret_paths->text && is_held(path)) {
            (void)snprintf(ret_paths[n++].text, sizeof ret_paths->text, "%.87s", path);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

static bool make_in(const struct folder_base *base, const char *name, size_t max_len, struct private_folder *f)
{
    if (base->path == NULL || base->path[0] != '/') {
        return false;
    }
    int n = snprintf(f->path, sizeof f->path, "%s/%s-XXXXXX", base->path, name);
    if (n < 0 || (size_t)n >= sizeof f->path || (size_t)n > max_len) {
        errno = ENAMETOOLONG;
        return false;
    }
    return mkdtemp(f->path) != NULL;
}

int private_folder_make(struct private_folder *ret_folder, const char *name, size_t max_len,
                        const struct folder_base *bases, size_t n_bases)
{
    struct private_folder f = PRIVATE_FOLDER_NONE;
    for (size_t i = 0; i < n_bases; i++) {
        if (!make_in(&bases[i], name, max_len, &f)) {
            continue;
        }
        if (bases[i].is_shared) {
            private_folder_sweep(bases[i].path, name, MIN_AGE_S);
        }
        f.lock = make_lock(f.path);
        if (f.lock >= 0) {
            *ret_folder = f;
            return 0;
        }
        int error = errno;
        (void)rmdir(f.path);
        errno = error;
    }
    return err_set_local(MESH_EIO, "no private folder can be made in $XDG_RUNTIME_DIR, $TMPDIR or /tmp: %s",
                         strerror(errno));
}

void private_folder_remove(struct private_folder *f)
{
    if (f->path[0] != '\0') {
        remove_tree(f->path);
        (void)close(f->lock);
    }
    *f = PRIVATE_FOLDER_NONE;
}
