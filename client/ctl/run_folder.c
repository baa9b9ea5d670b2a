/* client/ctl/run_folder.c - makes and removes the folder of a job.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/run_folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"

#define MAX_OPEN_FOLDERS 8

int run_folder_make(char ret_path[RUN_FOLDER_BYTES])
{
    const char *parents[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp" };
    for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
        char path[RUN_FOLDER_BYTES];
        const char *parent = parents[i];
        bool is_absolute = parent != NULL && parent[0] == '/';
        int n = is_absolute ? snprintf(path, sizeof path, "%s/meshd-run-XXXXXX", parent) : -1;
        if (n > 0 && (size_t)n < sizeof path && mkdtemp(path) != NULL) {
            (void)snprintf(ret_path, RUN_FOLDER_BYTES, "%s", path);
            return 0;
        }
    }
    return err_set(MESH_EIO, "no private folder can be made in $XDG_RUNTIME_DIR, $TMPDIR or /tmp: %s", strerror(errno));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    (void)remove(path);
    return 0;
}

void run_folder_remove(const char *path)
{
    if (path[0] != '\0') {
        (void)nftw(path, remove_one, MAX_OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    }
}
