/* client/ctl/commands.c - finds a command in the table, reads its options, runs it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/commands.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/util.h"
#include "ctl/help.h"
#include "ctl/say.h"

const struct command commands[] = {
#define COMMAND(id, name_, operands_, min, max, program, summary_, details_)                                           \
    { .name = (name_),                                                                                                 \
      .operands = (operands_),                                                                                         \
      .min_operands = (min),                                                                                           \
      .max_operands = (max),                                                                                           \
      .takes_program = (program),                                                                                      \
      .summary = (summary_),                                                                                           \
      .details = (details_),                                                                                           \
      .run = cmd_##id,                                                                                                 \
      .options = &options_##id },
#include "ctl/commands.def"
#undef COMMAND
};
const size_t n_commands = ARRAY_SIZE(commands);

/* How many words of argv spell this name; 0: it is another one. */
static int words_matching(const char *name, char *const *argv)
{
    int words = 0;
    for (const char *at = name;;) {
        size_t len = strcspn(at, " ");
        if (argv[words] == NULL || strlen(argv[words]) != len || memcmp(argv[words], at, len) != 0) {
            return 0;
        }
        words++;
        if (at[len] == '\0') {
            return words;
        }
        at += len + 1;
    }
}

/* "mesh" alone, or "mesh shwo": the verbs of that noun are what the user can choose from. */
static int unknown_verb(const char *noun, const char *verb)
{
    const char *known[8];
    char choices[128] = "";
    size_t n = 0;
    for (size_t i = 0; i < n_commands && n < ARRAY_SIZE(known); i++) {
        size_t len = strlen(noun);
        if (strncmp(commands[i].name, noun, len) == 0 && commands[i].name[len] == ' ') {
            size_t used = strlen(choices);
            (void)snprintf(choices + used, sizeof choices - used, "%s'%s'", n > 0 ? " or " : "", commands[i].name);
            known[n++] = commands[i].name + len + 1;
        }
    }
    if (n == 0) {
        return 0;
    }
    const char *near = verb != NULL ? suggest_nearest(verb, known, n) : NULL;
    if (near != NULL) {
        return err_set(MESH_EINVAL, "unknown command '%s %.40s'; did you mean '%s %s'?", noun, verb, noun, near);
    }
    return err_set(MESH_EINVAL, "'%s' needs a verb: %s", noun, choices);
}

static int unknown_command(char *const *argv)
{
    int r = unknown_verb(argv[0], argv[1]);
    if (r != 0) {
        return r;
    }
    char nouns[32][24];
    const char *known[32];
    size_t n = MIN(n_commands, ARRAY_SIZE(known));
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(nouns[i], sizeof nouns[i], "%.*s", (int)strcspn(commands[i].name, " "), commands[i].name);
        known[i] = nouns[i];
    }
    const char *near = suggest_nearest(argv[0], known, n);
    if (near != NULL) {
        return err_set(MESH_EINVAL, "unknown command '%.40s'; did you mean '%s'?", argv[0], near);
    }
    return err_set(MESH_EINVAL, "unknown command '%.40s'", argv[0]);
}

int command_find(char *const *argv, const struct command **ret_command, int *ret_words)
{
    for (size_t i = 0; i < n_commands; i++) {
        int words = words_matching(commands[i].name, argv);
        if (words > 0) {
            *ret_command = &commands[i];
            *ret_words = words;
            return 0;
        }
    }
    return unknown_command(argv);
}

/* "--" before an operand that begins with "-" is for commands that start no program. */
static int program_to_operands(struct arguments *a)
{
    for (; a->program != NULL && *a->program != NULL; a->program++) {
        if (a->n_operands == OPTIONS_MAX_OPERANDS) {
            return err_set(MESH_EINVAL, "'%.40s' is one word too many", *a->program);
        }
        a->operand[a->n_operands++] = *a->program;
    }
    a->program = NULL;
    return 0;
}

static int check_operands(const struct command *c, struct arguments *a)
{
    if (c->takes_program) {
        if (a->n_operands > 0) {
            return err_set(MESH_EINVAL, "'%.40s' stands before '--': the program and its arguments come after it",
                           a->operand[0]);
        }
        if (a->program == NULL || a->program[0] == NULL) {
            return err_set(MESH_EINVAL, "no program to run: it comes after '--'");
        }
        return 0;
    }
    int r = program_to_operands(a);
    if (r != 0) {
        return r;
    }
    if (a->n_operands < c->min_operands) {
        return err_set(MESH_EINVAL, "something is missing: meshctl %s %s", c->name, c->operands);
    }
    if (a->n_operands > c->max_operands) {
        return err_set(MESH_EINVAL, "'%.40s' is one word too many: meshctl %s %s", a->operand[c->max_operands], c->name,
                       c->operands);
    }
    return 0;
}

int command_run(const struct command *c, struct ctl *ctl, char *const *argv)
{
    alignas(max_align_t) char values[COMMAND_MAX_OPTION_BYTES];
    CHECK(c->options->bytes <= sizeof values);
    if (c->options->bytes > 0) {
        memcpy(values, c->options->defaults, c->options->bytes);
    }
    struct option_table tables[] = { { .rows = c->options->rows, .n = c->options->n, .values = values },
                                     ctl_options(ctl) };
    struct arguments arguments;
    say_set_command(c->name);
    int r = options_parse(tables, ARRAY_SIZE(tables), argv, &arguments);
    if (r == 0 && ctl->wants_help) {
        return help_print_command(c);
    }
    r = r == 0 ? check_operands(c, &arguments) : r;
    return r == 0 ? c->run(ctl, &arguments, values) : say_usage("%s", mesh_last_error()->message);
}

char *arguments_job(const struct arguments *a)
{
    return (char *)(a->n_operands > 0 ? a->operand[0] : "");
}
