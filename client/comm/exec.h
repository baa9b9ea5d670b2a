/* client/comm/exec.h - runs any plan over links, as a machine that never blocks.
 *
 *      exec_begin()  then exec_step() until EXEC_DONE
 *
 * Within a round every transfer goes on independently: header and payload leave in one gathered write; the header of what
 * arrives is compared with the one expected before any payload is delivered.  A payload goes from the stream straight into
 * its destination; a short one, which is read together with its header, and what is to be summed pass through `stage`, which
 * stays in the L2 cache, and are copied or added as they come.
 * All memory is kept from call to call.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_EXEC_H
#define COMM_EXEC_H

#include "comm/call.h"
#include "comm/link.h"
#include "comm/plan.h"

enum exec_result {
    EXEC_PROGRESSED,
    EXEC_BLOCKED, /* nothing can move now */
    EXEC_DONE,
    EXEC_LOST,   /* the stream with lost_peer is over; the sentence is the link's, if it has one */
    EXEC_FAILED, /* status, with the sentence of this thread */
};

/* Payloads up to this size are read together with their header, and copied when that is right: a copy of so much costs
 * less than a second read.  What is to be summed is always read so. */
#define EXEC_STAGED_BYTES ((size_t)32 << 10)
/* Payloads up to this size are copied behind their header, and leave with it in one plain write. */
#define EXEC_INLINE_BYTES ((size_t)4 << 10)

struct transfer {
    const struct plan_transfer *plan;
    struct link *link;                          /* NULL: not there yet */
    size_t sent, to_send, received, to_receive; /* bytes with the header; to_...: 0 when done */
    size_t n_kept;
    const uint8_t *source;
    size_t row, stride; /* bytes: the payload comes from rows so long and so far apart */
    uint8_t *target;
    bool is_checked; /* the header */
    struct frame_header expected;
    uint8_t out[FRAME_HEADER_BYTES];
    uint8_t kept[FRAME_HEADER_BYTES]; /* part of a header, later of an element, until the rest comes */
};

struct exec {
    /* Given by the owner, once. */
    struct link *(*find_link)(void *arg, int peer); /* NULL: not there yet, the owner sees to it */
    void *arg;
    const struct mesh_session *session;
    const char *group_name;
    const int *world_ranks;
    int rank, size;

    /* This call. */
    const struct plan *plan; /* NULL: none */
    struct call call;
    struct frame_header header;
    size_t element_bytes;
    size_t in_stride; /* bytes of one row of all parts, where the call's input is in rows */
    uint8_t *buffer[N_PLAN_BUFFERS];
    size_t round, n_transfers, n_left;
    int status, lost_peer;
    uint64_t payload_sent;

    /* Kept. */
    struct transfer *transfers;
    size_t cap_transfers;
    uint8_t *scratch, *stage;
    size_t scratch_bytes, stage_bytes;
};

/* header: with generation, group and sequence set.  The plan is borrowed until the call ends. */
int exec_begin(struct exec *x, const struct call *call, const struct plan *plan, const struct frame_header *header);
enum exec_result exec_step(struct exec *x);
void exec_end(struct exec *x); /* forgets the call, finished or not */
void exec_fini(struct exec *x);

/* What the machine waits for: transfer i of exec_n_waits(); link NULL when it is not there yet. */
struct exec_wait {
    struct link *link;
    int peer; /* group rank */
    bool want_read, want_write;
};
size_t exec_n_waits(const struct exec *x);
bool exec_wait_at(const struct exec *x, size_t i, struct exec_wait *ret_wait); /* false: transfer i is done */

#endif
