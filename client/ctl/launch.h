/* client/ctl/launch.h - finds a program and starts copies of it as ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_LAUNCH_H
#define CTL_LAUNCH_H

#include <limits.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "ctl/options.h"

struct launch {
    char path[PATH_MAX];                /* of the program */
    char *const *argv;                  /* [0] as the user wrote it */
    const char *job, *address, *folder; /* what the ranks are told: MESH_JOB, MESH_ADDRESS, MESH_RUN_DIR */
    int n_ranks;
    bool is_tagged;                      /* lines of output begin with "[rank] ", as MESH_TAGGED tells mesh_perror() */
    int master_port;                     /* a free port, for programs that look at MASTER_PORT */
    const struct text_list *environment; /* K=V, on top of ours */
    struct rlimit files;                 /* the limit of open files that the ranks get */
};

struct rank_process {
    pid_t pid;     /* of the leader of its own process group */
    int output[2]; /* our ends of its standard output and standard error, non-blocking */
};

/* Looks name up as the shell does.  0, else EXIT_PROGRAM_NOT_FOUND or EXIT_CANNOT_EXECUTE with the sentence. */
int program_find(const char *name, char *ret_path, size_t cap);

/* Starts one rank; all signals must be blocked in the caller, the rank gets them unblocked.  It dies with the calling
 * thread.  0, else an exit code with the sentence. */
int launch_rank(const struct launch *l, int rank, struct rank_process *ret_process);

/* We need three descriptors for each rank: raises our own limit as far as is allowed; returns what it was, for the
 * ranks. */
struct rlimit launch_raise_limit(void);

bool launch_sets(const char *name, size_t len); /* a variable that every rank gets from us */

int free_port(void); /* a TCP port of this machine that nobody has now; 0: none found */

#endif
