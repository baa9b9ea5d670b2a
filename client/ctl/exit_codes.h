/* client/ctl/exit_codes.h - what meshctl's exit codes mean.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_EXIT_CODES_H
#define CTL_EXIT_CODES_H

/*   code  name               meaning */
#define EXIT_CODES(X)                                                                                                  \
    X(0, EXIT_OK, "done")                                                                                              \
    X(1, EXIT_FAILED, "it failed; the sentence on standard error says why")                                            \
    X(2, EXIT_USAGE, "the command line is wrong")                                                                      \
    X(3, EXIT_NOT_FOUND, "no such job, mesh or key")                                                                   \
    X(4, EXIT_NO_DAEMON, "meshd cannot be reached, or does not allow it")                                              \
    X(5, EXIT_TIMED_OUT, "no answer within the time given")                                                            \
    X(6, EXIT_UNHEALTHY, "ping: meshd does not answer as it should; diagnose: something is wrong with the job")        \
    X(124, EXIT_RUN_TIMEOUT, "run: the job took longer than --timeout")                                                \
    X(125, EXIT_LAUNCHER, "run: the launcher itself failed")                                                           \
    X(126, EXIT_CANNOT_EXECUTE, "run: the program is there but cannot be executed")                                    \
    X(127, EXIT_PROGRAM_NOT_FOUND, "run: the program was not found")                                                   \
    X(128, EXIT_SIGNAL, "run: plus N, the rank that is the cause ended by signal N")

enum exit_code {
#define X(code, name, meaning) name = code,
    EXIT_CODES(X)
#undef X
};

#endif
