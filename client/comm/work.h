/* client/comm/work.h - one call in a group's queue.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_WORK_H
#define COMM_WORK_H

#include <stdatomic.h>

#include "comm/call.h"
#include "core/object.h"

struct kept_plan;

enum work_state { WORK_QUEUED, WORK_DONE };

struct mesh_work {
    struct object object; /* of a handle; unused in a synchronous call, whose work is on its stack */
    _Atomic int state;    /* enum work_state; after WORK_DONE is stored nobody but its owner touches it */
    mesh_group *group;    /* a reference */
    struct call call;
    struct frame_header header;
    struct kept_plan *plan;
    int64_t begun_ms, deadline_ms;
    bool is_message; /* the work of a struct message (p2p.h), of which call, header, plan, record and next are unused */
    uint64_t record; /* its number in the recorder; 0: none */
    bool is_recorded_running;
    mesh_error error;      /* when done: status 0 or why not */
    struct parcel *parcel; /* of a handle, coalesced.h: opened by who waits; NULL: none */
    struct mesh_work *next;
};

/* Puts the call into the group's queue. */
int work_start(struct mesh_work *w, mesh_group *g, const struct collective_call *call);
/* The status of the work; MESH_ETIMEDOUT, and ret_is_done false, when it goes on beyond the deadline.  ret_is_done may be NULL. */
int work_wait(struct mesh_work *w, int64_t deadline_ms, bool *ret_is_done);
bool work_is_done(const struct mesh_work *w);
int work_result(const struct mesh_work *w); /* of one that is done: its status, the error set */
int work_check_group(const mesh_group *g);  /* MESH_EINVAL, MESH_ENOTMEMBER */
void work_object_init(struct mesh_work *w); /* handle.c: the innermost scope owns it now */

#endif
