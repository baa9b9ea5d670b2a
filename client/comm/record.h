/* client/comm/record.h - writes this rank's calls into its recorder (proto/base/recorder.h), from any thread.
 *
 * NULL stands for "no recorder" in every function.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_RECORD_H
#define COMM_RECORD_H

#include "base/recorder.h"

struct recorder;

struct recorder_owner {
    const char *path; /* "": memory of this process alone */
    int rank, world_size;
    uint32_t generation;
};

/* NULL: it could not be had, a warning says why; the job goes on without. */
struct recorder *recorder_new(const struct recorder_owner *owner);
struct recorder *recorder_free(struct recorder *r); /* the file stays for meshd; returns NULL */

/* The place of a group, or -1 when none is free: its calls are recorded all the same. */
int recorder_add_group(struct recorder *r, uint64_t id, const char *name, int size, int rank);
void recorder_remove_group(struct recorder *r, int place);

struct record {
    uint64_t group, sequence;
    int place; /* of the group */
    struct call_words words;
    int64_t queued_ns;
    bool is_running; /* it begins at once */
};

/* Returns the number of the call, for those below; 0: it is not recorded. */
uint64_t record_call(struct recorder *r, const struct record *c);
void record_running(struct recorder *r, uint64_t number, int64_t now_ns);
/* It sleeps, waiting for these world ranks (of which the first RECORDER_MAX_WAITED are kept). */
void record_waiting(struct recorder *r, uint64_t number, const uint32_t *ranks, size_t n);
void record_over(struct recorder *r, uint64_t number, int place, int status);

#endif
