/* client/ctl/say.c - sentences on standard error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/say.h"

#include <stdarg.h>
#include <stdio.h>

#include <mesh/base.h>

static const char *command_name;

void say_set_command(const char *name)
{
    command_name = name;
}

static void say_line(const char *format, va_list args, const char *tail)
{
    char line[1024];
    (void)vsnprintf(line, sizeof line, format, args);
    (void)fflush(stdout);
    (void)fprintf(stderr, "meshctl%s%s: %s%s\n", command_name != NULL ? " " : "",
                  command_name != NULL ? command_name : "", line, tail);
}

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_line(format, args, "");
    va_end(args);
}

int say_usage(const char *format, ...)
{
    char tail[96];
    va_list args;
    (void)snprintf(tail, sizeof tail, " (see 'meshctl help%s%s')", command_name != NULL ? " " : "",
                   command_name != NULL ? command_name : "");
    va_start(args, format);
    say_line(format, args, tail);
    va_end(args);
    return EXIT_USAGE;
}

int exit_code_of(int status)
{
    static const struct {
        int status, code;
    } rows[] = {
        { MESH_OK, EXIT_OK },           { MESH_ENOTFOUND, EXIT_NOT_FOUND }, { MESH_EDAEMON, EXIT_NO_DAEMON },
        { MESH_EAUTH, EXIT_NO_DAEMON }, { MESH_ETIMEDOUT, EXIT_TIMED_OUT }, { MESH_EINVAL, EXIT_USAGE },
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].status == status) {
            return rows[i].code;
        }
    }
    return EXIT_FAILED;
}

int say_failure(int status)
{
    say("%s", mesh_last_error()->message);
    return exit_code_of(status);
}
