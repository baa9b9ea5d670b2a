/* client/tensor/k_sort.c - the elements of each line along dim[0] in order, with where they were.
 *
 * Equal elements keep their order whichever way it runs; NaN is the largest.  Short lines go by a merge sort of positions, long
 * ones by a radix sort of whole numbers that are ordered like the elements.  Few of many are selected with a heap of as many, in
 * the same order.
 *     sort       mode 1: descending
 *     topk       the index[0] largest, descending; a line with fewer elements is filled up with such as are not there
 * In both in[1], when there is one, has the elements' indices, INT64_MAX for an element that is not there.
 *     put_along  the adjoint of both: dy added into zeros of extent index[0] at the indices
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/float_bits.h"
#include "base/util.h"
#include "tensor/kernels.h"
#include "tensor/lines.h"
#include "tensor/numbers.h"
#include "tensor/tensor.h"

#define NOT_THERE     INT64_MAX
#define SELECTS_BELOW 4 /* a part of a line: fewer than one in so many are selected, more are sorted */

struct line {
    const void *x; /* element j at x[j * step] */
    int64_t step;
    bool is_descending;
};

/* Whether element i comes before element j for its value's sake. */
typedef bool (*before_fn)(const struct line *l, int64_t i, int64_t j);
typedef void (*move_fn)(void *to, int64_t j, const void *from, int64_t i);

#define NAN_ORDER_F32(a, b) (isnan(a) && !isnan(b))
#define NAN_ORDER_F64(a, b) (isnan(a) && !isnan(b))
#define NAN_ORDER_I8(a, b)  false
#define NAN_ORDER_U8(a, b)  false
#define NAN_ORDER_I32(a, b) false
#define NAN_ORDER_I64(a, b) false

#define ORDER(D, T, U, unused)                                                                                         \
    static bool before_##D(const struct line *l, int64_t i, int64_t j)                                                 \
    {                                                                                                                  \
        const T *x = l->x;                                                                                             \
        T a = x[i * l->step], b = x[j * l->step];                                                                      \
        return l->is_descending ? a > b || NAN_ORDER_##D(a, b) : a < b || NAN_ORDER_##D(b, a);                         \
    }                                                                                                                  \
    static void move_##D(void *to, int64_t j, const void *from, int64_t i)                                             \
    {                                                                                                                  \
        ((T *)to)[j] = ((const T *)from)[i];                                                                           \
    }
NUMBER_TYPES(ORDER, 0)
#define BEFORE_ENTRY(D, T, U, unused) [MESH_##D] = before_##D,
#define MOVE_ENTRY(D, T, U, unused)   [MESH_##D] = move_##D,
static const before_fn befores[N_DTYPES] = { NUMBER_TYPES(BEFORE_ENTRY, 0) };
static const move_fn moves[N_DTYPES] = { NUMBER_TYPES(MOVE_ENTRY, 0) };

/* Merges the runs [begin, middle) and [middle, end) of from into to. */
static void merge(const struct line *l, before_fn before, const int64_t *from, int64_t *to, const int64_t run[3])
{
    int64_t a = run[0], b = run[1];
    for (int64_t k = run[0]; k < run[2]; k++) {
        bool takes_b = a == run[1] || (b < run[2] && before(l, from[b], from[a]));
        to[k] = takes_b ? from[b++] : from[a++];
    }
}

/* Sorts order[0..n); the result is in the array returned, one of the two. */
static int64_t *sort_positions(const struct line *l, before_fn before, int64_t *order, int64_t *spare, int64_t n)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t run[3] = { begin, MIN(begin + width, n), MIN(begin + 2 * width, n) };
            merge(l, before, order, spare, run);
        }
        int64_t *t = order;
        order = spare;
        spare = t;
    }
    return order;
}

/* --- long lines: a byte of the key at a time, the lowest first --------------------------------------------------------- */

#define RADIX_FROM 128 /* elements of a line */

struct keyed {
    uint64_t key;
    int64_t position;
};
typedef void (*keys_fn)(const struct line *l, const int64_t *order, struct keyed *to, int64_t n);

/* Ordered like the numbers: of negative ones, whose bits run the other way, all are turned; -0 is 0, a NaN a NaN. */
static inline uint64_t key_F32(float v)
{
    uint32_t bits = v == 0 ? 0 : float_bits(v), sign = UINT32_C(1) << 31;
    return isnan(v) ? UINT32_MAX : (bits & sign) != 0 ? (uint32_t)~bits : bits | sign;
}

static inline uint64_t key_F64(double v)
{
    uint64_t bits = v == 0 ? 0 : double_bits(v), sign = UINT64_C(1) << 63;
    return isnan(v) ? UINT64_MAX : (bits & sign) != 0 ? ~bits : bits | sign;
}

static inline uint64_t key_I8(int8_t v)
{
    return (uint8_t)v ^ UINT64_C(0x80);
}

static inline uint64_t key_U8(uint8_t v)
{
    return v;
}

static inline uint64_t key_I32(int32_t v)
{
    return (uint32_t)v ^ UINT64_C(0x80000000);
}

static inline uint64_t key_I64(int64_t v)
{
    return (uint64_t)v ^ UINT64_C(1) << 63;
}

#define KEYS(D, T, U, unused)                                                                                          \
    static void keys_##D(const struct line *l, const int64_t *order, struct keyed *to, int64_t n)                      \
    {                                                                                                                  \
        const T *x = l->x;                                                                                             \
        const uint64_t turned = l->is_descending ? UINT64_MAX : 0;                                                     \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            to[j] = (struct keyed){ key_##D(x[order[j] * l->step]) ^ turned, order[j] };                               \
        }                                                                                                              \
    }
NUMBER_TYPES(KEYS, 0)
#define KEYS_ENTRY(D, T, U, unused) [MESH_##D] = keys_##D,
static const keys_fn keys_of[N_DTYPES] = { NUMBER_TYPES(KEYS_ENTRY, 0) };

/* Sorts by the byte at `shift`, in order otherwise; false: all have the same, and nothing was written. */
static bool sort_by_byte(const struct keyed *from, struct keyed *to, int64_t n, int shift)
{
    int64_t next[UINT8_MAX + 1] = { 0 }, begin = 0;
    for (int64_t j = 0; j < n; j++) {
        next[from[j].key >> shift & UINT8_MAX]++;
    }
    if (next[from[0].key >> shift & UINT8_MAX] == n) {
        return false;
    }
    for (int b = 0; b <= UINT8_MAX; b++) {
        int64_t count = next[b];
        next[b] = begin;
        begin += count;
    }
    for (int64_t j = 0; j < n; j++) {
        to[next[from[j].key >> shift & UINT8_MAX]++] = from[j];
    }
    return true;
}

/* Sorts order[0..n) with room for 2 n keyed positions. */
static void sort_by_keys(const struct line *l, mesh_dtype t, int64_t *order, struct keyed *room, int64_t n)
{
    struct keyed *from = room, *to = room + n;
    keys_of[t](l, order, from, n);
    for (int shift = 0; shift < 8 * (int)dtype_size(t); shift += 8) {
        if (sort_by_byte(from, to, n, shift)) {
            struct keyed *sorted = to;
            to = from;
            from = sorted;
        }
    }
    for (int64_t j = 0; j < n; j++) {
        order[j] = from[j].position;
    }
}

/* --- the first k of n: a heap of the best seen so far, the last of them on top ---------------------------------------- */

/* Whether position i stands before position j in the result: equal elements by position. */
static bool stands_before(const struct line *l, before_fn before, int64_t i, int64_t j)
{
    return before(l, i, j) || (i < j && !before(l, j, i));
}

static void sink(const struct line *l, before_fn before, int64_t *heap, int64_t at, int64_t n)
{
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && stands_before(l, before, heap[child], heap[child + 1]) ? 1 : 0;
        if (!stands_before(l, before, heap[at], heap[child])) {
            return;
        }
        int64_t t = heap[at];
        heap[at] = heap[child];
        heap[child] = t;
        at = child;
    }
}

/* Leaves the first k of order[0..n), which ascend, at its beginning and in order. */
static void select_positions(const struct line *l, before_fn before, int64_t *order, int64_t n, int64_t k)
{
    for (int64_t at = k / 2; at-- > 0;) {
        sink(l, before, order, at, k);
    }
    for (int64_t j = k; j < n; j++) {
        if (before(l, order[j], order[0])) { /* a later position: only a better value gets in */
            order[0] = order[j];
            sink(l, before, order, 0, k);
        }
    }
    for (int64_t last = k - 1; last > 0; last--) {
        int64_t t = order[0];
        order[0] = order[last];
        order[last] = t;
        sink(l, before, order, 0, last);
    }
}

struct sorting {
    const struct kernel_call *c;
    struct lines from, to;
    bool is_descending;
    int64_t first;        /* index of element 0 of each line */
    const int64_t *given; /* indices of the elements; NULL: first, first + 1, ... */
    struct keyed *room;   /* for two lines; likewise order and spare, for one each */
    int64_t *order, *spare;
};

/* The positions of line i that hold something. */
static int64_t collect(const struct sorting *s, int64_t begin)
{
    int64_t n = 0;
    for (int64_t j = 0; j < s->from.length; j++) {
        if (s->given == NULL || s->given[begin + j * s->from.step] != NOT_THERE) {
            s->order[n++] = j;
        }
    }
    return n;
}

/* As many as leave; of few among many nothing else is sorted. */
static const int64_t *put_in_order(const struct sorting *s, const struct line *l, before_fn before, int64_t n)
{
    int64_t k = s->to.length;
    if (k > 0 && k <= n / SELECTS_BELOW) {
        select_positions(l, before, s->order, n, k);
        return s->order;
    }
    if (n >= RADIX_FROM) {
        sort_by_keys(l, s->c->in[0]->dtype, s->order, s->room, n);
        return s->order;
    }
    return sort_positions(l, before, s->order, s->spare, n);
}

static void sort_line(const struct sorting *s, int64_t i)
{
    const struct mesh_tensor *x = s->c->in[0];
    int64_t begin = line_begin(&s->from, i), to = line_begin(&s->to, i), n = collect(s, begin);
    size_t item = tensor_bytes(x) / (size_t)MAX(x->n, 1);
    struct line line = { .x = (const char *)x->data + begin * (int64_t)item,
                         .step = s->from.step,
                         .is_descending = s->is_descending };
    const int64_t *order = put_in_order(s, &line, befores[x->dtype], n);
    for (int64_t j = 0; j < s->to.length; j++) {
        int64_t at = to + j * s->to.step, index = NOT_THERE;
        if (j < n) {
            int64_t source = begin + order[j] * s->from.step;
            moves[x->dtype](s->c->out[0]->data, at, x->data, source);
            index = s->given != NULL ? s->given[source] : s->first + order[j];
        } else {
            memset((char *)s->c->out[0]->data + at * (int64_t)item, 0, item);
        }
        ((int64_t *)s->c->out[1]->data)[at] = index;
    }
}

static int sort_lines(const char *name, struct sorting *s)
{
    const struct kernel_call *c = s->c;
    int dim = c->attr->dim[0];
    if (befores[c->in[0]->dtype] == NULL) {
        return unsupported_dtype(name, c->in[0]->dtype);
    }
    s->from = lines_of(c->in[0]->shape, dim);
    s->to = lines_of(c->out[0]->shape, dim);
    size_t length = (size_t)s->from.length, bytes = length * 2 * (sizeof *s->room + sizeof *s->order);
    s->room = mem_alloc(bytes + 1);
    if (s->room == NULL) {
        return err_no_memory(bytes, "the positions of a sort");
    }
    s->order = (int64_t *)(s->room + 2 * length);
    s->spare = s->order + length;
    for (int64_t i = 0; i < s->to.n; i++) {
        sort_line(s, i);
    }
    mem_free(s->room);
    return 0;
}

static int sort_given(const char *name, const struct kernel_call *c, bool is_descending)
{
    struct sorting s = { .c = c, .is_descending = is_descending };
    s.given = c->in[1] != NULL ? c->in[1]->data : NULL;
    s.first = c->in[0]->shape.dim[c->attr->dim[0]] > 0 ? c->offset[c->attr->dim[0]] : 0;
    return sort_lines(name, &s);
}

int k_sort(const struct kernel_call *c)
{
    return sort_given("sort", c, c->attr->mode != 0);
}

int k_topk(const struct kernel_call *c)
{
    return sort_given("topk", c, true);
}

#define PUT(D, T, U, unused)                                                                                           \
    static void put_##D(const struct kernel_call *c, const struct lines *from, const struct lines *to)                 \
    {                                                                                                                  \
        const T *dy = c->in[0]->data;                                                                                  \
        const int64_t *index = c->in[1]->data;                                                                         \
        T *out = c->out[0]->data;                                                                                      \
        for (int64_t i = 0; i < from->n; i++) {                                                                        \
            for (int64_t j = 0; j < from->length; j++) {                                                               \
                int64_t at = line_begin(from, i) + j * from->step;                                                     \
                out[line_begin(to, i) + index[at] * to->step] += dy[at];                                               \
            }                                                                                                          \
        }                                                                                                              \
    }
FLOAT_TYPES(PUT, 0)

int k_put_along(const struct kernel_call *c)
{
    struct lines from = lines_of(c->in[0]->shape, c->attr->dim[0]), to = lines_of(c->out[0]->shape, c->attr->dim[0]);
    memset(c->out[0]->data, 0, tensor_bytes(c->out[0]));
    if (c->in[0]->dtype == MESH_F32) {
        put_F32(c, &from, &to);
    } else if (c->in[0]->dtype == MESH_F64) {
        put_F64(c, &from, &to);
    } else {
        return unsupported_dtype("put_along", c->in[0]->dtype);
    }
    return 0;
}
