/* client/ctl/run_folder.c - where the folder of a job is made.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/run_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define MAX_LEN 59 /* a socket in a folder of a rank in it must fit the 107 bytes of a socket's path */

enum { N_BASES = 3, MAX_FOLDERS = 64 };

static void list_bases(struct folder_base bases[N_BASES])
{
    bases[0] = (struct folder_base){ getenv("XDG_RUNTIME_DIR"), true };
    bases[1] = (struct folder_base){ getenv("TMPDIR"), true };
    bases[2] = (struct folder_base){ "/tmp", true };
}

int run_folder_make(struct private_folder *ret_folder)
{
    struct folder_base bases[N_BASES];
    list_bases(bases);
    return private_folder_make(ret_folder, RUN_FOLDER_NAME, MAX_LEN, bases, N_BASES);
}

static bool is_socket(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Where run_folder_make() would make one. */
static const char *usable_base(void)
{
    struct folder_base bases[N_BASES];
    int i = 0;
    list_bases(bases);
    while (i < N_BASES - 1 && (bases[i].path == NULL || bases[i].path[0] != '/' || access(bases[i].path, W_OK) != 0)) {
        i++;
    }
    return bases[i].path;
}

size_t run_folder_sockets(struct address *ret_addresses, size_t cap)
{
    struct folder_path paths[MAX_FOLDERS];
    size_t n_paths = private_folder_held(usable_base(), RUN_FOLDER_NAME, paths, MAX_FOLDERS), n = 0;
    for (size_t k = 0; k < n_paths && n < cap; k++) {
        struct address a = { .is_unix = true };
        (void)snprintf(a.path, sizeof a.path, "%.80s/" RUN_SOCKET, paths[k].text);
        if (is_socket(a.path)) {
            ret_addresses[n++] = a;
        }
    }
    return n;
}
