/* client/comm/join.c - beginning and ending a session on this thread.
 *
 *      control, comm (its listener) --> session_join() --> world group, accepting --> outermost scope --> ... --> leave, free
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/accept.h"
#include "core/scope.h"

#define LEAVE_TIMEOUT_MS 2000

int link_policy_from_environment(enum link_kind *ret_policy)
{
    const char *text = getenv("MESH_LINK");
    if (text == NULL || text[0] == 0 || strcmp(text, "auto") == 0) {
        *ret_policy = LINK_AUTO;
    } else if (strcmp(text, "tcp") == 0) {
        *ret_policy = LINK_TCP;
    } else if (strcmp(text, "unix") == 0) {
        *ret_policy = LINK_UNIX;
    } else {
        return err_set(MESH_EINVAL, "MESH_LINK is \"%.40s\": it may be auto, tcp or unix", text);
    }
    return 0;
}

/* A failure that only this rank sees stops the job: the others must not wait for a rank that gave up. */
static void tell_local_failure(const mesh_error *e)
{
    struct mesh_session *s = session_current();
    if (s == NULL) {
        return;
    }
    struct report report = { .kind = REPORT_ABORT, .status = MESH_EABORTED, .culprit = -1, .sentence = e->message };
    s->control->ops->report(s->control, &report, NULL);
    mesh_error why = *e;
    why.status = MESH_EABORTED;
    why.rank = s->rank;
    session_abort(s, &why);
}

static int join(struct mesh_session *s, const struct join_request *request, struct sim_net *net, enum link_kind policy)
{
    struct join_request q = *request;
    int r = comm_new(s, net, policy);
    if (r < 0) {
        return r;
    }
    const struct comm *c = comm_of(s);
    static const char *const none[] = { NULL };
    q.addresses = c->accepting != NULL ? accepting_addresses(c->accepting) : none;
    r = session_join(s, &q);
    return r < 0 ? r : comm_start(s);
}

int session_begin(struct mesh_session *s, const struct join_request *request, struct sim_net *net,
                  enum link_kind policy)
{
    int r = join(s, request, net, policy);
    r = r < 0 ? r : scope_open_outermost();
    if (r < 0) {
        mesh_error why = *err_last();
        session_free(s);
        return err_restore(&why);
    }
    comm_of(s)->joined_by = pthread_self();
    session_set_current(s);
    scope_set_local_failure_hook(tell_local_failure);
    return 0;
}

bool session_is_mine(struct mesh_session *s)
{
    return pthread_equal(comm_of(s)->joined_by, pthread_self()) != 0;
}

int session_attach(struct mesh_session *s)
{
    int r = scope_open_outermost();
    if (r == 0) {
        session_set_current(s);
        scope_set_local_failure_hook(tell_local_failure);
    }
    return r;
}

int session_detach(void)
{
    int r = scope_close_outermost();
    scope_set_local_failure_hook(NULL);
    session_set_current(NULL);
    return r;
}

int session_end(struct mesh_session *s)
{
    mesh_error why = { .status = MESH_OK };
    int r = scope_close_outermost();
    if (r < 0) {
        why = *err_last();
    }
    scope_set_local_failure_hook(NULL);
    int left = s->control->ops->leave(s->control, LEAVE_TIMEOUT_MS);
    if (r == 0 && left < 0 && left != MESH_EDAEMON) { /* a meshd that is gone misses no goodbye */
        r = left;
        why = *err_last();
    }
    session_set_current(NULL);
    session_free(s);
    return r < 0 ? err_restore(&why) : 0;
}
