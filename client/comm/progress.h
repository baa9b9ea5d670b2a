/* client/comm/progress.h - moving the works of a group, by a waiting caller or by the control thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_PROGRESS_H
#define COMM_PROGRESS_H

#include "comm/group_state.h"

enum pass { PASS_PROGRESSED, PASS_BLOCKED, PASS_IDLE };

/* The owner only: one pass over the work at the head. */
enum pass progress_pass(mesh_group *g);
/* The owner only, after passes that were blocked: deadlines, peers that are gone. */
void progress_look_at_clock(mesh_group *g);

/* The owner only, before it sleeps: whom the call at the head waits for goes into the recorder. */
void progress_record_waits(mesh_group *g);

/* The owner only: the work at the head is over, with `error` or (NULL) well. */
void progress_finish(mesh_group *g, const mesh_error *error);

/* Nobody waits for the works in the queue: the control thread moves them.  Any thread; nothing when it does already. */
void control_request(mesh_group *g);
/* The group is closed: the control thread, if it has it, lets go of it now. */
void control_nudge(mesh_group *g);

/* failure.c: what ends works before their time. */
/* May a new call begin?  0 or the status.  header: of a collective, for the sentence; NULL of a message. */
int failure_of_start(mesh_group *g, const struct frame_header *header);
void group_poison(mesh_group *g, const mesh_error *why); /* the first reason stands; any thread */
void fail_all(mesh_group *g); /* every work ends with this thread's last error, which poisons the group */
void fail_timed_out(mesh_group *g);
/* The call at the head: "barrier (seq 3 of group world)"; returns buf. */
const char *describe_head(const mesh_group *g, char *buf, size_t cap);
/* Whom it waits for, "rank 2 (host, pid 7)" or "ranks 1, 2"; returns the first of them as a group rank, -1: nobody. */
int name_waited(const mesh_group *g, char *buf, size_t cap);

/* late.c: a line in the log, once per call, about those who keep it waiting. */
void tell_late(mesh_group *g, int64_t now_ms);
void fail_lost(mesh_group *g);
void note_lost(mesh_group *g);                   /* exec_step() said EXEC_LOST */
void look_around(mesh_group *g, int64_t now_ms); /* look_around.c: every LOOK_MS */
bool look_at_news(mesh_group *g);                /* true: there was news, and it ended the works */
void report(mesh_group *g, enum report_kind kind, int culprit);

#endif
