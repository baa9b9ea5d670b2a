/* client/ctl/bench_check.c - one call of each benchmarked collective on data whose result is known.
 *
 * Values are small whole numbers, so that sums are exact in every format.  Of a large vector only every STRIDE-th element
 * is not zero and is looked at: filling all would take longer than the measurement.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/bench_rules.h"

#include <stdint.h>
#include <string.h>

#include "base/util.h"

#define STRIDE_FROM (1 << 16)
#define STRIDE      61 /* a prime, so that no chunk is a multiple of it */
#define FEW         ((size_t)8)

/* Who it is, and where in the call. */
struct place {
    size_t rank, n_ranks, part, i;
    bool is_root;
};

/* What goes in, and what must come out, at element i. */
static size_t ramp(const struct place *p)
{
    return p->rank + 1 + p->i % 7;
}

static size_t sum_of_ramps(const struct place *p)
{
    return p->n_ranks * (p->n_ranks + 1) / 2 + p->n_ranks * (p->i % 7);
}

/* So few that their sums have a place in the 8 bits of a bf16. */
static size_t ramp_of_few(const struct place *p)
{
    return p->rank < FEW ? ramp(p) : 0;
}

static size_t sum_of_few(const struct place *p)
{
    struct place few = *p;
    few.n_ranks = MIN(p->n_ranks, FEW);
    return sum_of_ramps(&few);
}

static size_t ramps_side_by_side(const struct place *p)
{
    return p->i / p->part + 1 + p->i % p->part % 7;
}

static size_t number_of_part(const struct place *p)
{
    return p->rank + 1 + p->i / p->part;
}

static size_t sum_of_my_parts(const struct place *p)
{
    return p->n_ranks * (p->n_ranks + 1) / 2 + p->n_ranks * p->rank;
}

static size_t from_and_to(const struct place *p)
{
    return 16 * p->rank + p->i / p->part;
}

static size_t to_and_from(const struct place *p)
{
    return 16 * (p->i / p->part) + p->rank;
}

static size_t only_from_root(const struct place *p)
{
    return p->is_root ? p->i % 11 : 77;
}

static size_t of_root(const struct place *p)
{
    return p->i % 11;
}

static size_t my_part_of_root(const struct place *p)
{
    return (p->rank * p->part + p->i) % 11;
}

enum looks { LOOKS_NOBODY, LOOKS_ROOT, LOOKS_ALL, LOOKS_PAIR };

static const struct facts {
    const char *name;
    size_t (*given)(const struct place *p), (*wanted)(const struct place *p);
    enum looks looks;
    bool gives_part, gets_part, is_in_place;
} facts_of[BENCH_N_OPS] = {
    [BENCH_ALL_REDUCE] = { "all_reduce", ramp, sum_of_ramps, LOOKS_ALL, .is_in_place = true },
    [BENCH_ALL_GATHER] = { "all_gather", ramp, ramps_side_by_side, LOOKS_ALL, .gives_part = true },
    [BENCH_REDUCE_SCATTER] = { "reduce_scatter", number_of_part, sum_of_my_parts, LOOKS_ALL, .gets_part = true },
    [BENCH_BROADCAST] = { "broadcast", only_from_root, of_root, LOOKS_ALL, .is_in_place = true },
    [BENCH_ALL_TO_ALL] = { "all_to_all", from_and_to, to_and_from, LOOKS_ALL },
    [BENCH_BARRIER] = { "barrier", NULL, NULL, LOOKS_NOBODY },
    [BENCH_REDUCE] = { "reduce", ramp, sum_of_ramps, LOOKS_ROOT },
    [BENCH_GATHER] = { "gather", ramp, ramps_side_by_side, LOOKS_ROOT, .gives_part = true },
    [BENCH_SCATTER] = { "scatter", only_from_root, my_part_of_root, LOOKS_ALL, .gets_part = true },
    [BENCH_PING_PONG] = { "ping_pong", of_root, of_root, LOOKS_PAIR },
    [BENCH_ALL_REDUCE_F16] = { "all_reduce_f16", ramp_of_few, sum_of_few, LOOKS_ALL, .is_in_place = true },
    [BENCH_ALL_REDUCE_BF16] = { "all_reduce_bf16", ramp_of_few, sum_of_few, LOOKS_ALL, .is_in_place = true },
};

const char *bench_op_name(enum bench_op op)
{
    return facts_of[op].name;
}

bool bench_op_find(const char *name, enum bench_op *ret_op)
{
    for (int op = 0; op < BENCH_N_OPS; op++) {
        if (strcmp(facts_of[op].name, name) == 0) {
            *ret_op = (enum bench_op)op;
            return true;
        }
    }
    return false;
}

size_t bench_element_size(enum bench_op op)
{
    return op == BENCH_ALL_REDUCE_F16 || op == BENCH_ALL_REDUCE_BF16 ? 2 : sizeof(float);
}

/* The bits of a whole number in the format of op. */
static uint32_t bits_of(enum bench_op op, size_t value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (op == BENCH_ALL_REDUCE_BF16) {
        return bits >> 16;
    }
    if (op == BENCH_ALL_REDUCE_F16) { /* the exponent's bias is 15 instead of 127, the fraction 13 bits shorter */
        return value == 0 ? 0 : (bits - (UINT32_C(112) << 23)) >> 13;
    }
    return bits;
}

static void put(enum bench_op op, void *buffer, size_t i, size_t value)
{
    if (bench_element_size(op) == 2) {
        ((uint16_t *)buffer)[i] = (uint16_t)bits_of(op, value);
    } else {
        ((uint32_t *)buffer)[i] = bits_of(op, value);
    }
}

static bool holds(enum bench_op op, const void *buffer, size_t i, size_t value)
{
    uint32_t found = bench_element_size(op) == 2 ? ((const uint16_t *)buffer)[i] : ((const uint32_t *)buffer)[i];
    return found == bits_of(op, value);
}

static bool has_to_look(const struct facts *f, const struct place *p)
{
    return f->looks == LOOKS_ALL || (f->looks == LOOKS_ROOT && p->is_root) || (f->looks == LOOKS_PAIR && p->rank < 2);
}

/* The element to look at after i.  Strides begin anew at each part: so they meet, whichever way the parts went. */
static size_t next_of(const struct bench_call *c, size_t i)
{
    size_t stride = c->part >= STRIDE_FROM ? STRIDE : 1, end_of_part = i - i % c->part + c->part;
    return MIN(i + stride, end_of_part);
}

static void fill(const struct bench_call *c, struct place *p)
{
    const struct facts *f = &facts_of[c->op];
    size_t n = f->given == NULL ? 0 : f->gives_part ? c->part : c->count;
    for (p->i = 0; p->i < n; p->i = next_of(c, p->i)) {
        put(c->op, c->x, p->i, f->given(p));
    }
}

static bool is_as_wanted(const struct bench_call *c, struct place *p)
{
    const struct facts *f = &facts_of[c->op];
    size_t n = !has_to_look(f, p) ? 0 : f->gets_part ? c->part : c->count;
    bool is_right = true;
    for (p->i = 0; p->i < n && is_right; p->i = next_of(c, p->i)) {
        is_right = holds(c->op, f->is_in_place ? c->x : c->y, p->i, f->wanted(p));
    }
    return is_right;
}

int bench_check(const struct bench_library *l, const struct bench_call *c, bool *ret_is_right)
{
    struct bench_call call = *c;
    size_t bytes = c->count * bench_element_size(c->op);
    struct place p = { .rank = (size_t)l->rank, .n_ranks = (size_t)l->n_ranks, .part = c->part };
    call.root = l->n_ranks - 1;
    p.is_root = l->rank == call.root;
    memset(c->x, 0, bytes);
    memset(c->y, 0, bytes);
    fill(c, &p);
    int r = l->call(&call);
    *ret_is_right = r == 0 && is_as_wanted(c, &p);
    memset(c->x, 0, bytes);
    memset(c->y, 0, bytes);
    return r;
}
