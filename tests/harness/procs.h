/* tests/harness/procs.h - programs under test: started, watched, bounded in time and output, never left behind.
 *
 * Every function fails the test itself when the system does.  A program dies with the test that started it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HARNESS_PROCS_H
#define HARNESS_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_MAX_OUTPUT ((size_t)4 << 20)

struct capture {
    int fd;     /* -1: ended */
    char *text; /* always a string */
    size_t len, cap;
};

struct proc {
    pid_t pid;
    bool has_ended;
    int wait_status;
    struct capture out, err;
    int input_fd; /* -1: it reads nothing */
};

struct proc_options {
    const char *const *argv;        /* [0] a path, or a name for PATH; NULL-terminated */
    const char *const *environment; /* NULL, or NAME=VALUE to set and NAME to remove, NULL-terminated */
    const char *folder;             /* to start in; NULL: here */
    bool has_input;                 /* proc.input_fd is the other end of its standard input; else that is empty */
};

void proc_start(struct proc *p, const struct proc_options *o);

/* Reads its output until it has ended; false: it has not within the time. */
bool proc_wait(struct proc *p, int64_t timeout_ms);
/* Reads its output until there is `text` in what came on standard output or standard error; false: not within the time, or
 * it has ended without. */
bool proc_wait_text(struct proc *p, const char *text, int64_t timeout_ms);

void proc_signal(struct proc *p, int signal_number);
int proc_code(const struct proc *p); /* as the shell counts: exit code, or 128 + signal */
void proc_fini(struct proc *p);      /* kills what still runs */

/* Runs a program to its end; the test fails when that takes longer. */
void proc_run(struct proc *p, const struct proc_options *o, int64_t timeout_ms);

/* The program named by an environment variable that meson sets for the tests. */
const char *program_path(const char *variable);

char process_state(pid_t pid);  /* as in /proc: 'R', 'S', 'T' stopped, 'Z' zombie; 'X' there is none */
bool process_exists(pid_t pid); /* zombies do not count */

/* A folder of our own in $TMPDIR or /tmp, and its removal with all that is in it. */
void temp_folder_make(char *path, size_t cap);
void temp_folder_remove(const char *path);

/* A meshd of our own on a socket of its own. */
struct test_daemon {
    struct proc proc;
    char folder[96];
    char address[128]; /* "unix:..." */
};

void test_daemon_start(struct test_daemon *d); /* returns when it listens */
void test_daemon_stop(struct test_daemon *d);

int64_t now_ms(void);

#endif
