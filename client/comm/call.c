/* client/comm/call.c - one collective call, checked and brought into one form: what every rank must have in common.
 *
 * Split sizes that are all equal are the call without split sizes, so that both ways to say the same match.  In
 * all_to_all each pair of ranks has its own count: the frame header carries that of the pair, and each side compares it
 * with its own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/call.h"

#include <endian.h>
#include <inttypes.h>

#include "base/call_words.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/map.h"
#include "base/util.h"

static bool reduces(mesh_comm_kind kind)
{
    return kind == MESH_COMM_ALL_REDUCE || kind == MESH_COMM_REDUCE_SCATTER || kind == MESH_COMM_REDUCE;
}

static bool has_root(mesh_comm_kind kind)
{
    return kind == MESH_COMM_BROADCAST || kind == MESH_COMM_GATHER || kind == MESH_COMM_SCATTER ||
           kind == MESH_COMM_REDUCE;
}

/* Are the parts those of the result? */
static bool gathers(mesh_comm_kind kind)
{
    return kind == MESH_COMM_ALL_GATHER || kind == MESH_COMM_GATHER;
}

static int does_not_fit(uint64_t count, size_t element_bytes, uint64_t total)
{
    return err_set(MESH_ETOOLARGE, "%" PRIu64 " elements of %zu bytes on top of %" PRIu64 " do not fit into memory",
                   count, element_bytes, total);
}

/* Sum of the counts, refusing what would not fit an address space. */
static int sum_counts(const size_t *counts, size_t count, int size, size_t element_bytes, uint64_t *ret_total)
{
    uint64_t most = MEMORY_MAX_BYTES / element_bytes, total = 0;
    if (counts == NULL) {
        *ret_total = (uint64_t)count * (uint64_t)size;
        return count <= most / (uint64_t)size
                   ? 0
                   : does_not_fit(count, element_bytes, (uint64_t)count * ((uint64_t)size - 1));
    }
    for (int i = 0; i < size; i++) {
        if (counts[i] > most || total + counts[i] > most) {
            return does_not_fit(counts[i], element_bytes, total);
        }
        total += counts[i];
    }
    *ret_total = total;
    return 0;
}

static bool all_equal(const size_t *counts, int size)
{
    for (int i = 1; i < size; i++) {
        if (counts[i] != counts[0]) {
            return false;
        }
    }
    return true;
}

static uint32_t digest(const size_t *counts, int size)
{
    uint64_t h = 0;
    for (int i = 0; i < size; i++) {
        uint64_t n = counts[i];
        h = hash_bytes(&n, sizeof n, h);
    }
    uint32_t folded = (uint32_t)(h ^ (h >> 32));
    return folded != 0 ? folded : 1;
}

/* The split sizes of a collective in which all ranks give the same ones. */
static void unify_splits(struct call *c, const size_t **counts, int size)
{
    if (*counts == NULL) {
        return;
    }
    if (all_equal(*counts, size)) {
        c->count = (*counts)[0];
        *counts = NULL;
    } else {
        c->splits = digest(*counts, size);
        c->count = 0;
    }
}

static uint64_t part_before(const size_t *counts, size_t count, int rank)
{
    uint64_t before = counts != NULL ? 0 : (uint64_t)count * (uint64_t)rank;
    for (int i = 0; counts != NULL && i < rank; i++) {
        before += counts[i];
    }
    return before;
}

static int check_buffer(const void *p, uint64_t elements, const char *name, mesh_comm_kind kind)
{
    return elements == 0 || p != NULL ? 0
                                      : err_set(MESH_EINVAL, "%s: %s is NULL, but %" PRIu64 " elements are asked for",
                                                comm_kind_name(kind), name, elements);
}

/* in and out may overlap only where this rank's part stands in its place in the whole. */
static int check_overlap(const struct call *c, uint64_t in_bytes, uint64_t out_bytes, uint64_t place)
{
    const uint8_t *in = c->in, *out = c->out;
    if (in_bytes == 0 || out_bytes == 0 || in + in_bytes <= out || out + out_bytes <= in) {
        return 0;
    }
    bool is_in_place = c->kind == MESH_COMM_REDUCE ? in == out
                       : gathers(c->kind)          ? in == out + place
                                                   : c->kind != MESH_COMM_ALL_TO_ALL && out == in + place;
    return is_in_place ? 0
                       : err_set(MESH_EINVAL,
                                 "%s: in and out overlap, which is allowed only where this rank's part is in its place "
                                 "in the whole (byte %" PRIu64 ")",
                                 comm_kind_name(c->kind), place);
}

/* Elements of in and out, and where this rank's part begins in the whole. */
struct extent {
    uint64_t in, out, place;
};

static int measure(struct call *c, int size, int rank, size_t element_bytes, struct extent *ret)
{
    const size_t *shared = gathers(c->kind) ? c->out_counts : c->in_counts;
    struct extent e = { .in = 0 };
    int r = sum_counts(shared, c->count, size, element_bytes, &c->total);
    if (r < 0) {
        return r;
    }
    uint64_t mine = shared != NULL ? shared[rank] : c->count;
    bool is_root = rank == c->root;
    switch (c->kind) {
    case MESH_COMM_ALL_GATHER:
        e = (struct extent){ .in = mine, .out = c->total, .place = part_before(shared, c->count, rank) };
        break;
    case MESH_COMM_REDUCE_SCATTER:
        e = (struct extent){ .in = c->total, .out = mine, .place = part_before(shared, c->count, rank) };
        break;
    case MESH_COMM_GATHER:
        e = (struct extent){ .in = mine, .out = is_root ? c->total : 0, .place = part_before(shared, c->count, rank) };
        break;
    case MESH_COMM_SCATTER:
        e = (struct extent){ .in = is_root ? c->total : 0, .out = mine, .place = part_before(shared, c->count, rank) };
        break;
    case MESH_COMM_REDUCE:
        c->total = c->count;
        e = (struct extent){ .in = c->count, .out = is_root ? c->count : 0 };
        break;
    case MESH_COMM_ALL_TO_ALL:
        e.in = c->total;
        r = sum_counts(c->out_counts, c->count, size, element_bytes, &e.out);
        break;
    default:
        c->total = c->count;
        e.out = c->count;
    }
    e.place *= element_bytes;
    *ret = e;
    return r;
}

static int check_words(const struct collective_call *given, int size)
{
    if (given->kind == MESH_COMM_BARRIER) {
        return 0;
    }
    if (!dtype_is_valid((int)given->dtype)) {
        return err_set(MESH_EINVAL, "%s: %d is not a dtype", comm_kind_name(given->kind), (int)given->dtype);
    }
    if (has_root(given->kind) && (given->root < 0 || given->root >= size)) {
        return err_set(MESH_EINVAL, "%s: root %d is not in the group, which has %d ranks", comm_kind_name(given->kind),
                       given->root, size);
    }
    if (given->kind == MESH_COMM_ALL_TO_ALL && (given->in_counts == NULL) != (given->out_counts == NULL)) {
        return err_set(MESH_EINVAL, "all_to_all: give the counts of both directions, or of neither");
    }
    if (reduces(given->kind)) {
        int r = reduce_check(given->dtype, given->op);
        return r < 0 ? err_wrap(r, "%s", comm_kind_name(given->kind)) : 0;
    }
    return 0;
}

int call_prepare(struct call *ret_call, const struct collective_call *given, int size, int rank)
{
    int r = check_words(given, size);
    if (r < 0) {
        return r;
    }
    struct call *c = ret_call; /* in place: a copy is felt */
    *c = (struct call){
        .kind = given->kind,
        .dtype = given->kind == MESH_COMM_BARRIER ? MESH_U8 : given->dtype,
        .op = reduces(given->kind) ? given->op : (mesh_reduce_op)0,
        .root = has_root(given->kind) ? given->root : -1,
        .count = given->kind == MESH_COMM_BARRIER ? 0 : given->count,
        .in_counts = given->in_counts,
        .in_rows = given->kind == MESH_COMM_ALL_TO_ALL && given->in_rows > 0 ? given->in_rows : 1,
        .out_counts = given->out_counts,
        .splits = given->parts,
        .algorithm = given->is_monitored ? PLAN_BARRIER_MONITORED : PLAN_NONE,
        .in = given->in,
        .out = given->out,
    };
    if (c->kind == MESH_COMM_REDUCE_SCATTER || c->kind == MESH_COMM_SCATTER) {
        unify_splits(c, &c->in_counts, size);
    } else if (gathers(c->kind)) {
        unify_splits(c, &c->out_counts, size);
    }
    struct extent e;
    size_t element_bytes = dtype_size(c->dtype);
    r = measure(c, size, rank, element_bytes, &e);
    r = r < 0 ? r : check_buffer(c->in, e.in, "in", c->kind);
    r = r < 0 ? r : check_buffer(c->out, e.out, "out", c->kind);
    return r < 0 ? r : check_overlap(c, e.in * element_bytes, e.out * element_bytes, e.place);
}

void call_header(const struct call *c, struct frame_header *ret_header)
{
    struct frame_header *h = ret_header;
    h->kind = FRAME_DATA;
    h->version = FRAME_VERSION;
    h->collective = (uint8_t)c->kind;
    h->dtype = c->kind == MESH_COMM_BARRIER ? 0 : (uint8_t)c->dtype;
    h->op = (uint8_t)c->op;
    h->plan = (uint8_t)c->algorithm;
    h->root = c->root;
    h->count = c->splits != 0 ? c->total : c->count;
    h->tag = c->splits;
    h->reserved = 0;

    /* What all ranks have in common, as the bytes of the header have it: not the count of a pair in all_to_all. */
    const uint64_t shared[] = {
        htole64(h->collective | (uint64_t)h->dtype << 8 | (uint64_t)h->op << 16 | (uint64_t)h->plan << 24 |
                (uint64_t)(uint32_t)h->root << 32),
        htole64(c->kind == MESH_COMM_ALL_TO_ALL ? 0 : h->count),
        htole64(h->tag),
    };
    h->fingerprint = hash_bytes(shared, sizeof shared, 1);
}

const char *call_text(const struct frame_header *h, char *buf, size_t cap)
{
    const struct call_words words = {
        .kind = h->collective, .dtype = h->dtype, .op = h->op, .root = h->root, .splits = h->tag, .count = h->count
    };
    return call_words_text(&words, buf, cap);
}
