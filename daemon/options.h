/* daemon/options.h - the options of meshd: flags over environment over file over defaults.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum option {
#define OPTION(id, name, kind, fallback, argument, help) OPTION_##id,
#include "daemon/options.def"
#undef OPTION
    N_OPTIONS
};

struct option_value {
    char text[256];
    char origin[160]; /* "default", "flag", "environment", "/etc/meshd/meshd.conf" */
};

struct options {
    struct option_value value[N_OPTIONS];
};

/* argv ends with NULL; environment is read with getenv().  MESH_EINVAL: a sentence that names the option, the file and
 * the line; an unknown name gets a suggestion. */
int options_load(struct options *o, char *const *argv);

const char *options_text(const struct options *o, enum option id);
int64_t options_number(const struct options *o, enum option id);
bool options_is_set(const struct options *o, enum option id); /* an action */

void options_print(const struct options *o, FILE *out);
void options_help(FILE *out);

#endif
