/* client/ctl/say.h - what meshctl says on standard error, with the exit code that goes with it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_SAY_H
#define CTL_SAY_H

#include "base/util.h"
#include "ctl/exit_codes.h"

/* "meshctl: sentence", one line; while a command runs, "meshctl run: sentence". */
void say(const char *format, ...) PRINTF_LIKE(1, 2);
void say_set_command(const char *name); /* borrowed; NULL: none */

/* Says the sentence and how to get help; EXIT_USAGE. */
int say_usage(const char *format, ...) PRINTF_LIKE(1, 2);

/* Says the last error's sentence; the exit code of its status. */
int say_failure(int status);
int exit_code_of(int status);

#endif
