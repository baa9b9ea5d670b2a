/* client/comm/monitored.c - the barrier that names who is late.
 *
 * Everybody tells group rank 0, which tells everybody when all have come.  So it knows at its deadline who is missing, and the
 * control plane carries its sentence to the others; they wait a little longer than it does, so that they hear it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "comm/collective.h"
#include "comm/group.h"

#define TELL_MS 1000

int mesh_monitored_barrier(mesh_group *g, int64_t timeout_ms)
{
    err_enter(__func__);
    if (timeout_ms < 0) {
        return err_set(MESH_EINVAL, "a time limit of %lld ms: it is above 0, or 0 for the session's",
                       (long long)timeout_ms);
    }
    int64_t limit_ms = timeout_ms > 0 || g == NULL ? timeout_ms : group_session(g)->timeout_ms;
    const struct collective_call call = { .kind = MESH_COMM_BARRIER,
                                          .is_monitored = true,
                                          .timeout_ms =
                                              g != NULL && group_rank(g) != 0 ? limit_ms + TELL_MS : limit_ms };
    return collective_run(g, &call);
}
