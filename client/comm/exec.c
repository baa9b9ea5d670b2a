/* client/comm/exec.c - runs any plan over links, as a machine that never blocks.
 *
 *      enter_round: local steps, set up the transfers --> exec_step: each transfer sends what fits, receives what is there
 *           ^                                                     |
 *           '----------------- all transfers done ---------------'    (no round left: EXEC_DONE)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/exec.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/reduce.h"
#include "comm/verify.h"

/* One system call moves at most this much: large enough to be cheap, small enough for the stage to stay in the L2 cache. */
#define CALL_BYTES ((size_t)512 << 10)

/* Rows of an input that leave in one system call. */
#define MOST_ROWS 128

static uint8_t *slice_at(const struct exec *x, struct plan_slice s)
{
    return s.count == 0 ? NULL : x->buffer[s.buffer] + s.offset * x->element_bytes;
}

/* Setting up ----------------------------------------------------------------------------------------------------- */

static int reserve_stage(struct exec *x, size_t bytes)
{
    if (bytes <= x->stage_bytes) {
        return 0;
    }
    (void)mem_free(x->stage);
    x->stage_bytes = 0;
    x->stage = mem_alloc(bytes);
    if (x->stage == NULL) {
        return err_no_memory(bytes, "the stage of a collective");
    }
    x->stage_bytes = bytes;
    return 0;
}

static int reserve(struct exec *x, const struct plan *plan)
{
    size_t scratch_bytes = plan->scratch_count * x->element_bytes;
    if (plan->max_transfers > x->cap_transfers) {
        (void)mem_free(x->transfers);
        x->cap_transfers = 0;
        x->transfers = mem_new_array(struct transfer, plan->max_transfers);
        if (x->transfers == NULL) {
            return err_no_memory(plan->max_transfers * sizeof(struct transfer), "the transfers of a collective");
        }
        x->cap_transfers = plan->max_transfers;
    }
    if (scratch_bytes > x->scratch_bytes) {
        (void)mem_free(x->scratch);
        x->scratch_bytes = 0;
        x->scratch = mem_alloc(scratch_bytes);
        if (x->scratch == NULL) {
            return err_no_memory(scratch_bytes, "the scratch of a collective");
        }
        x->scratch_bytes = scratch_bytes;
    }
    if (plan->max_transfers == 0) {
        return 0;
    }
    return reserve_stage(x, x->call.op != 0 ? CALL_BYTES : FRAME_HEADER_BYTES + EXEC_STAGED_BYTES);
}

static void finish(const struct exec *x, struct plan_slice s)
{
    if (x->call.op == MESH_AVG) {
        reduce_divide(slice_at(x, s), s.count, x->call.dtype, x->size);
    }
    if (x->plan->is_redundant) {
        reduce_unify_nan(slice_at(x, s), s.count, x->call.dtype);
    }
}

/* Where the elements of a slice are: in one row, but for a part of an input in rows. */
struct rows {
    const uint8_t *at;
    size_t row, stride; /* bytes */
};

static struct rows rows_of(const struct exec *x, struct plan_slice s)
{
    size_t n = s.buffer == PLAN_IN ? x->call.in_rows : 1;
    if (n > 1 && s.count > 0) {
        return (struct rows){ .at = x->buffer[PLAN_IN] + s.offset / n * x->element_bytes,
                              .row = s.count / n * x->element_bytes,
                              .stride = x->in_stride };
    }
    return (struct rows){ .at = slice_at(x, s), .row = s.count * x->element_bytes };
}

static void copy_rows(uint8_t *to, struct rows from, size_t bytes)
{
    for (; bytes > 0; bytes -= from.row) {
        memcpy(to, from.at, from.row);
        to += from.row;
        from.at += from.stride;
    }
}

static void run_local(const struct exec *x, const struct plan_local *l)
{
    uint8_t *to = slice_at(x, l->to);
    const uint8_t *from = l->from.buffer == PLAN_NOTHING ? NULL : slice_at(x, l->from);
    switch (l->kind) {
    case PLAN_COPY:
        if (to != from) { /* the public call is in place */
            copy_rows(to, rows_of(x, l->from), l->to.count * x->element_bytes);
        }
        break;
    case PLAN_COMBINE:
        reduce_into(to, from, l->to.count, x->call.dtype, x->call.op);
        break;
    case PLAN_FOLD:
        reduce_fold(to, from, l->to.count, x->size, x->call.dtype, x->call.op);
        break;
    case PLAN_FINISH:
        finish(x, l->to);
        break;
    }
}

static void start_transfer(struct exec *x, struct transfer *t, const struct plan_transfer *plan)
{
    struct frame_header h = x->header;
    t->plan = plan;
    t->link = x->find_link(x->arg, plan->peer);
    t->sent = t->received = t->n_kept = t->to_send = t->to_receive = 0;
    t->is_checked = false;
    h.step = (uint16_t)x->round;
    if (plan->send.buffer != PLAN_NOTHING) {
        h.length = plan->send.count * x->element_bytes;
        h.count = x->call.kind == MESH_COMM_ALL_TO_ALL ? plan->send.count : x->header.count;
        frame_encode(t->out, &h);
        t->to_send = FRAME_HEADER_BYTES + (size_t)h.length;
        struct rows from = rows_of(x, plan->send);
        t->source = from.at;
        t->row = from.row;
        t->stride = from.stride;
        x->n_left++;
    }
    if (plan->receive.buffer != PLAN_NOTHING) {
        h.length = plan->receive.count * x->element_bytes;
        h.count = x->call.kind == MESH_COMM_ALL_TO_ALL ? plan->receive.count : x->header.count;
        t->expected = h;
        t->to_receive = FRAME_HEADER_BYTES + (size_t)h.length;
        t->target = slice_at(x, plan->receive);
        x->n_left++;
    }
}

/* Runs the local steps of the round, and of those after it that have no transfers; false: no round is left. */
static bool enter_round(struct exec *x)
{
    for (; x->round < x->plan->rounds.n; x->round++) {
        const struct plan_round *round = &x->plan->rounds.at[x->round];
        for (size_t i = 0; i < round->n_locals; i++) {
            run_local(x, &x->plan->locals.at[round->first_local + i]);
        }
        if (round->n_transfers > 0) {
            x->n_transfers = round->n_transfers;
            x->n_left = 0;
            for (size_t i = 0; i < round->n_transfers; i++) {
                start_transfer(x, &x->transfers[i], &x->plan->transfers.at[round->first_transfer + i]);
            }
            return true;
        }
    }
    return false;
}

int exec_begin(struct exec *x, const struct call *call, const struct plan *plan, const struct frame_header *header)
{
    PRE(x->plan == NULL);
    x->call = *call;
    x->element_bytes = dtype_size(call->dtype);
    int r = reserve(x, plan);
    if (r < 0) {
        return r;
    }
    x->plan = plan;
    x->in_stride = call->in_rows > 1 ? (size_t)call->total / call->in_rows * x->element_bytes : 0;
    x->header = *header;
    x->buffer[PLAN_IN] = (uint8_t *)(uintptr_t)call->in; /* never written: plan_check.c */
    x->buffer[PLAN_OUT] = call->out;
    x->buffer[PLAN_SCRATCH] = x->scratch;
    x->round = x->n_transfers = x->n_left = 0;
    x->status = 0;
    x->lost_peer = -1;
    x->payload_sent = 0;
    (void)enter_round(x);
    return 0;
}

void exec_end(struct exec *x)
{
    x->plan = NULL;
    x->n_transfers = 0;
}

void exec_fini(struct exec *x)
{
    x->transfers = mem_free(x->transfers);
    x->scratch = mem_free(x->scratch);
    x->stage = mem_free(x->stage);
    x->cap_transfers = x->scratch_bytes = x->stage_bytes = 0;
}

/* One transfer ---------------------------------------------------------------------------------------------------- */

static enum exec_result failed(struct exec *x, struct transfer *t, int64_t status)
{
    x->status = (int)status;
    x->lost_peer = t->plan->peer;
    return status == MESH_EPEER ? EXEC_LOST : EXEC_FAILED;
}

/* What of the payload leaves next, at most `room` parts; returns how many. */
static int payload_parts(const struct transfer *t, size_t at, size_t payload, struct iovec *parts, int room)
{
    int n = 0;
    for (size_t left = MIN(payload - at, CALL_BYTES); left > 0 && n < room; n++) {
        size_t within = at % t->row, length = MIN(t->row - within, left);
        parts[n] = (struct iovec){ .iov_base = (void *)(uintptr_t)(t->source + at / t->row * t->stride + within),
                                   .iov_len = length };
        at += length;
        left -= length;
    }
    return n;
}

/* A small payload leaves behind its header in one plain write; of a larger one the parts are gathered. */
static int64_t send_parts(struct exec *x, struct transfer *t)
{
    size_t payload = t->to_send - FRAME_HEADER_BYTES;
    if (t->sent == 0 && payload <= EXEC_INLINE_BYTES && payload > 0) {
        memcpy(x->stage, t->out, FRAME_HEADER_BYTES);
        copy_rows(x->stage + FRAME_HEADER_BYTES, (struct rows){ t->source, t->row, t->stride }, payload);
        return link_send(t->link, &(struct iovec){ .iov_base = x->stage, .iov_len = t->to_send }, 1);
    }
    struct iovec parts[1 + MOST_ROWS];
    int n = 0;
    size_t of_payload = t->sent < FRAME_HEADER_BYTES ? 0 : t->sent - FRAME_HEADER_BYTES;
    if (t->sent < FRAME_HEADER_BYTES) {
        parts[n++] = (struct iovec){ .iov_base = t->out + t->sent, .iov_len = FRAME_HEADER_BYTES - t->sent };
    }
    if (payload > of_payload) {
        n += payload_parts(t, of_payload, payload, parts + n, MOST_ROWS);
    }
    return link_send(t->link, parts, n);
}

static enum exec_result send_some(struct exec *x, struct transfer *t)
{
    int64_t moved = send_parts(x, t);
    if (moved <= 0) {
        return moved == 0 ? EXEC_BLOCKED : failed(x, t, moved);
    }
    t->sent += (size_t)moved;
    if (t->sent == t->to_send) {
        x->payload_sent += t->to_send - FRAME_HEADER_BYTES;
        t->to_send = 0;
        x->n_left--;
    }
    return EXEC_PROGRESSED;
}

static enum exec_result check_header(struct exec *x, struct transfer *t, const uint8_t *theirs)
{
    uint8_t right[FRAME_HEADER_BYTES];
    frame_encode(right, &t->expected);
    if (memcmp(right, theirs, sizeof right) != 0) {
        struct verify_names names = { .session = x->session,
                                      .group = x->group_name,
                                      .me = x->world_ranks[x->rank],
                                      .sender = x->world_ranks[t->plan->peer] };
        return failed(x, t, verify_explain(theirs, &t->expected, &names));
    }
    t->is_checked = true;
    return EXEC_PROGRESSED;
}

static void note_received(struct exec *x, struct transfer *t, int64_t moved)
{
    t->received += (size_t)moved;
    if (t->received == t->to_receive) {
        t->to_receive = 0;
        x->n_left--;
    }
}

static void keep(struct transfer *t, const uint8_t *bytes, size_t n)
{
    memcpy(t->kept, bytes, n);
    t->n_kept = n;
}

/* Bytes of the payload that came through the stage, at its front or behind a header: aligned for elements. */
static void deliver(struct exec *x, struct transfer *t, const uint8_t *bytes, size_t n)
{
    size_t whole = n;
    if (t->plan->action == PLAN_REDUCE) {
        size_t count = n / x->element_bytes;
        whole = count * x->element_bytes;
        reduce_into(t->target, bytes, count, x->call.dtype, x->call.op);
    } else if (n > 0) { /* of a frame without payload there is no target */
        memcpy(t->target, bytes, n);
    }
    t->target += whole;
    keep(t, bytes + whole, n - whole);
}

/* How much of a frame one read may bring into the stage: never payload that goes straight to its destination. */
static size_t stage_room(const struct transfer *t)
{
    size_t payload = t->to_receive - FRAME_HEADER_BYTES;
    if (t->plan->action == PLAN_REDUCE) {
        return CALL_BYTES;
    }
    return payload <= EXEC_STAGED_BYTES ? FRAME_HEADER_BYTES + payload : FRAME_HEADER_BYTES;
}

static enum exec_result receive_staged(struct exec *x, struct transfer *t)
{
    size_t have = t->n_kept, want = MIN(stage_room(t) - have, t->to_receive - t->received);
    struct iovec part = { .iov_base = x->stage + have, .iov_len = want };
    int64_t moved = link_receive(t->link, &part, 1);
    if (moved <= 0) {
        return moved == 0 ? EXEC_BLOCKED : failed(x, t, moved);
    }
    const uint8_t *bytes = x->stage;
    memcpy(x->stage, t->kept, have);
    have += (size_t)moved;
    if (!t->is_checked && have < FRAME_HEADER_BYTES) {
        keep(t, bytes, have);
        note_received(x, t, moved);
        return EXEC_PROGRESSED;
    }
    if (!t->is_checked) {
        enum exec_result result = check_header(x, t, bytes);
        if (result != EXEC_PROGRESSED) {
            return result;
        }
        bytes += FRAME_HEADER_BYTES;
        have -= FRAME_HEADER_BYTES;
    }
    deliver(x, t, bytes, have);
    note_received(x, t, moved);
    return EXEC_PROGRESSED;
}

static enum exec_result receive_direct(struct exec *x, struct transfer *t)
{
    struct iovec part = { .iov_base = t->target, .iov_len = MIN(t->to_receive - t->received, CALL_BYTES) };
    int64_t moved = link_receive(t->link, &part, 1);
    if (moved <= 0) {
        return moved == 0 ? EXEC_BLOCKED : failed(x, t, moved);
    }
    t->target += moved;
    note_received(x, t, moved);
    return EXEC_PROGRESSED;
}

static enum exec_result receive_some(struct exec *x, struct transfer *t)
{
    if (t->plan->action == PLAN_REDUCE) {
        return receive_staged(x, t);
    }
    if (!t->is_checked) {
        enum exec_result result = receive_staged(x, t);
        bool is_rest_there = result == EXEC_PROGRESSED && t->is_checked && t->received == FRAME_HEADER_BYTES &&
                             t->to_receive > FRAME_HEADER_BYTES;
        if (!is_rest_there) {
            return result;
        }
        result = receive_direct(x, t); /* what follows the header is there as a rule */
        return result == EXEC_BLOCKED ? EXEC_PROGRESSED : result;
    }
    return receive_direct(x, t);
}

/* The machine ----------------------------------------------------------------------------------------------------- */

static enum exec_result step_transfer(struct exec *x, struct transfer *t)
{
    enum exec_result sent = EXEC_BLOCKED, received = EXEC_BLOCKED;
    if (t->link == NULL) {
        t->link = x->find_link(x->arg, t->plan->peer);
        if (t->link == NULL) {
            return EXEC_BLOCKED;
        }
    }
    if (t->to_send > 0) {
        sent = send_some(x, t);
        if (sent == EXEC_FAILED) {
            return sent;
        }
    }
    if (t->to_receive > 0) { /* also after the stream broke for sending: what was sent before may explain why */
        received = receive_some(x, t);
        if (received == EXEC_FAILED) {
            return received;
        }
    }
    if (received == EXEC_PROGRESSED || sent == EXEC_PROGRESSED) {
        return EXEC_PROGRESSED;
    }
    return sent == EXEC_LOST || received == EXEC_LOST ? EXEC_LOST : EXEC_BLOCKED;
}

enum exec_result exec_step(struct exec *x)
{
    enum exec_result result = EXEC_BLOCKED;
    if (x->round >= x->plan->rounds.n) {
        return EXEC_DONE;
    }
    for (size_t i = 0; i < x->n_transfers; i++) {
        struct transfer *t = &x->transfers[i];
        if (t->to_send == 0 && t->to_receive == 0) {
            continue;
        }
        enum exec_result one = step_transfer(x, t);
        if (one == EXEC_FAILED) {
            return one;
        }
        result = one == EXEC_PROGRESSED || (one == EXEC_LOST && result == EXEC_BLOCKED) ? one : result;
    }
    if (x->n_left > 0) {
        return result;
    }
    x->round++;
    return enter_round(x) ? EXEC_PROGRESSED : EXEC_DONE;
}

size_t exec_n_waits(const struct exec *x)
{
    return x->plan != NULL ? x->n_transfers : 0;
}

bool exec_wait_at(const struct exec *x, size_t i, struct exec_wait *ret_wait)
{
    const struct transfer *t = &x->transfers[i];
    *ret_wait = (struct exec_wait){
        .link = t->link, .peer = t->plan->peer, .want_read = t->to_receive > 0, .want_write = t->to_send > 0
    };
    return t->to_send > 0 || t->to_receive > 0;
}
