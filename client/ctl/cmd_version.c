/* client/ctl/cmd_version.c - meshctl version.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "ctl/commands.h"
#include "ctl/exit_codes.h"

const struct command_options options_version;

int cmd_version(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    (void)ctl, (void)arguments, (void)options;
    (void)printf("meshctl %s\n", MESH_VERSION);
    return EXIT_OK;
}
