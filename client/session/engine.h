/* client/session/engine.h - one connection to meshd: requests with answers, messages without, notices.
 *
 * Callers block on their own threads; everything else happens on the session's loop.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SESSION_ENGINE_H
#define SESSION_ENGINE_H

#include "session/session.h"
#include "wire/codec.h"

struct engine;

struct engine_request {
    Mesh__V1__ClientMessage *message; /* its request number is filled in */
    const char *what;                 /* "store get", for sentences */
    int64_t wait_ms;                  /* how long meshd itself may wait before it answers; 0: it answers at once */
    int64_t limit_ms;                 /* how long meshd may take to answer, on top of that; 0: as long as is usual */
    bool even_if_aborted;             /* else an abort of the session ends the wait */
};

typedef void (*engine_notice_fn)(const Mesh__V1__Notice *notice, void *arg); /* on the loop's thread */

/* Connects and exchanges hellos.  NULL: MESH_EDAEMON (nobody there; what to do), MESH_EPROTO, MESH_EAUTH,
 * MESH_EINVAL. */
struct engine *engine_new(struct mesh_session *s, const char *address, engine_notice_fn fn, void *arg);
void engine_free(struct engine *e); /* sends what is on its way first; NULL is fine */

/* Waits for the answer, which the caller frees with codec_free_daemon(): its status may be that of a refusal.  Else
 * MESH_EDAEMON (the connection is lost), MESH_EABORTED, MESH_ETIMEDOUT (no answer), MESH_ENOMEM, MESH_ETOOLARGE. */
int engine_call(struct engine *e, const struct engine_request *request, Mesh__V1__DaemonMessage **ret_answer);
/* Wants no answer; returns when the message was handed to the system (on the loop's thread: at once), so that a process
 * which ends now has sent it.  What goes wrong is logged. */
void engine_send(struct engine *e, Mesh__V1__ClientMessage *message);

bool engine_may_wait(const struct engine *e); /* not on the loop's thread, from which the answer comes */
const char *engine_address(const struct engine *e);

#endif
