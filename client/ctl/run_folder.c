/* client/ctl/run_folder.c - where the folder of a job is made.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/run_folder.h"

#include <stdlib.h>

#include "base/util.h"

#define MAX_LEN 59 /* a socket in a folder of a rank in it must fit the 107 bytes of a socket's path */

int run_folder_make(struct private_folder *ret_folder)
{
    const struct folder_base bases[] = { { getenv("XDG_RUNTIME_DIR"), true },
                                         { getenv("TMPDIR"), true },
                                         { "/tmp", true } };
    return private_folder_make(ret_folder, "meshd-run", MAX_LEN, bases, ARRAY_SIZE(bases));
}
