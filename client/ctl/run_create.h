/* client/ctl/run_create.h - the job of `meshctl run`, asked for at the meshd that is there, else at one of our own.
 *
 * The connection over which the job was asked for stays until run_create_end(): meshd keeps a job as long as its ranks or the
 * one who asked for it are there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_RUN_CREATE_H
#define CTL_RUN_CREATE_H

#include "ctl/client.h"
#include "ctl/private_daemon.h"

struct run_create_options {
    const struct ctl *ctl;
    const char *job; /* NULL: meshd picks a name */
    int n_ranks;
    bool no_autostart;
    const char *folder; /* for a meshd of our own */
};

struct run_create {
    struct run_create_options options;
    struct loop *loop;
    struct client client; /* of the meshd that has the job */
    struct private_daemon daemon;
    struct call *call;
    char job[256];
    Mesh__V1__CreateJob question;
    Mesh__V1__ClientMessage message;
    void (*done)(int code, void *arg);   /* EXIT_OK: the job is there; else an exit code, the sentence was said */
    void (*died)(int rank, void *arg);   /* later: meshd says that this rank died */
    void (*absent)(int rank, void *arg); /* later: meshd says that others could not join, because this rank had ended */
    void (*reported)(int rank, const char *sentence, void *arg); /* later: this rank told meshd of an error */
    void (*lost)(void *arg);                                     /* later: the connection to meshd ended by itself */
    void *arg;
};

/* loop, options, the callbacks and arg are filled in.  done() follows, once, perhaps before this returns. */
void run_create_start(struct run_create *c);

/* Tells meshd that the process of a rank has ended, so that nobody waits for it to join. */
void run_create_rank_ended(struct run_create *c, int rank, pid_t pid, int wait_status);

/* Tells meshd that the job is over, and how; the private daemon still runs.  At any time. */
void run_create_end(struct run_create *c, int code);

/* After the loop: ends the private daemon, if there is one. */
void run_create_fini(struct run_create *c);

#endif
