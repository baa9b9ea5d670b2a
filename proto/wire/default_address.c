/* proto/wire/default_address.c - the three places where meshd may be, in order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/default_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

enum place { PLACE_SESSION, PLACE_SYSTEM, PLACE_TMP, N_PLACES };

/* The folder of the socket; false: this place does not exist for us, or its name is too long. */
static bool place_folder(enum place place, char *buf, size_t cap)
{
    int n = -1;
    const char *session = getenv("XDG_RUNTIME_DIR");
    if (place == PLACE_SESSION && session != NULL && session[0] == '/') {
        n = snprintf(buf, cap, "%s/meshd", session);
    } else if (place == PLACE_SYSTEM) {
        n = snprintf(buf, cap, "/run/meshd");
    } else if (place == PLACE_TMP) {
        n = snprintf(buf, cap, "/tmp/meshd-%lu", (unsigned long)geteuid());
    }
    return n > 0 && (size_t)n < cap;
}

static bool place_address(enum place place, struct address *ret_address)
{
    char folder[sizeof ret_address->path];
    if (!place_folder(place, folder, sizeof folder)) {
        return false;
    }
    struct address a = { .is_unix = true };
    int n = snprintf(a.path, sizeof a.path, "%s/meshd.sock", folder);
    if (n < 0 || (size_t)n >= sizeof a.path) {
        return false;
    }
    *ret_address = a;
    return true;
}

int default_address_to_listen(struct address *ret_address)
{
    enum place place = geteuid() == 0 ? PLACE_SYSTEM : PLACE_TMP;
    const char *session = getenv("XDG_RUNTIME_DIR");
    if (session != NULL && session[0] != '\0') {
        place = PLACE_SESSION;
    }
    if (!place_address(place, ret_address)) {
        return err_set(MESH_ERANGE,
                       "$XDG_RUNTIME_DIR is not an absolute path short enough for a socket (107 bytes with "
                       "/meshd/meshd.sock): name one with --socket");
    }
    return 0;
}

static bool is_ours_or_roots(const char *folder)
{
    struct stat st;
    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == 0);
}

bool default_address_find(struct address *ret_address)
{
    for (int place = 0; place < N_PLACES; place++) {
        char folder[sizeof ret_address->path];
        struct address a;
        struct stat st;
        if (place_address((enum place)place, &a) && place_folder((enum place)place, folder, sizeof folder) &&
            is_ours_or_roots(folder) && stat(a.path, &st) == 0 && S_ISSOCK(st.st_mode)) {
            *ret_address = a;
            return true;
        }
    }
    return false;
}
