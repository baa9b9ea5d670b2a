/* client/session/meeting.h - barriers and agreements of a world inside this process, as pure bookkeeping.
 *
 *      enter ... enter        the last member comes: over, everyone gets 0
 *      enter ... enter        a descriptor differs from those posted before: over, MESH_EMISMATCH for all
 *      enter ... lose         a member died or left: over, MESH_EPEER for all inside
 *      enter ... time_out     one member's deadline passed: over, MESH_ETIMEDOUT for all inside, naming who is missing
 *
 * A meeting that is over is no longer found by its name, so the same name can be used again at once; it is freed when the
 * last one inside has left with the outcome.  An agreement that failed waits for the members who have not come yet, so that
 * all of them hear the same; its names are used once ("device_mesh/3").  Ranks that name different members meet at different
 * barriers; in agreements that is a disagreement like any other.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_MEETING_H
#define SESSION_MEETING_H

#include <mesh/base.h>

#include "session/descriptor.h"

enum meeting_kind { MEETING_BARRIER, MEETING_AGREEMENT };

struct meeting {
    struct meeting *next;
    enum meeting_kind kind;
    char *name;
    struct seat *seat; /* [n] */
    int n, n_taken;
    int n_inside; /* took a seat and have not left yet */
    bool is_over;
    bool is_kept; /* in meetings.failed */
    mesh_error outcome;
};

struct meetings {
    struct meeting *open;
    struct meeting *failed; /* agreements that some members have not asked about yet */
};

struct meeting_call {
    enum meeting_kind kind;
    const char *name;
    const int *ranks; /* [n] */
    int n;
    int self;
    const char *descriptor; /* of an agreement */
};

/* The agreement failed before this rank came: who gave up then may have left since, which is not what this rank must hear. */
bool meetings_have_failed(const struct meetings *all, const struct meeting_call *call);

/* Takes this rank's seat, in a new meeting if none is open; may end it (is_over).  MESH_ENOTMEMBER, MESH_ESTATE (it sits
 * there already), MESH_EINVAL (a rank twice), MESH_ENOMEM. */
int meeting_enter(struct meetings *all, const struct meeting_call *call, struct meeting **ret_meeting);
void meeting_time_out(struct meetings *all, struct meeting *m, int64_t timeout_ms);
void meeting_give_up(struct meetings *all, struct meeting *m, const mesh_error *why); /* e.g. this rank was aborted */
void meetings_lose(struct meetings *all, int rank, const char *sentence);             /* "rank 2 (...) died" */
int meeting_leave(struct meetings *all, struct meeting *m); /* after it is over: the outcome, with the error set */
void meetings_fini(struct meetings *all);

#endif
