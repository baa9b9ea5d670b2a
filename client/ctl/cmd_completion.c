/* client/ctl/cmd_completion.c - meshctl completion: a bash script made from the tables.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "ctl/commands.h"
#include "ctl/say.h"

const struct command_options options_completion;

static void print_options(const struct option *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)printf(" --%s", rows[i].name);
    }
}

static void print_script(void)
{
    struct ctl none;
    struct option_table global = ctl_options(&none);
    (void)printf("_meshctl() {\n"
                 "    local line=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\" word=\"${COMP_WORDS[COMP_CWORD]}\" words=\n"
                 "    case \" $line \" in\n"
                 "    *' -- '*) compopt -o default; return ;;\n");
    for (size_t i = 0; i < n_commands; i++) {
        (void)printf("    *' %s '*) words='", commands[i].name);
        print_options(commands[i].options->rows, commands[i].options->n);
        print_options(global.rows, global.n);
        (void)printf("' ;;\n");
    }
    for (size_t i = 0; i < n_commands; i++) {
        const char *space = strchr(commands[i].name, ' ');
        if (space != NULL) {
            (void)printf("    *' %.*s '*) words+=' %s' ;;&\n", (int)(space - commands[i].name), commands[i].name,
                         space + 1);
        }
    }
    (void)printf("    esac\n    if [ -z \"$words\" ]; then words='");
    for (size_t i = 0; i < n_commands; i++) {
        (void)printf(" %.*s", (int)strcspn(commands[i].name, " "), commands[i].name);
    }
    (void)printf("'; fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -F _meshctl meshctl\n");
}

int cmd_completion(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    (void)ctl, (void)options;
    if (strcmp(arguments->operand[0], "bash") != 0) {
        return say_usage("there is no completion for '%.40s', only for bash", arguments->operand[0]);
    }
    print_script();
    return EXIT_OK;
}
