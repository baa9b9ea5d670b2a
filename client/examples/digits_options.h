/* client/examples/digits_options.h - the command line of digits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_DIGITS_OPTIONS_H
#define EXAMPLES_DIGITS_OPTIONS_H

struct digits_options {
    int dp, tp; /* 0: not given */
    int epochs;
    char data[4096];
};

/* -1: go on; else the exit code, and everything has been said: 0 after --help, 2 for a mistake. */
int digits_parse(int argc, char **argv, struct digits_options *ret_options);

#endif
