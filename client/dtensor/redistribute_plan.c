/* client/dtensor/redistribute_plan.c - the cheapest legal sequence of moves, by uniform-cost search.
 *
 * A state is a list of placements; its number is mixed radix over the candidates of each mesh dim.  Candidates of a
 * mesh dim: Replicate, every tensor dim worth splitting, and the pending reductions that `from` and `to` have there.  A
 * mesh dim that is equal and not a shard on both sides never moves.  Ties go to fewer moves, then to the lower state
 * number, so every rank finds the same sequence.  At most (3 + MESH_MAX_NDIM)^4 = 14,641 states.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/redistribute.h"

#include <float.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "dtensor/exchange.h"
#include "dtensor/layout.h"
#include "tensor/shape.h"

#define COLLECTIVE_BYTES REDISTRIBUTE_COLLECTIVE_BYTES

/* On larger meshes an exchange is not thought of: every rank would count what every other one has. */
#define EXCHANGE_MAX_RANKS 1024

#define MAX_CANDIDATES     (MESH_MAX_NDIM + 3)

struct node {
    double cost;
    int n_moves; /* -1: not reached */
    int from;    /* state number it was reached from */
    bool is_done;
};

struct entry {
    double cost;
    int n_moves, state;
};

struct search {
    mesh_shape global;
    size_t item;
    int ndim; /* of the mesh */
    const int *size;
    int n_candidates[MESH_MAX_MESH_NDIM];
    mesh_placement candidate[MESH_MAX_MESH_NDIM][MAX_CANDIDATES];
    int n_states, stride[MESH_MAX_MESH_NDIM]; /* of the candidates of a mesh dim in a state's number */
    struct node *nodes;                       /* [n_states] */
    struct entry *heap; /* [n_heap] a state may stand in it more than once: the best one comes out first */
    int n_heap, heap_cap;
};

static bool is_same(mesh_placement a, mesh_placement b)
{
    return a.kind == b.kind && a.dim == b.dim && a.op == b.op && a.split_factor == b.split_factor;
}

/* The value a line of mesh dim i shares, at the coordinate whose parts are largest. */
static mesh_shape line_shape(const struct search *s, const mesh_placements *p, int i)
{
    static const int origin[MESH_MAX_MESH_NDIM];
    mesh_placements without = *p;
    without.at[i] = mesh_replicate();
    return layout_local_shape(s->global, s->size, origin, &without);
}

static int64_t elements_without_smallest(mesh_shape line, int parts, mesh_placement p)
{
    int64_t rest = shape_outer(line, p.dim) * shape_inner(line, p.dim), n = line.dim[p.dim];
    return (n - places_kept(n, p, parts, parts - 1)) * rest;
}

static int64_t elements_exchanged(mesh_shape line, int parts, mesh_placement a, mesh_placement b)
{
    int64_t rest = 1, most = 0;
    for (int d = 0; d < line.ndim; d++) {
        rest *= d == a.dim || d == b.dim ? 1 : line.dim[d];
    }
    for (int p = 0; p < parts; p++) {
        int64_t kept = places_kept(line.dim[b.dim], b, parts, p);
        int64_t sent = places_kept(line.dim[a.dim], a, parts, p) * (line.dim[b.dim] - kept) * rest;
        most = MAX(most, sent);
    }
    return most;
}

/* Bytes sent by the largest sender of the line; *ret_collective: whether there is a collective at all. */
static int64_t move_bytes(const struct search *s, const mesh_placements *p, int i, mesh_placement to,
                          bool *ret_collective)
{
    mesh_placement from = p->at[i];
    int parts = s->size[i];
    int64_t elements = 0;
    *ret_collective = false;
    if (parts == 1 || from.kind == MESH_IS_REPLICATE || (placement_is_shard(from) && to.kind == MESH_IS_PARTIAL)) {
        return 0;
    }
    mesh_shape line = line_shape(s, p, i);
    int64_t n = shape_numel(line);
    *ret_collective = true;
    if (from.kind == MESH_IS_PARTIAL && to.kind == MESH_IS_REPLICATE) {
        elements = 2 * (n - n / parts);
    } else if (from.kind == MESH_IS_PARTIAL) {
        elements = elements_without_smallest(line, parts, to);
    } else if (to.kind == MESH_IS_REPLICATE) {
        elements = elements_without_smallest(line, parts, from);
    } else {
        elements = elements_exchanged(line, parts, from, to);
    }
    return elements * (int64_t)s->item;
}

static bool splits_later(const struct search *s, const mesh_placements *p, int i, int d)
{
    for (int j = i + 1; j < s->ndim; j++) {
        if (s->size[j] > 1 && placement_splits(p->at[j], d)) {
            return true;
        }
    }
    return false;
}

bool redistribute_move_is_legal(int mesh_ndim, const int *mesh_size, const mesh_placements *p, int i, mesh_placement to)
{
    struct search s = { .ndim = mesh_ndim, .size = mesh_size };
    mesh_placement from = p->at[i];
    mesh_placements after = *p;
    after.at[i] = to;
    if (is_same(from, to) || placements_mix_reductions(&after)) {
        return false;
    }
    if (mesh_size[i] == 1) {
        return true;
    }
    if (from.kind == MESH_IS_PARTIAL && to.kind == MESH_IS_PARTIAL) {
        return false;
    }
    if (placement_is_shard(from) && to.kind == MESH_IS_PARTIAL && to.op == MESH_AVG) {
        return false; /* one's own part times n would round */
    }
    if (placement_is_shard(from) && placement_splits(to, from.dim)) {
        return false; /* from one stride to another */
    }
    return !(placement_is_shard(from) && splits_later(&s, p, i, from.dim)) &&
           !(placement_is_shard(to) && splits_later(&s, p, i, to.dim));
}

static void add_candidate(struct search *s, int i, mesh_placement p)
{
    for (int c = 0; c < s->n_candidates[i]; c++) {
        if (is_same(s->candidate[i][c], p)) {
            return;
        }
    }
    CHECK(s->n_candidates[i] < MAX_CANDIDATES);
    s->candidate[i][s->n_candidates[i]++] = p;
}

static void number_states(struct search *s)
{
    s->n_states = 1;
    for (int i = s->ndim - 1; i >= 0; i--) {
        s->stride[i] = s->n_states;
        s->n_states *= s->n_candidates[i];
    }
}

static void find_candidates(struct search *s, const mesh_placements *from, const mesh_placements *to)
{
    for (int i = 0; i < s->ndim; i++) {
        s->n_candidates[i] = 0;
        add_candidate(s, i, from->at[i]);
        add_candidate(s, i, to->at[i]);
        bool is_fixed = is_same(from->at[i], to->at[i]) && !placement_is_shard(from->at[i]);
        if (!is_fixed) {
            add_candidate(s, i, mesh_replicate());
        }
        for (int d = 0; !is_fixed && s->size[i] > 1 && s->ndim > 1 && d < s->global.ndim; d++) {
            if (s->global.dim[d] > 1) {
                add_candidate(s, i, mesh_shard(d));
            }
        }
    }
    number_states(s);
}

static mesh_placements decode(const struct search *s, int state)
{
    mesh_placements p = { .n = s->ndim };
    for (int i = s->ndim - 1; i >= 0; i--) {
        p.at[i] = s->candidate[i][state % s->n_candidates[i]];
        state /= s->n_candidates[i];
    }
    return p;
}

static int encode(const struct search *s, const mesh_placements *p)
{
    int state = 0;
    for (int i = 0; i < s->ndim; i++) {
        int c = 0;
        while (!is_same(s->candidate[i][c], p->at[i])) {
            c++;
        }
        state = state * s->n_candidates[i] + c;
    }
    return state;
}

static bool is_before(const struct entry *x, const struct entry *y)
{
    if (x->cost < y->cost || x->cost > y->cost) {
        return x->cost < y->cost;
    }
    return x->n_moves != y->n_moves ? x->n_moves < y->n_moves : x->state < y->state;
}

static void swap(struct entry *a, struct entry *b)
{
    struct entry t = *a;
    *a = *b;
    *b = t;
}

static int heap_grow(struct search *s)
{
    int cap = s->heap_cap ? 2 * s->heap_cap : 64;
    size_t old_bytes = (size_t)s->heap_cap * sizeof *s->heap, bytes = (size_t)cap * sizeof *s->heap;
    struct entry *heap = mem_realloc(s->heap, old_bytes, bytes);
    if (!heap) {
        return err_no_memory(bytes, "planning a redistribution");
    }
    s->heap = heap;
    s->heap_cap = cap;
    return 0;
}

static int heap_push(struct search *s, int state)
{
    int r = s->n_heap == s->heap_cap ? heap_grow(s) : 0;
    if (r < 0) {
        return r;
    }
    const struct node *n = &s->nodes[state];
    int i = s->n_heap++;
    s->heap[i] = (struct entry){ .cost = n->cost, .n_moves = n->n_moves, .state = state };
    for (; i > 0 && is_before(&s->heap[i], &s->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        swap(&s->heap[i], &s->heap[(i - 1) / 2]);
    }
    return 0;
}

static int heap_pop(struct search *s)
{
    int top = s->heap[0].state;
    s->heap[0] = s->heap[--s->n_heap];
    for (int i = 0, c = 1; c < s->n_heap; c = 2 * i + 1) {
        c += c + 1 < s->n_heap && is_before(&s->heap[c + 1], &s->heap[c]);
        if (!is_before(&s->heap[c], &s->heap[i])) {
            break;
        }
        swap(&s->heap[i], &s->heap[c]);
        i = c;
    }
    return top;
}

/* Tries one move out of a state, to candidate c; a better way into the next state is remembered. */
static int relax(struct search *s, int state, const mesh_placements *p, int i, int c)
{
    mesh_placement to = s->candidate[i][c];
    int to_state = state + (c - state / s->stride[i] % s->n_candidates[i]) * s->stride[i];
    struct node *n = &s->nodes[to_state];
    if (n->is_done || !redistribute_move_is_legal(s->ndim, s->size, p, i, to)) {
        return 0;
    }
    bool is_collective;
    int64_t bytes = move_bytes(s, p, i, to, &is_collective);
    const struct node *here = &s->nodes[state];
    double cost = here->cost + (double)bytes + (is_collective ? COLLECTIVE_BYTES : 0);
    bool is_tie = n->n_moves >= 0 && !(cost < n->cost) && !(cost > n->cost);
    if ((n->n_moves >= 0 && cost > n->cost) || (is_tie && here->n_moves + 1 >= n->n_moves)) {
        return 0;
    }
    *n = (struct node){ .cost = cost, .n_moves = here->n_moves + 1, .from = state };
    return heap_push(s, to_state);
}

/* Goes on until the goal is reached or whatever is left costs the limit or more. */
static int search_run(struct search *s, int goal, double limit)
{
    int r = 0;
    while (r == 0 && s->n_heap > 0 && s->heap[0].cost < limit) {
        int state = heap_pop(s);
        if (s->nodes[state].is_done) {
            continue;
        }
        s->nodes[state].is_done = true;
        if (state == goal) {
            return 0;
        }
        mesh_placements p = decode(s, state);
        for (int i = 0; i < s->ndim; i++) {
            for (int c = 0; r == 0 && c < s->n_candidates[i]; c++) {
                r = relax(s, state, &p, i, c);
            }
        }
    }
    return r;
}

static void write_moves(const struct search *s, int goal, struct move_list *ret_moves)
{
    struct move_list list = { .n = s->nodes[goal].n_moves, .cost = s->nodes[goal].cost };
    CHECK(list.n >= 0 && list.n <= REDISTRIBUTE_MAX_MOVES);
    for (int at = list.n - 1, state = goal; at >= 0; at--) {
        mesh_placements after = decode(s, state);
        state = s->nodes[state].from;
        mesh_placements before = decode(s, state);
        int i = 0;
        while (is_same(before.at[i], after.at[i])) {
            i++;
        }
        bool is_collective;
        list.at[at] = (struct move){ .mesh_dim = i, .from = before.at[i], .to = after.at[i] };
        list.at[at].bytes = move_bytes(s, &before, i, after.at[i], &is_collective);
    }
    *ret_moves = list;
}

static bool add_move(const struct search *s, mesh_placements *now, int i, mesh_placement to, struct move_list *inout)
{
    bool is_collective;
    if (!redistribute_move_is_legal(s->ndim, s->size, now, i, to) || inout->n == REDISTRIBUTE_MAX_MOVES - 1) {
        return false;
    }
    struct move move = { .mesh_dim = i, .from = now->at[i], .to = to };
    move.bytes = move_bytes(s, now, i, to, &is_collective);
    inout->at[inout->n++] = move;
    inout->cost += (double)move.bytes + (is_collective ? COLLECTIVE_BYTES : 0);
    now->at[i] = to;
    return true;
}

/* Reduces what is pending and must not be, and makes pending what must be; false: not in such a simple way. */
static bool settle_pending(const struct search *s, mesh_placements *now, const mesh_placements *to,
                           struct move_list *inout)
{
    for (int i = 0; i < s->ndim; i++) {
        bool is_done = is_same(now->at[i], to->at[i]) || now->at[i].kind != MESH_IS_PARTIAL;
        if (!is_done && !(placement_is_shard(to->at[i]) && add_move(s, now, i, to->at[i], inout)) &&
            !add_move(s, now, i, mesh_replicate(), inout)) {
            return false;
        }
    }
    for (int i = 0; i < s->ndim; i++) {
        bool is_done = is_same(now->at[i], to->at[i]) || to->at[i].kind != MESH_IS_PARTIAL;
        if (!is_done && (now->at[i].kind != MESH_IS_REPLICATE || !add_move(s, now, i, to->at[i], inout))) {
            return false;
        }
    }
    return true;
}

static int64_t bytes_of(const struct move_list *moves)
{
    int64_t bytes = 0;
    for (int i = 0; i < moves->n; i++) {
        bytes += moves->at[i].bytes;
    }
    return bytes;
}

/* All mesh dims at once; false: not possible, or at a cost of the limit or more. */
static bool find_exchange(const struct search *s, const struct relayout *q, double limit, struct move_list *ret_moves)
{
    mesh_placements now = *q->from;
    struct move_list list = { .n = 0 };
    int64_t n_ranks = 1;
    for (int i = 0; i < s->ndim; i++) {
        n_ranks *= s->size[i];
    }
    if (limit <= COLLECTIVE_BYTES || n_ranks > EXCHANGE_MAX_RANKS || !settle_pending(s, &now, q->to, &list)) {
        return false;
    }
    struct move all = { .mesh_dim = ALL_MESH_DIMS };
    all.bytes = exchange_elements(s->global, s->ndim, s->size, &now, q->to) * (int64_t)s->item;
    list.at[list.n++] = all;
    list.cost += (double)all.bytes + COLLECTIVE_BYTES;
    *ret_moves = list;
    return list.cost < limit;
}

/* Where that moves less than the sequence found. */
static void try_exchange(const struct search *s, const struct relayout *q, struct move_list *inout)
{
    struct move_list list;
    int64_t bytes = bytes_of(inout);
    if (inout->n >= 2 && bytes > 0 && find_exchange(s, q, inout->cost, &list) && bytes_of(&list) < bytes) {
        *inout = list;
    }
}

/* Where all sequences cost the limit or more, an exchange may still cost less; whether it is taken depends on the
 * sequence. */
static int search_below(struct search *s, const struct relayout *q, double limit, int goal)
{
    struct move_list list;
    int r = search_run(s, goal, limit);
    if (r == 0 && !s->nodes[goal].is_done && find_exchange(s, q, limit, &list)) {
        r = search_run(s, goal, DBL_MAX);
    }
    return r;
}

static int search_start(struct search *s, int start)
{
    s->nodes = mem_new_array(struct node, (size_t)s->n_states);
    if (!s->nodes) {
        return err_no_memory((size_t)s->n_states * sizeof *s->nodes, "planning a redistribution");
    }
    for (int i = 0; i < s->n_states; i++) {
        s->nodes[i] = (struct node){ .n_moves = -1 };
    }
    s->nodes[start].n_moves = 0;
    return heap_push(s, start);
}

int redistribute_plan_below(const struct relayout *q, double limit, struct move_list *ret_moves)
{
    struct search s = { .global = q->shape, .item = dtype_size(q->dtype), .ndim = q->mesh_ndim, .size = q->mesh_size };
    if (mesh_placements_equal(*q->from, *q->to)) {
        *ret_moves = (struct move_list){ .n = 0 };
        return 0;
    }
    find_candidates(&s, q->from, q->to);
    int goal = encode(&s, q->to);
    int r = search_start(&s, encode(&s, q->from));
    r = r < 0 ? r : search_below(&s, q, limit, goal);
    struct move_list found = { .cost = DBL_MAX };
    if (r == 0 && s.nodes[goal].is_done) {
        write_moves(&s, goal, &found);
        try_exchange(&s, q, &found);
    }
    CHECK(r < 0 || found.cost < DBL_MAX || limit < DBL_MAX);
    *ret_moves = found.cost < limit ? found : (struct move_list){ .n = 0, .cost = limit };
    mem_free(s.heap);
    mem_free(s.nodes);
    return r;
}

int redistribute_plan(const struct relayout *q, struct move_list *ret_moves)
{
    return redistribute_plan_below(q, DBL_MAX, ret_moves);
}

/* --- about what many layouts cost --------------------------------------------------------------------------------- */

/* The candidate that stands for a placement of a grid. */
static mesh_placement stand_in(mesh_placement now, mesh_placement p)
{
    if (is_same(now, p) || p.kind == MESH_IS_REPLICATE || p.kind == MESH_IS_SHARD) {
        return p;
    }
    return p.kind == MESH_IS_PARTIAL ? mesh_replicate() : mesh_shard(p.dim);
}

static void find_grid_candidates(struct search *s, const mesh_placements *from, const struct layout_grid *g)
{
    for (int i = 0; i < s->ndim; i++) {
        add_candidate(s, i, from->at[i]);
        add_candidate(s, i, mesh_replicate());
        for (int k = 0; k < g->n[i]; k++) {
            add_candidate(s, i, stand_in(from->at[i], g->at[i][k]));
        }
    }
    number_states(s);
}

static int64_t elements_of(const struct box *b)
{
    int64_t n = 1;
    for (int d = 0; d < b->ndim; d++) {
        n *= b->extent[d];
    }
    return n;
}

/* What the rank at a coordinate has of one layout and not of the other, taking parts for boxes. */
static int64_t elements_new(const struct search *s, const int *at, const mesh_placements *from,
                            const mesh_placements *to)
{
    struct box a, b;
    layout_box(s->global, s->size, at, from, &a);
    layout_box(s->global, s->size, at, to, &b);
    int64_t n = elements_of(&b), kept = 1;
    for (int d = 0; d < b.ndim; d++) {
        int64_t begin = MAX(a.offset[d], b.offset[d]);
        int64_t end = MIN(a.offset[d] + a.extent[d], b.offset[d] + b.extent[d]);
        kept *= MAX(end - begin, 0);
    }
    return n - kept;
}

/* About what one exchange costs: what the busiest of three ranks gets, the first one and two that the mesh dims
 * disagree on. */
static double exchange_about(const struct search *s, const mesh_placements *from, const mesh_placements *to)
{
    int64_t most = 0;
    for (int k = 0; k < 3; k++) {
        int at[MESH_MAX_MESH_NDIM];
        for (int i = 0; i < s->ndim; i++) {
            at[i] = k > 0 && i % 2 == k - 1 ? s->size[i] - 1 : 0;
        }
        int64_t n = elements_new(s, at, from, to);
        most = MAX(most, n);
    }
    return (double)most * (double)s->item + COLLECTIVE_BYTES;
}

static double cost_about(const struct search *s, const mesh_placements *from, const mesh_placements *to)
{
    const struct node *n = &s->nodes[encode(s, to)];
    bool is_settled = n->n_moves >= 2 && n->cost > COLLECTIVE_BYTES;
    for (int i = 0; i < s->ndim; i++) {
        is_settled = is_settled && (from->at[i].kind != MESH_IS_PARTIAL || is_same(from->at[i], to->at[i]));
    }
    double exchanged = is_settled ? exchange_about(s, from, to) : DBL_MAX, cost = n->n_moves < 0 ? DBL_MAX : n->cost;
    return MIN(cost, exchanged);
}

int redistribute_costs(const struct relayout *q, const struct layout_grid *g, double *ret_costs)
{
    struct search s = { .global = q->shape, .item = dtype_size(q->dtype), .ndim = q->mesh_ndim, .size = q->mesh_size };
    int n = 1;
    find_grid_candidates(&s, q->from, g);
    int r = search_start(&s, encode(&s, q->from));
    r = r < 0 ? r : search_run(&s, -1, DBL_MAX);
    for (int i = 0; i < s.ndim; i++) {
        n *= g->n[i];
    }
    for (int k = 0; r == 0 && k < n; k++) {
        mesh_placements to = { .n = s.ndim };
        for (int i = s.ndim - 1, rest = k; i >= 0; i--) {
            to.at[i] = stand_in(q->from->at[i], g->at[i][rest % g->n[i]]);
            rest /= g->n[i];
        }
        ret_costs[k] = cost_about(&s, q->from, &to);
    }
    mem_free(s.heap);
    mem_free(s.nodes);
    return r;
}

static const char *move_work(const struct move *m)
{
    if (m->bytes == 0) {
        return "local";
    }
    if (m->mesh_dim == ALL_MESH_DIMS) {
        return "all_to_all";
    }
    if (m->from.kind == MESH_IS_PARTIAL) {
        return m->to.kind == MESH_IS_REPLICATE ? "all_reduce" : "reduce_scatter";
    }
    return m->to.kind == MESH_IS_REPLICATE ? "all_gather" : "all_to_all";
}

const char *move_text(const struct move *move, const mesh_device_mesh *m, char *buf, size_t cap)
{
    char from[24], to[24], dim[16];
    snprintf(dim, sizeof dim, "%d", move->mesh_dim);
    if (move->mesh_dim == ALL_MESH_DIMS) {
        snprintf(buf, cap, "all mesh dims at once");
    } else {
        snprintf(buf, cap, "%s->%s on %.20s", placement_text(move->from, from, sizeof from),
                 placement_text(move->to, to, sizeof to), m->has_names ? m->name[move->mesh_dim] : dim);
    }
    return buf;
}

const char *redistribute_text(const struct move_list *moves, const mesh_device_mesh *m, char *buf, size_t cap)
{
    size_t at = 0;
    if (cap > 0) {
        buf[0] = 0;
    }
    for (int i = 0; i < moves->n && at < cap; i++) {
        char one[80];
        int n = snprintf(buf + at, cap - at, "%s%s (%s, %lld bytes)", i ? ", " : "",
                         move_text(&moves->at[i], m, one, sizeof one), move_work(&moves->at[i]),
                         (long long)moves->at[i].bytes);
        at += n > 0 ? (size_t)n : 0;
    }
    return buf;
}
