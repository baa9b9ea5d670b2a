/* client/ctl/commands.h - the table of commands and how one is found in it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_COMMANDS_H
#define CTL_COMMANDS_H

#include "ctl/ctl.h"

struct command_options {
    const struct option *rows;
    size_t n;
    const void *defaults; /* the struct the rows point into, copied for each run */
    size_t bytes;
};

#define COMMAND_MAX_OPTION_BYTES 8192

struct command {
    const char *name;     /* "mesh show" */
    const char *operands; /* "JOB" */
    int min_operands, max_operands;
    bool takes_program;
    const char *summary, *details;
    int (*run)(const struct ctl *ctl, const struct arguments *arguments, const void *options); /* an exit code */
    const struct command_options *options;
};

extern const struct command commands[];
extern const size_t n_commands;

/* The command that argv begins with, and how many words its name has.  MESH_EINVAL: none, with the nearest one
 * named. */
int command_find(char *const *argv, const struct command **ret_command, int *ret_words);

/* Reads the rest of the line by the command's tables, checks the operands, runs it; the exit code. */
int command_run(const struct command *c, struct ctl *ctl, char *const *argv);

/* The operand [JOB] of a question to meshd; "": it was left out, and meshd takes the only one. */
char *arguments_job(const struct arguments *a);

#define COMMAND(id, name, operands, min, max, program, summary, details)                                               \
    int cmd_##id(const struct ctl *ctl, const struct arguments *arguments, const void *options);                       \
    extern const struct command_options options_##id;
#include "ctl/commands.def"
#undef COMMAND

#endif
