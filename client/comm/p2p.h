/* client/comm/p2p.h - messages between two ranks of a group: tagged, matched in order, over streams of their own.
 *
 *      sends of a lane  --> stream -->  header -->  first receive begun that fits (source, tag): straight into its buffer
 *                                           `-----> none fits, but one waits for another message of this rank: kept, a copy
 *                                           `-----> too much is kept already: it stays in the stream, which holds back the sender
 *
 * A lane is what passes between this rank and one peer.  A stream is read only while a receive waits that may get something
 * from it; so what nobody has asked for stays in the kernel's buffers, and TCP holds back who sends too much of it.
 * Invariant: no complete kept message fits a receive that waits.
 *
 * The streams belong to a group of their own with the same ranks (`streams`), which is made along with the group, so that a
 * peer can connect before this rank has sent or received anything.  `lock` guards all of it; whoever sleeps in poll() is the
 * *driver* and lets go of the lock meanwhile, the other waiters sleep on `changed`.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_P2P_H
#define COMM_P2P_H

#include <mesh/p2p.h>

#include "comm/group_state.h"

/* Kept of one peer: messages nobody has asked for that stand before one that somebody waits for. */
#define P2P_MAX_KEPT_BYTES ((size_t)64 << 20)
#define P2P_MAX_KEPT       4096

struct message { /* one send or receive from its begin to its end */
    struct mesh_work work;
    struct message *next;
    bool is_send, is_exact; /* exact: only a message of just `count` elements will do */
    int peer, tag;          /* as asked for: group rank or MESH_ANY_SOURCE, tag or MESH_ANY_TAG */
    mesh_dtype dtype;
    size_t count, bytes; /* of the buffer */
    uint8_t *buffer;
    size_t n_moved; /* header and payload */
    uint8_t header[FRAME_HEADER_BYTES];
    mesh_message *ret_got; /* NULL: nobody wants to know */
};

struct messages {
    struct message *head, *tail;
};

struct kept {
    struct kept *next;
    struct frame_header header;
    uint64_t arrival; /* of all lanes in order */
    uint8_t payload[];
};

struct lane {
    struct link *link; /* of the streams; NULL: not there yet */
    struct messages sends;
    uint64_t n_sent, n_received;

    /* The message that arrives now. */
    size_t n_header; /* bytes of it that are here */
    uint8_t bytes[FRAME_HEADER_BYTES];
    struct frame_header header;
    struct message *target; /* one of these two has it; neither, and is_settled: it is dropped */
    struct kept *keeping;
    bool is_settled; /* where the payload goes */
    size_t n_payload;

    struct kept *kept_head, *kept_tail;
    size_t kept_bytes, n_kept;
    int64_t lost_ms; /* since when the stream is over; 0: it is not */
};

struct p2p {
    mesh_group *group; /* whose part this is */
    mesh_group *streams;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_driver;
    bool is_over;             /* every message failed, nothing begins any more */
    struct messages receives; /* that wait for a message, in the order in which they were begun */
    size_t n_open;            /* messages that are not over */
    int64_t next_look_ms;
    uint64_t n_arrivals;
    uint8_t *dropped; /* where payload goes that nobody gets */

    /* The control thread's. */
    bool is_control_asked;
    struct loop *loop;
    struct loop_timer *ticker;
    struct loop_watch **watches; /* [size] */

    struct lane lanes[]; /* [size] */
};

struct p2p *p2p_new(mesh_group *g, mesh_group *streams); /* NULL: error set */
void p2p_close(struct p2p *p);                           /* the group is being freed: every message ends */
void p2p_free(struct p2p *p);                            /* no message is left; NULL is fine */

/* Like work_wait(). */
int p2p_wait(struct message *m, int64_t deadline_ms, bool *ret_is_done);
void p2p_push(struct p2p *p); /* moves what can be moved now */

/* With the lock. */
bool p2p_pass(struct p2p *p);                    /* true: something moved */
void p2p_look_at_clock(struct p2p *p);           /* deadlines, news, streams that ended */
void p2p_fail(struct p2p *p);                    /* every message ends with this thread's last error */
void p2p_over(struct p2p *p, struct message *m); /* this one is over, work.error says how */
bool p2p_wants_read(const struct p2p *p, int peer);
void p2p_deliver_kept(struct p2p *p, struct message *m); /* a receive that begins: what is kept may be for it */
bool p2p_fits(const struct message *m, int peer, uint32_t tag);
/* The receive that gets a message of this source and tag, no longer among those that wait; or NULL. */
struct message *p2p_take_waiting(struct p2p *p, int peer, uint32_t tag);
/* A copy to be filled; MESH_ETOOLARGE (no room) or MESH_ENOMEM, both without a sentence. */
int p2p_keep(struct p2p *p, int peer, const struct frame_header *h, struct kept **ret_kept);
void p2p_link_kept(struct lane *l, struct kept *k);

void messages_push(struct messages *all, struct message *m);
void messages_remove(struct messages *all, struct message *m);

/* p2p_control.c.  With the lock: nobody waits for what is open, the control thread moves it. */
void p2p_request_control(struct p2p *p);

#endif
