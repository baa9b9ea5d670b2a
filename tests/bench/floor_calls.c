/* tests/bench/floor_calls.c - the six usual collectives as a few exchanges each, for a power of two of ranks.
 *
 * Everyone meets everyone at once, except: an all_reduce of up to SMALL_BYTES doubles the distance to its partner in each step;
 * a larger one over TCP goes from pair to pair below RING_FROM ranks and round a ring from there on, which keeps fewer streams
 * busy at a time; a large broadcast is dealt out in slices that everyone then passes on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "floor.h"

#include <string.h>

#include "base/util.h"

#define SMALL_BYTES     ((size_t)32 << 10)
#define BROADCAST_BYTES ((size_t)64 << 10) /* up to here the root sends the whole to everyone */
#define RING_FROM       8

struct slice {
    float *at;
    size_t bytes;
};

/* Slice i of n floats: of equal length but for the last ones, on cache lines. */
static struct slice slice_of(float *x, size_t n, int i)
{
    size_t n_ranks = (size_t)floor_here.n_ranks, each = ((n + n_ranks - 1) / n_ranks + 15) / 16 * 16;
    size_t from = MIN(each * (size_t)i, n);
    return (struct slice){ .at = x + from, .bytes = MIN(each, n - from) * sizeof(float) };
}

/* The rank that is `distance` further. */
static int further(int distance)
{
    return (floor_here.rank + distance + floor_here.n_ranks) % floor_here.n_ranks;
}

static struct transfer to_and_from(int peer, struct slice out, struct slice in)
{
    return (struct transfer){
        .peer = peer, .out = (char *)out.at, .to_send = out.bytes, .in = (char *)in.at, .to_receive = in.bytes
    };
}

static struct transfer to_and_sum(int peer, struct slice out, struct slice sum)
{
    return (struct transfer){
        .peer = peer, .out = (char *)out.at, .to_send = out.bytes, .sum = sum.at, .to_receive = sum.bytes
    };
}

static void barrier(void)
{
    char out = 0, in;
    for (int distance = 1; distance < floor_here.n_ranks; distance *= 2) {
        struct transfer t[2] = { { .peer = further(distance), .out = &out, .to_send = 1 },
                                 { .peer = further(-distance), .in = &in, .to_receive = 1 } };
        if (t[0].peer == t[1].peer) {
            t[0].in = &in;
            t[0].to_receive = 1;
            floor_exchange(t, 1);
        } else {
            floor_exchange(t, 2);
        }
    }
}

/* What came is added only when the exchange is over: both sides send the same vector that is added to. */
static void all_reduce_by_doubling(float *x, size_t n)
{
    float *theirs = (float *)(void *)floor_here.scratch;
    struct slice mine = { x, n * sizeof(float) }, other = { theirs, n * sizeof(float) };
    for (int distance = 1; distance < floor_here.n_ranks; distance *= 2) {
        struct transfer t = to_and_from(floor_here.rank ^ distance, mine, other);
        floor_exchange(&t, 1);
        for (size_t i = 0; i < n; i++) {
            x[i] += theirs[i];
        }
    }
}

static void all_reduce_by_pairs(float *x, size_t n)
{
    struct slice mine = slice_of(x, n, floor_here.rank);
    for (int i = 1; i < floor_here.n_ranks; i++) {
        int peer = floor_here.rank ^ i;
        struct transfer t = to_and_sum(peer, slice_of(x, n, peer), mine);
        floor_exchange(&t, 1);
    }
    for (int i = 1; i < floor_here.n_ranks; i++) {
        int peer = floor_here.rank ^ i;
        struct transfer t = to_and_from(peer, mine, slice_of(x, n, peer));
        floor_exchange(&t, 1);
    }
}

static void all_reduce_round_a_ring(float *x, size_t n)
{
    int last = floor_here.n_ranks - 1;
    for (int step = 0; step < 2 * last; step++) {
        bool is_summed = step >= last; /* slices are whole, and only travel on */
        int mine = further(is_summed ? 1 + last - step : -step);
        struct slice out = slice_of(x, n, mine);
        struct slice in = slice_of(x, n, (mine - 1 + floor_here.n_ranks) % floor_here.n_ranks);
        struct transfer t[2] = { to_and_from(further(1), out, (struct slice){ 0 }),
                                 is_summed ? to_and_from(further(-1), (struct slice){ 0 }, in)
                                           : to_and_sum(further(-1), (struct slice){ 0 }, in) };
        floor_exchange(t, 2);
    }
}

static void all_reduce_at_once(float *x, size_t n)
{
    struct transfer t[FLOOR_MAX_RANKS];
    int n_others = floor_here.n_ranks - 1;
    struct slice mine = slice_of(x, n, floor_here.rank);
    for (int i = 0; i < n_others; i++) {
        t[i] = to_and_sum(further(i + 1), slice_of(x, n, further(i + 1)), mine);
    }
    floor_exchange(t, n_others);
    for (int i = 0; i < n_others; i++) {
        t[i] = to_and_from(further(i + 1), mine, slice_of(x, n, further(i + 1)));
    }
    floor_exchange(t, n_others);
}

static void all_reduce(float *x, size_t n)
{
    if (n * sizeof(float) <= SMALL_BYTES) {
        all_reduce_by_doubling(x, n);
    } else if (!floor_here.is_tcp) {
        all_reduce_at_once(x, n);
    } else if (floor_here.n_ranks < RING_FROM) {
        all_reduce_by_pairs(x, n);
    } else {
        all_reduce_round_a_ring(x, n);
    }
}

static struct slice part_of(float *x, size_t part, int i)
{
    return (struct slice){ .at = x + (size_t)i * part, .bytes = part * sizeof(float) };
}

/* all_gather, reduce_scatter and all_to_all: this rank's own part by a copy, the others in one exchange. */
static void exchange_parts(const struct bench_call *c)
{
    struct transfer t[FLOOR_MAX_RANKS];
    int n_others = floor_here.n_ranks - 1, rank = floor_here.rank;
    bool gathers = c->op == BENCH_ALL_GATHER, sums = c->op == BENCH_REDUCE_SCATTER;
    struct slice own = part_of(c->x, c->part, gathers ? 0 : rank);
    memcpy(part_of(c->y, c->part, sums ? 0 : rank).at, own.at, own.bytes);
    for (int i = 0; i < n_others; i++) {
        int peer = further(i + 1);
        struct slice out = gathers ? own : part_of(c->x, c->part, peer);
        t[i] = sums ? to_and_sum(peer, out, part_of(c->y, c->part, 0))
                    : to_and_from(peer, out, part_of(c->y, c->part, peer));
    }
    floor_exchange(t, n_others);
}

static void broadcast_whole(const struct bench_call *c)
{
    struct transfer t[FLOOR_MAX_RANKS];
    int n_others = floor_here.n_ranks - 1;
    struct slice whole = { c->x, c->count * sizeof(float) };
    if (floor_here.rank != c->root) {
        t[0] = to_and_from(c->root, (struct slice){ 0 }, whole);
        floor_exchange(t, 1);
        return;
    }
    for (int i = 0; i < n_others; i++) {
        t[i] = to_and_from(further(i + 1), whole, (struct slice){ 0 });
    }
    floor_exchange(t, n_others);
}

/* The root: slice i to the rank i further, then slice 0 to everyone. */
static void deal_out(float *x, size_t n)
{
    struct transfer t[FLOOR_MAX_RANKS];
    int n_others = floor_here.n_ranks - 1;
    for (int i = 0; i < n_others; i++) {
        t[i] = to_and_from(further(i + 1), slice_of(x, n, i + 1), (struct slice){ 0 });
    }
    floor_exchange(t, n_others);
    for (int i = 0; i < n_others; i++) {
        t[i] = to_and_from(further(i + 1), slice_of(x, n, 0), (struct slice){ 0 });
    }
    floor_exchange(t, n_others);
}

/* The others: my slice comes from the root, and goes to the rest while theirs come. */
static void pass_on(float *x, size_t n, int root)
{
    struct transfer t[FLOOR_MAX_RANKS];
    int n_ranks = floor_here.n_ranks, place = (floor_here.rank - root + n_ranks) % n_ranks, k = 0;
    struct slice mine = slice_of(x, n, place), none = { 0 };
    t[0] = to_and_from(root, none, mine);
    floor_exchange(t, 1);
    for (int i = 0; i < n_ranks; i++) {
        if (i != place) {
            t[k++] = to_and_from((root + i) % n_ranks, i == 0 ? none : mine, slice_of(x, n, i));
        }
    }
    floor_exchange(t, k);
}

static void broadcast(const struct bench_call *c)
{
    if (c->count * sizeof(float) <= BROADCAST_BYTES || floor_here.n_ranks == 2) {
        broadcast_whole(c);
    } else if (floor_here.rank == c->root) {
        deal_out(c->x, c->count);
    } else {
        pass_on(c->x, c->count, c->root);
    }
}

int floor_call(const struct bench_call *c)
{
    switch (c->op) {
    case BENCH_ALL_REDUCE:
        all_reduce(c->x, c->count);
        return 0;
    case BENCH_ALL_GATHER:
    case BENCH_REDUCE_SCATTER:
    case BENCH_ALL_TO_ALL:
        exchange_parts(c);
        return 0;
    case BENCH_BROADCAST:
        broadcast(c);
        return 0;
    case BENCH_BARRIER:
        barrier();
        return 0;
    default:
        return -1;
    }
}
