/* client/ctl/main.c - meshctl: reads the global options, then hands over to the command.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <mesh/base.h>

#include "base/error.h"
#include "ctl/commands.h"
#include "ctl/help.h"
#include "ctl/say.h"

static int dispatch(char *const *argv)
{
    struct ctl ctl = CTL_DEFAULTS;
    const struct command *command = NULL;
    int n_words = 0;
    struct option_table global = ctl_options(&ctl);
    int n = options_parse_leading(&global, argv);
    if (n < 0) {
        return say_usage("%s", mesh_last_error()->message);
    }
    if (ctl.wants_version) {
        return cmd_version(&ctl, NULL, NULL);
    }
    if (argv[n] == NULL) {
        return ctl.wants_help ? help_print_all() : say_usage("no command given");
    }
    if (command_find(argv + n, &command, &n_words) != 0) {
        return say_usage("%s", mesh_last_error()->message);
    }
    return command_run(command, &ctl, argv + n + n_words);
}

int main(int argc, char **argv)
{
    int code = dispatch(argv + (argc > 0 ? 1 : 0));
    if (fflush(stdout) != 0 && code == EXIT_OK) {
        say("standard output cannot be written");
        code = EXIT_FAILED;
    }
    return code;
}
