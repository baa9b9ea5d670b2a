/* mesh/p2p.h - messages between two ranks of a group.
 *
 * A message goes to one rank and carries a tag, a number that the program gives it.  A receive asks for a source and a tag, or
 * for any; between two ranks, messages of one tag arrive in the order in which they were sent, and the receive that was begun
 * first gets the first.  Different tags may be received in any order: what stands before them is kept, up to 64 MiB and 4096
 * messages from each rank.  Sending to oneself is legal.
 *
 * A send returns when its bytes are on their way, not when they are received: small messages do not wait for the receiver,
 * large ones do, when the buffers of the system are full.  Messages have streams of their own: they neither hold up collectives of
 * the group nor are ordered with them.
 *
 * Errors of every call: MESH_EINVAL, MESH_ENOTMEMBER and MESH_EPOISONED before any traffic; MESH_EPEER when a rank of the group
 * died, or the one asked for left; MESH_ETIMEDOUT after the session's time limit; MESH_EABORTED when another rank failed, or the
 * group was freed.  After these the group is poisoned, as after a failed collective.  MESH_EMISMATCH, when message and
 * receive do not fit, ends only that receive: the message is dropped, its buffer is not written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_P2P_H
#define MESH_P2P_H

#include "group.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MESH_ANY_SOURCE (-1)
#define MESH_ANY_TAG    (-1)

typedef struct mesh_work mesh_work;

/* Sends buf to rank peer of g.
 *
 * Shapes      buf [count] of t; tag is 0 or more.
 * Cost        count elements. */
MESH_API int mesh_send(const void *buf, size_t count, mesh_dtype t, int peer, int tag, mesh_group *g) MESH_CHECKED;

/* Receives a message of just count elements from rank peer of g, or from any with MESH_ANY_SOURCE.
 *
 * Shapes      buf [count] of t; tag is 0 or more, or MESH_ANY_TAG.
 * Cost        none: the bytes go from the stream into buf.
 * Errors      MESH_EMISMATCH when the message has another count or dtype; mesh_recv_message() takes shorter ones. */
MESH_API int mesh_recv(void *buf, size_t count, mesh_dtype t, int peer, int tag, mesh_group *g) MESH_CHECKED;

typedef struct mesh_message {
    int peer;     /* rank of the group: MESH_ANY_SOURCE or one to ask for; afterwards the one it came from */
    int tag;      /* MESH_ANY_TAG or one to ask for; afterwards the one it came with */
    size_t count; /* elements that buf can hold; afterwards how many came */
} mesh_message;

/* Receives a message of up to m->count elements, and says in m what came.
 *
 * Shapes      buf [m->count] of t.
 * Errors      MESH_EMISMATCH when the message is longer or of another dtype; m then says what it was. */
MESH_API int mesh_recv_message(void *buf, mesh_dtype t, mesh_message *m, mesh_group *g) MESH_CHECKED;

/* Begins mesh_send().
 *
 * Ownership   buf is lent until the wait; the innermost scope owns the handle, as with collectives.
 * Errors      NULL. */
MESH_API mesh_work *mesh_send_async(const void *buf, size_t count, mesh_dtype t, int peer, int tag, mesh_group *g);

/* Begins mesh_recv(); as mesh_send_async(). */
MESH_API mesh_work *mesh_recv_async(void *buf, size_t count, mesh_dtype t, int peer, int tag, mesh_group *g);

/* Begins mesh_recv_message(); as mesh_send_async().  m is lent as well, and is written by the time the wait returns. */
MESH_API mesh_work *mesh_recv_message_async(void *buf, mesh_dtype t, mesh_message *m, mesh_group *g);

typedef enum mesh_direction { MESH_SEND = 1, MESH_RECV } mesh_direction;

typedef struct mesh_transfer {
    mesh_direction direction;
    void *buf; /* of a MESH_SEND it is only read */
    size_t count;
    mesh_dtype dtype;
    int peer, tag;
} mesh_transfer;

/* Sends and receives all of these at once and waits for all of them; in which order they stand does not matter.
 *
 * Receives are as mesh_recv_message(): peer, tag and count of theirs say afterwards what came.
 *
 * Shapes      transfers [n].
 * Errors      the first one of them; all have ended then. */
MESH_API int mesh_batch_send_recv(mesh_transfer *transfers, int n, mesh_group *g) MESH_CHECKED;

#ifdef __cplusplus
}
#endif

#endif
