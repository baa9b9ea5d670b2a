/* client/comm/verify.c - what to say when a frame is not of the call this rank is in.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "comm/call.h"
#include "comm/plan.h"

#define SENDER_BYTES 100

static const char *name_sender(const struct verify_names *names, char buf[SENDER_BYTES])
{
    return session_peer_name(names->session, names->sender, buf, SENDER_BYTES);
}

/* The same call by the same name, and still not the same frame. */
static int explain_hidden(const struct frame_header *theirs, const struct frame_header *mine, const char *call,
                          const struct verify_names *names)
{
    char sender[SENDER_BYTES];
    if (theirs->plan != mine->plan) {
        return err_set_about(MESH_EMISMATCH, names->sender,
                             "rank %d and %s run %s (seq %" PRIu64 " of group %s) by different plans, %s and %s: are "
                             "all ranks of one build?",
                             names->me, name_sender(names, sender), call, mine->sequence, names->group,
                             plan_name((enum plan_algorithm)mine->plan), plan_name((enum plan_algorithm)theirs->plan));
    }
    return err_set_about(MESH_EMISMATCH, names->sender,
                         "rank %d expects %" PRIu64 " bytes (round %u) in %s (seq %" PRIu64 " of group %s), %s "
                         "sends %" PRIu64 " bytes (round %u)",
                         names->me, mine->length, (unsigned)mine->step, call, mine->sequence, names->group,
                         name_sender(names, sender), theirs->length, (unsigned)theirs->step);
}

int verify_explain(const uint8_t theirs[FRAME_HEADER_BYTES], const struct frame_header *mine,
                   const struct verify_names *names)
{
    struct frame_header h;
    char my_call[100], their_call[100], sender[SENDER_BYTES];
    (void)name_sender(names, sender);
    int r = frame_decode(theirs, &h);
    if (r < 0) {
        return err_wrap(r, "from %s in group %s", sender, names->group);
    }
    if (h.generation != mine->generation) {
        return err_set_about(MESH_ESTALE, names->sender,
                             "%s sends a frame of generation %" PRIu32
                             " of the job, which is now at generation %" PRIu32,
                             sender, h.generation, mine->generation);
    }
    if (h.kind != FRAME_DATA || h.group != mine->group) {
        return err_set_about(MESH_EPROTO, names->sender, "%s sends a frame of another stream into group %s", sender,
                             names->group);
    }
    call_text(mine, my_call, sizeof my_call);
    call_text(&h, their_call, sizeof their_call);
    if (strcmp(my_call, their_call) == 0 && h.sequence == mine->sequence) {
        return explain_hidden(&h, mine, my_call, names);
    }
    return err_set_about(MESH_EMISMATCH, names->sender,
                         "rank %d calls %s (seq %" PRIu64 " of group %s), %s calls %s (seq %" PRIu64 ")", names->me,
                         my_call, mine->sequence, names->group, sender, their_call, h.sequence);
}
