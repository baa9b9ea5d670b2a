/* client/comm/verify.h - what to say when a frame is not of the call this rank is in.
 *
 * A receiver knows all 64 bytes of the header it must get (same group, generation, sequence number, call, plan, round and
 * length), so the check itself is one comparison; this explains a difference.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_VERIFY_H
#define COMM_VERIFY_H

#include "session/session.h"
#include "wire/frame.h"

struct verify_names {
    const struct mesh_session *session; /* knows the hosts */
    const char *group;                  /* "world" */
    int me, sender;                     /* world ranks */
};

/* Never 0: MESH_EPROTO, MESH_ESTALE or MESH_EMISMATCH with both calls in the sentence, and where the sender is. */
int verify_explain(const uint8_t theirs[FRAME_HEADER_BYTES], const struct frame_header *mine,
                   const struct verify_names *names);

#endif
