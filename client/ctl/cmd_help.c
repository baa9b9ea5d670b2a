/* client/ctl/cmd_help.c - meshctl help [COMMAND].
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/base.h>

#include "ctl/help.h"
#include "ctl/say.h"

struct help_options {
    const char *man;
};

static const struct option rows[] = {
    { "man", 0, OPTION_TEXT, offsetof(struct help_options, man), "FILE", 0, 0,
      "print this man page source with the commands, options and exit codes filled in" },
};
static const struct help_options defaults;

const struct command_options options_help = { rows, 1, &defaults, sizeof defaults };

int cmd_help(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    const struct help_options *o = options;
    (void)ctl;
    if (o->man != NULL) {
        return help_print_man(o->man) == 0 ? EXIT_OK : say_failure(mesh_last_error()->status);
    }
    if (arguments->n_operands == 0) {
        return help_print_all();
    }
    char *words[3] = { (char *)arguments->operand[0], (char *)arguments->operand[1], NULL };
    const struct command *c = NULL;
    int n_words = 0;
    if (command_find(words, &c, &n_words) != 0) {
        return say_usage("%s", mesh_last_error()->message);
    }
    return help_print_command(c);
}
