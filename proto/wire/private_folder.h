/* proto/wire/private_folder.h - a folder for sockets that only this user may enter, and that does not outlive its owner
 * for long.
 *
 * Its owner holds a lock on a file in it, which the kernel lets go of when the owner ends, in whatever way.  Whoever
 * makes the next one at the same place first removes those that nobody holds.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_PRIVATE_FOLDER_H
#define WIRE_PRIVATE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#define RUN_FOLDER_NAME "meshd-run" /* of a job that `meshctl run` serves with a meshd of its own */

struct private_folder {
    char path[88]; /* "": there is none; the name of a socket has room behind it */
    int lock;
};

#define PRIVATE_FOLDER_NONE ((struct private_folder){ .lock = -1 })

struct folder_base {
    const char *path; /* NULL, no absolute path, or one too long: passed over */
    bool is_shared;   /* folders of others, perhaps dead, lie there as well: they are looked for */
};

/* "BASE/NAME-XXXXXX", of at most max_len bytes, in the first of the bases that will have it.  MESH_EIO. */
int private_folder_make(struct private_folder *ret_folder, const char *name, size_t max_len,
                        const struct folder_base *bases, size_t n_bases);
void private_folder_remove(struct private_folder *f); /* with all that is in it */

/* Removes a folder NAME-XXXXXX of this user, with all that is in it, whose owner is gone: it has a lock, and nobody
 * holds it.  For who served that owner.  false: somebody holds it; any other folder is left alone. */
bool private_folder_remove_orphan(const char *path, const char *name);

/* The folders NAME-XXXXXX of this user in a base that somebody holds, at most cap; returns how many. */
struct folder_path {
    char text[88];
};
size_t private_folder_held(const char *base, const char *name, struct folder_path *ret_paths, size_t cap);

/* Removes the folders NAME-XXXXXX of this user that nobody has held for min_age_s. */
void private_folder_sweep(const char *base, const char *name, int min_age_s);

#endif
