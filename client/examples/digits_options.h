/* client/examples/digits_options.h - the command line of digits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_DIGITS_OPTIONS_H
#define EXAMPLES_DIGITS_OPTIONS_H

struct digits_options {
    int dp, tp; /* 0: not given */
    int epochs;
    char data[4096];
    char mistake[256]; /* what is wrong with the command line */
};

/* -1: go on; else the exit code: 0 after --help, 2 for a mistake, which nobody has been told yet. */
int digits_parse(int argc, char **argv, struct digits_options *ret_options);

#endif
