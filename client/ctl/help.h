/* client/ctl/help.h - help texts made from the table of commands.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_HELP_H
#define CTL_HELP_H

#include "ctl/commands.h"

int help_print_all(void); /* to standard output; EXIT_OK */
int help_print_command(const struct command *c);
/* The man page source in the file, with the line MESHCTL-TABLES replaced by the sections COMMANDS, OPTIONS, EXIT STATUS. */
int help_print_man(const char *path);

#endif
