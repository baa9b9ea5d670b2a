/* client/comm/plan_text.c - a plan as text: mesh_plan_text().
 *
 *      all_reduce f32[13] on 3 ranks: doubling, 3 rounds, 52 elements (208 bytes) sent by all ranks together
 *      rank 0
 *        round 1   send out[0..13) to 1, receive from 1 into scratch[0..13)
 *        round 2   combine scratch[0..13) into out[0..13)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/debug.h>

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/call_words.h"
#include "base/dtype.h"
#include "base/error.h"
#include "comm/choose.h"

#define MAX_RANKS 4096

static void write_slice(struct buf *text, const struct plan_slice *s)
{
    static const char *const names[N_PLAN_BUFFERS] = { "nothing", "in", "out", "scratch" };
    buf_printf(text, "%s[%zu..%zu)", names[s->buffer], s->offset, s->offset + s->count);
}

static void write_local(struct buf *text, const struct plan_local *l)
{
    switch (l->kind) {
    case PLAN_COPY:
        buf_printf(text, "copy ");
        write_slice(text, &l->from);
        buf_printf(text, " to ");
        break;
    case PLAN_COMBINE:
        buf_printf(text, "combine ");
        write_slice(text, &l->from);
        buf_printf(text, " into ");
        break;
    case PLAN_FOLD:
        buf_printf(text, "fold ");
        write_slice(text, &l->from);
        buf_printf(text, " into ");
        break;
    case PLAN_FINISH:
        buf_printf(text, "finish ");
        break;
    }
    write_slice(text, &l->to);
}

static void write_transfer(struct buf *text, const struct plan_transfer *t)
{
    bool sends = t->send.buffer != PLAN_NOTHING, receives = t->receive.buffer != PLAN_NOTHING;
    if (sends) {
        buf_printf(text, "send ");
        write_slice(text, &t->send);
        buf_printf(text, " to %d", t->peer);
    }
    if (receives) {
        buf_printf(text, "%sreceive from %d%s into ", sends ? ", " : "", t->peer,
                   t->action == PLAN_REDUCE ? ", combining" : "");
        write_slice(text, &t->receive);
    }
}

static void write_round(struct buf *text, const struct plan *p, size_t i)
{
    const struct plan_round *round = &p->rounds.at[i];
    char title[32];
    (void)snprintf(title, sizeof title, "round %zu", i + 1);
    const char *before = title;
    for (size_t k = 0; k < round->n_locals; k++, before = "") {
        buf_printf(text, "  %-9s ", before);
        write_local(text, &p->locals.at[round->first_local + k]);
        buf_printf(text, "\n");
    }
    for (size_t k = 0; k < round->n_transfers; k++, before = "") {
        buf_printf(text, "  %-9s ", before);
        write_transfer(text, &p->transfers.at[round->first_transfer + k]);
        buf_printf(text, "\n");
    }
    if (round->n_locals + round->n_transfers == 0) {
        buf_printf(text, "  %-9s nothing to do\n", title);
    }
}

static void write_title(struct buf *text, const struct plan *p, const struct plan_request *q, mesh_dtype t)
{
    uint64_t sent = plan_elements_sent(q);
    if (q->kind == MESH_COMM_BARRIER) {
        buf_printf(text, "barrier");
    } else {
        buf_printf(text, "%s %s[%zu]", comm_kind_name(q->kind), dtype_name(t), q->count);
    }
    buf_printf(text,
               " on %d ranks: %s, %zu rounds, %" PRIu64 " elements (%" PRIu64 " bytes) sent by all ranks together\n",
               q->size, plan_name(q->algorithm), p->rounds.n, sent, sent * dtype_size(t));
}

static int write_rank(struct buf *text, struct plan_request *q, mesh_dtype t, bool is_first)
{
    struct plan *p = plan_new(q);
    if (p == NULL) {
        return (int)err_last()->status;
    }
    if (is_first) {
        write_title(text, p, q, t);
    }
    buf_printf(text, "rank %d\n", q->rank);
    for (size_t i = 0; i < p->rounds.n; i++) {
        write_round(text, p, i);
    }
    (void)plan_free(p);
    return 0;
}

static bool has_plan(mesh_comm_kind kind)
{
    for (int a = PLAN_NONE + 1; a < N_PLAN_ALGORITHMS; a++) {
        if (plan_kind((enum plan_algorithm)a) == kind) {
            return true;
        }
    }
    return false;
}

/* Does the count stand for one part of several? */
static bool counts_parts(mesh_comm_kind kind)
{
    return kind == MESH_COMM_REDUCE_SCATTER || kind == MESH_COMM_ALL_GATHER || kind == MESH_COMM_ALL_TO_ALL ||
           kind == MESH_COMM_GATHER || kind == MESH_COMM_SCATTER;
}

static int check(mesh_comm_kind kind, int n_ranks, size_t count, mesh_dtype t, int rank)
{
    if (!has_plan(kind)) {
        return err_set(MESH_EUNSUPPORTED, "%s (%d) runs without a plan", comm_kind_name(kind), (int)kind);
    }
    if (n_ranks < 1 || n_ranks > MAX_RANKS || rank < -1 || rank >= n_ranks) {
        return err_set(MESH_EINVAL, "rank %d of %d: 1 to %d ranks, and one of them, or -1 for all", rank, n_ranks,
                       MAX_RANKS);
    }
    if (!dtype_is_valid((int)t)) {
        return err_set(MESH_EINVAL, "%d is not a dtype", (int)t);
    }
    if (count > MEMORY_MAX_BYTES / dtype_size(t) / (size_t)n_ranks) {
        return err_set(MESH_ETOOLARGE, "%zu elements of %d ranks do not fit into memory", count, n_ranks);
    }
    return 0;
}

static int write_all(struct buf *text, struct plan_request *q, mesh_dtype t, int rank)
{
    int r = 0;
    for (int i = rank < 0 ? 0 : rank; i <= (rank < 0 ? q->size - 1 : rank) && r == 0; i++) {
        q->rank = i;
        r = write_rank(text, q, t, i == 0 || rank >= 0);
    }
    r = r < 0 ? r : buf_status(text);
    if (r == 0 && text->len > INT_MAX) {
        r = err_set(MESH_ETOOLARGE, "the plan has %zu bytes of text: ask for one rank", text->len);
    }
    return r;
}

int mesh_plan_text(mesh_comm_kind kind, int n_ranks, size_t count, mesh_dtype t, int rank, char *buf, size_t cap)
{
    err_enter(__func__);
    int r = check(kind, n_ranks, count, t, rank);
    if (r == 0 && buf == NULL && cap > 0) {
        r = err_set(MESH_EINVAL, "the buffer is NULL, but has room for %zu bytes: cap is 0 then", cap);
    }
    if (r < 0) {
        return r;
    }
    struct buf text = BUF_INIT;
    struct plan_request q = { .kind = kind, .size = n_ranks, .count = kind == MESH_COMM_BARRIER ? 0 : count };
    q.algorithm = plan_choose(kind, t, n_ranks, q.count * dtype_size(t) * (counts_parts(kind) ? (size_t)n_ranks : 1));
    r = write_all(&text, &q, t, rank);
    if (r == 0 && cap > 0) {
        size_t n = text.len < cap ? text.len : cap - 1;
        memcpy(buf, buf_text(&text), n);
        buf[n] = 0;
    }
    r = r < 0 ? r : (int)text.len;
    buf_fini(&text);
    return r;
}
