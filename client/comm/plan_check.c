/* client/comm/plan_check.c - proves a plan by running all ranks of it on integers, with no buffering between them.
 *
 * A transfer happens only while both sides are in the round that names it, so a plan that passes cannot deadlock on full
 * sockets.  Checked: every send meets a receive of the same round number and length; slices stay inside their buffers;
 * within a round nothing is written that another transfer touches, at most one transfer reduces; IN is never written; the
 * results are right (sums of distinct integers, so that a missing or doubled term shows); the elements sent by all ranks
 * are what the plan's formula says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/plan_check.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/util.h"

#define UNTOUCHED UINT64_C(0xdeadbeefdeadbeef)

struct rank_state {
    struct plan *plan;
    uint64_t *buffer[N_PLAN_BUFFERS];
    size_t length[N_PLAN_BUFFERS];
    size_t round;
    bool *is_sent, *is_received; /* [max_transfers] of this round */
    size_t n_left;
};

struct simulation {
    const struct plan_request *q;
    struct rank_state *ranks;
    uint64_t sent;
};

static int wrong(const struct simulation *s, const char *what, int rank, size_t round)
{
    return err_set(MESH_ESTATE, "plan %s of %d ranks, %zu elements: %s (rank %d, round %zu)",
                   plan_name(s->q->algorithm), s->q->size, s->q->count, what, rank, round);
}

static size_t sent_count(const struct plan_request *q, int from, int to)
{
    return q->in_counts != NULL ? q->in_counts[from * q->size + to] : q->count;
}

static size_t part_count(const size_t *counts, size_t count, int i)
{
    return counts != NULL ? counts[i] : count;
}

static size_t sum_counts(const size_t *counts, size_t count, int size)
{
    size_t sum = 0;
    for (int i = 0; i < size; i++) {
        sum += part_count(counts, count, i);
    }
    return sum;
}

/* Element i of rank r's input; sums of these show which ranks are in them. */
static uint64_t input(int rank, size_t i)
{
    return (UINT64_C(1) << (rank % 40)) * 1000003 + i * 7919 * (uint64_t)(rank + 1);
}

static size_t in_length(const struct plan_request *q, int rank)
{
    switch (q->kind) {
    case MESH_COMM_REDUCE_SCATTER:
        return sum_counts(q->in_counts, q->count, q->size);
    case MESH_COMM_ALL_GATHER:
    case MESH_COMM_GATHER:
        return part_count(q->out_counts, q->count, rank);
    case MESH_COMM_SCATTER:
        return rank == q->root ? sum_counts(q->in_counts, q->count, q->size) : 0;
    case MESH_COMM_REDUCE:
        return q->count;
    case MESH_COMM_ALL_TO_ALL:
        return sum_counts(q->in_counts != NULL ? q->in_counts + rank * q->size : NULL, q->count, q->size);
    default:
        return 0;
    }
}

static size_t out_length(const struct plan_request *q, int rank)
{
    size_t n = 0;
    switch (q->kind) {
    case MESH_COMM_REDUCE_SCATTER:
    case MESH_COMM_SCATTER:
        return part_count(q->in_counts, q->count, rank);
    case MESH_COMM_REDUCE:
        return rank == q->root ? q->count : 0;
    case MESH_COMM_GATHER:
        return rank == q->root ? sum_counts(q->out_counts, q->count, q->size) : 0;
    case MESH_COMM_ALL_GATHER:
        return sum_counts(q->out_counts, q->count, q->size);
    case MESH_COMM_ALL_TO_ALL:
        for (int i = 0; i < q->size; i++) {
            n += sent_count(q, i, rank);
        }
        return n;
    default:
        return q->kind == MESH_COMM_BARRIER ? 0 : q->count;
    }
}

static uint64_t sum_of_inputs(int size, size_t i)
{
    uint64_t sum = 0;
    for (int r = 0; r < size; r++) {
        sum += input(r, i);
    }
    return sum;
}

/* Element i of a concatenation of parts: whose part, and where in it. */
static int owner_of(const struct plan_request *q, int rank, size_t *i)
{
    for (int r = 0; r < q->size; r++) {
        size_t n = q->kind == MESH_COMM_ALL_TO_ALL ? sent_count(q, r, rank) : part_count(q->out_counts, q->count, r);
        if (*i < n) {
            return r;
        }
        *i -= n;
    }
    return -1;
}

static uint64_t expected(const struct plan_request *q, int rank, size_t i)
{
    size_t before = 0;
    int owner;
    switch (q->kind) {
    case MESH_COMM_ALL_REDUCE:
    case MESH_COMM_REDUCE:
        return sum_of_inputs(q->size, i);
    case MESH_COMM_SCATTER:
        return input(q->root, sum_counts(q->in_counts, q->count, rank) + i);
    case MESH_COMM_REDUCE_SCATTER:
        return sum_of_inputs(q->size, sum_counts(q->in_counts, q->count, rank) + i);
    case MESH_COMM_ALL_GATHER:
    case MESH_COMM_GATHER:
        owner = owner_of(q, rank, &i);
        return input(owner, i);
    case MESH_COMM_ALL_TO_ALL:
        owner = owner_of(q, rank, &i);
        for (int r = 0; r < rank; r++) {
            before += sent_count(q, owner, r);
        }
        return input(owner, before + i);
    default:
        return input(q->root, i);
    }
}

static int make_plan(const struct plan_request *q, int rank, struct plan **ret_plan)
{
    struct plan_request mine = *q;
    size_t *received = NULL;
    mine.rank = rank;
    if (q->kind == MESH_COMM_ALL_TO_ALL && q->in_counts != NULL) {
        received = mem_new_array(size_t, (size_t)q->size);
        if (received == NULL) {
            return err_no_memory((size_t)q->size * sizeof(size_t), "a plan check");
        }
        for (int r = 0; r < q->size; r++) {
            received[r] = sent_count(q, r, rank);
        }
        mine.in_counts = q->in_counts + rank * q->size;
        mine.out_counts = received;
    }
    struct plan *p = plan_new(&mine);
    (void)mem_free(received);
    if (p == NULL) {
        return mesh_last_error()->status;
    }
    *ret_plan = p;
    return 0;
}

static int start_rank(struct simulation *s, int rank)
{
    struct rank_state *x = &s->ranks[rank];
    int r = make_plan(s->q, rank, &x->plan);
    if (r < 0) {
        return r;
    }
    x->length[PLAN_IN] = in_length(s->q, rank);
    x->length[PLAN_OUT] = out_length(s->q, rank);
    x->length[PLAN_SCRATCH] = x->plan->scratch_count;
    for (int b = PLAN_IN; b < N_PLAN_BUFFERS; b++) {
        x->buffer[b] = mem_new_array(uint64_t, x->length[b]);
        for (size_t i = 0; x->buffer[b] != NULL && i < x->length[b]; i++) {
            bool is_input = b == PLAN_IN || (b == PLAN_OUT && s->q->kind == MESH_COMM_ALL_REDUCE) ||
                            (b == PLAN_OUT && s->q->kind == MESH_COMM_BROADCAST && rank == s->q->root);
            x->buffer[b][i] = is_input ? input(rank, i) : UNTOUCHED;
        }
    }
    x->is_sent = mem_zalloc(x->plan->max_transfers + 1);
    x->is_received = mem_zalloc(x->plan->max_transfers + 1);
    bool has_memory =
        x->buffer[PLAN_IN] && x->buffer[PLAN_OUT] && x->buffer[PLAN_SCRATCH] && x->is_sent && x->is_received;
    return has_memory ? 0 : err_no_memory(0, "a plan check");
}

static bool overlaps(struct plan_slice a, struct plan_slice b)
{
    return a.buffer == b.buffer && a.buffer != PLAN_NOTHING && a.offset < b.offset + b.count &&
           b.offset < a.offset + a.count;
}

static bool is_inside(const struct rank_state *x, struct plan_slice s)
{
    return s.buffer == PLAN_NOTHING || (s.offset <= x->length[s.buffer] && s.count <= x->length[s.buffer] - s.offset);
}

/* Two transfers of one round: what is wrong with them together, or NULL. */
static const char *clash(const struct plan_transfer *a, const struct plan_transfer *b)
{
    if (overlaps(a->receive, b->send) || overlaps(a->send, b->receive) || overlaps(a->receive, b->receive)) {
        return "a transfer writes what another one of the round touches";
    }
    if (a->action == PLAN_REDUCE && b->action == PLAN_REDUCE) {
        return "two transfers of a round reduce";
    }
    return a->peer == b->peer ? "a peer occurs twice in a round" : NULL;
}

static const char *transfer_fault(const struct rank_state *x, const struct plan_transfer *t, int rank)
{
    if (t->peer < 0 || t->peer >= x->plan->size || t->peer == rank) {
        return "a transfer with no other rank";
    }
    if (!is_inside(x, t->send) || !is_inside(x, t->receive)) {
        return "a slice leaves its buffer";
    }
    if (t->receive.buffer == PLAN_IN) {
        return "the input is written";
    }
    return overlaps(t->send, t->receive) ? "a transfer writes what it sends" : NULL;
}

static int check_round(const struct simulation *s, int rank)
{
    const struct rank_state *x = &s->ranks[rank];
    const struct plan_round *round = &x->plan->rounds.at[x->round];
    const struct plan_transfer *t = x->plan->transfers.at + round->first_transfer;
    for (size_t i = 0; i < round->n_transfers; i++) {
        const char *fault = transfer_fault(x, &t[i], rank);
        for (size_t j = 0; j < i && fault == NULL; j++) {
            fault = clash(&t[i], &t[j]);
        }
        if (fault != NULL) {
            return wrong(s, fault, rank, x->round);
        }
    }
    return 0;
}

/* How many vectors a local step reads for the one it writes. */
static size_t n_vectors(const struct simulation *s, const struct plan_local *l)
{
    return l->kind == PLAN_FOLD ? (size_t)s->q->size : 1;
}

static int run_locals(struct simulation *s, int rank)
{
    struct rank_state *x = &s->ranks[rank];
    const struct plan_round *round = &x->plan->rounds.at[x->round];
    for (size_t i = 0; i < round->n_locals; i++) {
        const struct plan_local *l = &x->plan->locals.at[round->first_local + i];
        if (!is_inside(x, l->to) || !is_inside(x, l->from) || l->to.buffer == PLAN_IN || overlaps(l->to, l->from) ||
            (l->kind != PLAN_FINISH && l->to.count * n_vectors(s, l) != l->from.count)) {
            return wrong(s, "a local step with wrong slices", rank, x->round);
        }
        for (size_t k = 0; l->kind != PLAN_FINISH && k < l->from.count; k++) {
            uint64_t *to = &x->buffer[l->to.buffer][l->to.offset + k % l->to.count];
            bool is_added = l->kind == PLAN_COMBINE || k >= l->to.count;
            *to = x->buffer[l->from.buffer][l->from.offset + k] + (is_added ? *to : 0);
        }
    }
    return 0;
}

/* Enters the round x->round, and those after it that have no transfers. */
static int enter_round(struct simulation *s, int rank)
{
    struct rank_state *x = &s->ranks[rank];
    while (x->round < x->plan->rounds.n) {
        const struct plan_round *round = &x->plan->rounds.at[x->round];
        int r = check_round(s, rank);
        r = r < 0 ? r : run_locals(s, rank);
        if (r < 0) {
            return r;
        }
        x->n_left = 0;
        for (size_t i = 0; i < round->n_transfers; i++) {
            const struct plan_transfer *t = &x->plan->transfers.at[round->first_transfer + i];
            x->is_sent[i] = t->send.buffer == PLAN_NOTHING;
            x->is_received[i] = t->receive.buffer == PLAN_NOTHING;
            x->n_left += (size_t)(!x->is_sent[i]) + (size_t)(!x->is_received[i]);
        }
        if (x->n_left > 0) {
            return 0;
        }
        x->round++;
    }
    return 0;
}

/* The transfer of this rank's round that still has to receive from `peer`, or NULL. */
static const struct plan_transfer *awaiting(const struct rank_state *x, int peer, size_t *ret_index)
{
    if (x->round >= x->plan->rounds.n) {
        return NULL;
    }
    const struct plan_round *round = &x->plan->rounds.at[x->round];
    for (size_t i = 0; i < round->n_transfers; i++) {
        const struct plan_transfer *t = &x->plan->transfers.at[round->first_transfer + i];
        if (t->peer == peer && !x->is_received[i]) {
            *ret_index = i;
            return t;
        }
    }
    return NULL;
}

/* Moves what transfer i of `rank` sends, if its peer is there to take it. */
static int try_send(struct simulation *s, int rank, size_t i, bool *ret_moved)
{
    struct rank_state *x = &s->ranks[rank];
    const struct plan_transfer *t = &x->plan->transfers.at[x->plan->rounds.at[x->round].first_transfer + i];
    struct rank_state *y = &s->ranks[t->peer];
    size_t j;
    const struct plan_transfer *u = awaiting(y, rank, &j);
    if (u == NULL) {
        return 0;
    }
    if (y->round != x->round || u->receive.count != t->send.count) {
        return wrong(s, "a send meets a receive of another round or length", rank, x->round);
    }
    for (size_t k = 0; k < t->send.count; k++) {
        uint64_t *to = &y->buffer[u->receive.buffer][u->receive.offset + k];
        *to = x->buffer[t->send.buffer][t->send.offset + k] + (u->action == PLAN_REDUCE ? *to : 0);
    }
    s->sent += t->send.count;
    x->is_sent[i] = true;
    y->is_received[j] = true;
    x->n_left--;
    y->n_left--;
    *ret_moved = true;
    return 0;
}

static int step_rank(struct simulation *s, int rank, bool *ret_moved)
{
    struct rank_state *x = &s->ranks[rank];
    if (x->round >= x->plan->rounds.n) {
        return 0;
    }
    for (size_t i = 0; i < x->plan->rounds.at[x->round].n_transfers; i++) {
        int r = x->is_sent[i] ? 0 : try_send(s, rank, i, ret_moved);
        if (r < 0) {
            return r;
        }
    }
    if (x->n_left == 0) {
        x->round++;
        *ret_moved = true;
        return enter_round(s, rank);
    }
    return 0;
}

static int check_results(const struct simulation *s)
{
    uint64_t formula = 0;
    for (int rank = 0; rank < s->q->size; rank++) {
        const struct rank_state *x = &s->ranks[rank];
        if (x->round < x->plan->rounds.n) {
            return wrong(s, "it never ends", rank, x->round);
        }
        for (size_t i = 0; i < x->length[PLAN_OUT]; i++) {
            if (x->buffer[PLAN_OUT][i] != expected(s->q, rank, i)) {
                return wrong(s, "a wrong result", rank, i);
            }
        }
        struct plan_request mine = *s->q;
        mine.rank = rank;
        mine.in_counts = s->q->kind == MESH_COMM_ALL_TO_ALL && s->q->in_counts != NULL
                             ? s->q->in_counts + rank * s->q->size
                             : s->q->in_counts;
        formula = mine.in_counts != NULL && s->q->kind == MESH_COMM_ALL_TO_ALL ? formula + plan_elements_sent(&mine)
                                                                               : plan_elements_sent(&mine);
    }
    return s->sent == formula ? 0 : wrong(s, "it does not send as many elements as its formula says", -1, 0);
}

static int simulate(struct simulation *s)
{
    int r = 0;
    for (int rank = 0; rank < s->q->size && r == 0; rank++) {
        r = start_rank(s, rank);
        r = r < 0 ? r : enter_round(s, rank);
    }
    for (bool moved = true; moved && r == 0;) {
        moved = false;
        for (int rank = 0; rank < s->q->size && r == 0; rank++) {
            r = step_rank(s, rank, &moved);
        }
    }
    return r < 0 ? r : check_results(s);
}

int plan_check(const struct plan_request *q)
{
    struct simulation s = { .q = q, .ranks = mem_zalloc((size_t)q->size * sizeof(struct rank_state)) };
    if (s.ranks == NULL) {
        return err_no_memory((size_t)q->size * sizeof(struct rank_state), "a plan check");
    }
    int r = simulate(&s);
    for (int rank = 0; rank < q->size; rank++) {
        struct rank_state *x = &s.ranks[rank];
        x->plan = plan_free(x->plan);
        for (int b = 0; b < N_PLAN_BUFFERS; b++) {
            (void)mem_free(x->buffer[b]);
        }
        (void)mem_free(x->is_sent);
        (void)mem_free(x->is_received);
    }
    (void)mem_free(s.ranks);
    return r;
}
