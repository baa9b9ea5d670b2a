/* client/comm/look_around.c - what a call that has been blocked for a while does about streams it does not read now.
 *
 * Ranks in different calls may wait for each other in a circle, each with the frame that would tell it so unread in a stream
 * that its own plan does not look at.  So every LOOK_MS a blocked call looks at the headers that wait in the others: one of
 * an earlier call, or of the same number but another call, is a mismatch.  (One of a later number is a rank that is ahead.)
 * A stream that this rank needs and the other side has not opened yet is asked for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "comm/progress.h"
#include "comm/verify.h"

#define LOOK_MS 100

/* Is a header of this stream the next thing to be read, by a later round or call? */
static bool is_between_frames(const mesh_group *g, int peer)
{
    struct exec_wait wait;
    for (size_t i = 0; i < exec_n_waits(&g->exec); i++) {
        if (exec_wait_at(&g->exec, i, &wait) && wait.peer == peer && wait.want_read) {
            return false;
        }
    }
    return true;
}

/* True: what waits there is of another call, and all works have ended for it. */
static bool has_mismatch(mesh_group *g, int peer, struct link *link)
{
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header theirs, mine = g->exec.header;
    if (link_peek(link, bytes, sizeof bytes) < (int64_t)sizeof bytes) {
        return false;
    }
    bool is_ours =
        frame_decode(bytes, &theirs) == 0 && theirs.generation == mine.generation && theirs.group == mine.group;
    if (is_ours && (theirs.sequence > mine.sequence ||
                    (theirs.sequence == mine.sequence && theirs.fingerprint == mine.fingerprint))) {
        return false;
    }
    struct verify_names names = {
        .session = g->session, .group = g->name, .me = g->session->rank, .sender = g->world_ranks[peer]
    };
    g->exec.status = verify_explain(bytes, &mine, &names);
    report(g, REPORT_MISMATCH, peer);
    fail_all(g);
    return true;
}

static void ask_for_streams(mesh_group *g)
{
    struct exec_wait wait;
    for (size_t i = 0; i < exec_n_waits(&g->exec); i++) {
        if (exec_wait_at(&g->exec, i, &wait) && wait.link == NULL) {
            group_knock(g, wait.peer);
        }
    }
}

void look_around(mesh_group *g, int64_t now_ms)
{
    if (now_ms < g->next_look_ms) {
        return;
    }
    bool is_first = g->next_look_ms == 0; /* the clock starts when the call first finds nothing to do */
    g->next_look_ms = now_ms + LOOK_MS;
    if (is_first) {
        return;
    }
    ask_for_streams(g);
    for (int peer = 0; peer < g->size; peer++) {
        struct link *link = atomic_load_explicit(&g->links[peer], memory_order_acquire);
        if (peer != g->rank && link != NULL && is_between_frames(g, peer) && has_mismatch(g, peer, link)) {
            return;
        }
    }
}
