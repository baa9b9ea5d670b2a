/* client/comm/join.h - beginning and ending a session on this thread, for mesh_init() and worlds of threads alike.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_JOIN_H
#define COMM_JOIN_H

#include "comm/comm.h"

/* Joins with s->control in place; comm, the outermost scope and this thread's current session follow.  On failure s is freed. */
int session_begin(struct mesh_session *s, const struct join_request *request, struct sim_net *net,
                  enum link_kind policy);
/* Did this thread begin the session? */
bool session_is_mine(struct mesh_session *s);
/* A further thread takes part, and ends that. */
int session_attach(struct mesh_session *s);
int session_detach(void);
/* Ends this thread's scopes, leaves the job (bounded) and frees the session. */
int session_end(struct mesh_session *s);

/* MESH_LINK=auto|tcp|unix; MESH_EINVAL says what else it is. */
int link_policy_from_environment(enum link_kind *ret_policy);

#endif
