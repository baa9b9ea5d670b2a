/* client/dtensor/along_sort.c - sorts lines whose elements are spread over ranks.
 *
 *      each part sorted   [1 4 7 9]  [2 4 4 8]  [0 3 5 6]
 *      cut alike          [1|4|7 9]  [2|4 4|8]  [0 3|5|6]      every part's share of places 0-3, 4-7 and 8-11 of the result
 *      exchanged, sorted  [0 1 2 3]  [4 4 4 5]  [6 7 8 9]
 *
 * Elements are compared as unsigned keys of the same order, so that the element at a place of the result is found digit
 * by digit: how many elements there are below each candidate is one all_reduce of counts for all lines and cuts
 * together.  Of elements equal to it the earlier parts' come first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/along_sort.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "dtensor/sharers.h"
#include "tensor/lines.h"

#define DIGIT_BITS 4
#define DIGITS     ((1 << DIGIT_BITS) - 1) /* candidates of a round: all but 0 */

struct sorting {
    mesh_dtensor *x;
    int dim, item_bits;
    bool is_descending, is_member;
    struct sharers sharers;
    struct mesh_tensor *values, *indices; /* of this part, sorted */
    struct lines lines;                   /* of this part */
    int64_t n_lines;
    uint64_t *key;  /* [line, cut] the element before which the cut is, as far as it is known */
    int64_t *begin; /* [part, line, 0..n parts] where each part is cut */
};

/* --- keys --------------------------------------------------------------------------------------------------------- */

static uint64_t mask_of(int bits)
{
    return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static uint64_t infinity_of(mesh_dtype t)
{
    switch (t) {
    case MESH_F16:
        return UINT64_C(0x7c00);
    case MESH_BF16:
        return UINT64_C(0x7f80);
    case MESH_F32:
        return UINT64_C(0x7f800000);
    default:
        return UINT64_C(0x7ff0000000000000);
    }
}

/* Equal elements have equal keys (also -0 and 0, and any two NaN, which are the largest), others are ordered as they
 * are. */
static uint64_t key_of(const struct sorting *s, int64_t element)
{
    mesh_dtype t = s->x->dtype;
    uint64_t raw = 0, all = mask_of(s->item_bits), sign = UINT64_C(1) << (s->item_bits - 1);
    size_t item = (size_t)s->item_bits / 8;
    const char *from = (const char *)s->values->data + (size_t)element * item;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    memcpy((char *)&raw + sizeof raw - item, from, item);
#else
    memcpy(&raw, from, item);
#endif
    if (dtype_kind(t) == DTYPE_FLOAT) {
        bool is_nan = (raw & ~sign) > infinity_of(t);
        raw = raw == sign ? 0 : raw;
        raw = is_nan ? all : ((raw & sign) != 0 ? ~raw & all : raw | sign);
    } else if (t != MESH_U8) {
        raw ^= sign;
    }
    return s->is_descending ? ~raw & all : raw;
}

static int64_t element_at(const struct sorting *s, int64_t line, int64_t j)
{
    return line_begin(&s->lines, line) + j * s->lines.step;
}

/* How many elements of the line have a lower key. */
static int64_t count_below(const struct sorting *s, int64_t line, uint64_t key)
{
    int64_t least = 0, most = s->lines.length;
    while (least < most) {
        int64_t middle = least + (most - least) / 2;
        if (key_of(s, element_at(s, line, middle)) < key) {
            least = middle + 1;
        } else {
            most = middle;
        }
    }
    return least;
}

/* --- where to cut ------------------------------------------------------------------------------------------------- */

static mesh_placements on_split_dims(const struct sorting *s, mesh_placement to)
{
    mesh_placements p = s->x->placements;
    for (int m = 0; m < p.n; m++) {
        p.at[m] = (s->sharers.mesh_dims >> m & 1U) != 0 ? to : p.at[m];
    }
    return p;
}

/* A table of i64 with `extent` numbers for each line, in the shape of x with that extent; this rank's numbers are
 * zeros. */
static struct mesh_tensor *new_table(const struct sorting *s, int64_t extent)
{
    mesh_shape local = s->is_member ? s->x->local->shape : MESH_SHAPE(0);
    if (s->is_member) {
        local.dim[s->dim] = extent;
    }
    return tensor_new_zeroed(local, MESH_I64);
}

/* The table of all ranks: summed up, or (split) one part behind the other.  Takes the reference. */
static mesh_dtensor *table_of_all(const struct sorting *s, struct mesh_tensor *local, int64_t extent, bool is_summed)
{
    mesh_shape shape = s->x->shape;
    shape.dim[s->dim] = extent;
    mesh_placements now = on_split_dims(s, is_summed ? mesh_partial(MESH_SUM) : mesh_shard(s->dim));
    mesh_placements whole = on_split_dims(s, mesh_replicate());
    mesh_dtensor *t = local == NULL ? NULL : dtensor_new(s->x->mesh, shape, MESH_I64, &now, local);
    return t == NULL ? NULL : dtensor_redistribute(t, &whole);
}

static int64_t *table_at(const struct mesh_tensor *t, int dim, int64_t line, int64_t place)
{
    struct lines l = lines_of(t->shape, dim);
    return (int64_t *)t->data + line_begin(&l, line) + place * l.step;
}

/* Before which place of the result cut c is, of the n - 1 between parts. */
static int64_t place_of_cut(const struct sorting *s, int c)
{
    return sharers_chunk(&s->sharers, c + 1, s->x->shape.dim[s->dim]).offset;
}

static uint64_t *key_at(const struct sorting *s, int64_t line, int c)
{
    return &s->key[line * (s->sharers.n - 1) + c];
}

/* One digit more of each key: the largest candidate below which there are no more elements than before the cut. */
static int find_digit(const struct sorting *s, int shift)
{
    int n_cuts = s->sharers.n - 1;
    struct mesh_tensor *mine = new_table(s, (int64_t)n_cuts * DIGITS);
    for (int64_t i = 0; mine != NULL && i < s->n_lines * n_cuts * DIGITS; i++) {
        int64_t line = i / (n_cuts * DIGITS), at = i % (n_cuts * DIGITS);
        uint64_t digit = (uint64_t)(at % DIGITS + 1) << shift;
        *table_at(mine, s->dim, line, at) = count_below(s, line, *key_at(s, line, (int)(at / DIGITS)) | digit);
    }
    mesh_dtensor *all = table_of_all(s, mine, (int64_t)n_cuts * DIGITS, true);
    if (all == NULL) {
        return err_status();
    }
    for (int64_t i = 0; i < s->n_lines * n_cuts; i++) {
        int64_t line = i / n_cuts, digit = 0;
        int c = (int)(i % n_cuts);
        while (digit < DIGITS &&
               *table_at(all->local, s->dim, line, (int64_t)c * DIGITS + digit) <= place_of_cut(s, c)) {
            digit++;
        }
        *key_at(s, line, c) |= (uint64_t)digit << shift;
    }
    return 0;
}

static int64_t *begin_at(const struct sorting *s, int part, int64_t line, int to)
{
    return &s->begin[((int64_t)part * s->n_lines + line) * (s->sharers.n + 1) + to];
}

/* Of the elements that equal the key of a cut, the earlier parts' go before it as long as there is room. */
static void cut(const struct sorting *s, const struct mesh_tensor *counts, int64_t line, int c)
{
    int n = s->sharers.n;
    int64_t room = place_of_cut(s, c), all = s->x->shape.dim[s->dim];
    for (int part = 0; part < n; part++) {
        room -= *table_at(counts, s->dim, line, ((int64_t)part * (n - 1) + c) * 2);
    }
    for (int part = 0; part < n; part++) {
        int64_t below = *table_at(counts, s->dim, line, ((int64_t)part * (n - 1) + c) * 2);
        int64_t equal = *table_at(counts, s->dim, line, ((int64_t)part * (n - 1) + c) * 2 + 1);
        int64_t taken = MIN(equal, MAX(0, room));
        bool is_end = place_of_cut(s, c) == all;
        *begin_at(s, part, line, c + 1) = is_end ? sharers_chunk(&s->sharers, part, all).extent : below + taken;
        room -= taken;
    }
}

static int find_cuts(const struct sorting *s)
{
    int n = s->sharers.n, r = 0;
    for (int shift = s->item_bits - DIGIT_BITS; r == 0 && shift >= 0; shift -= DIGIT_BITS) {
        r = find_digit(s, shift);
    }
    struct mesh_tensor *mine = r == 0 ? new_table(s, (int64_t)(n - 1) * 2) : NULL;
    for (int64_t i = 0; mine != NULL && i < s->n_lines * (n - 1); i++) {
        int64_t line = i / (n - 1), c = i % (n - 1);
        uint64_t key = *key_at(s, line, (int)c);
        int64_t below = count_below(s, line, key);
        bool is_last = key == mask_of(s->item_bits);
        *table_at(mine, s->dim, line, 2 * c) = below;
        *table_at(mine, s->dim, line, 2 * c + 1) = (is_last ? s->lines.length : count_below(s, line, key + 1)) - below;
    }
    mesh_dtensor *counts = r < 0 ? NULL : table_of_all(s, mine, (int64_t)n * (n - 1) * 2, false);
    if (counts == NULL) {
        return r < 0 ? r : err_status();
    }
    for (int64_t line = 0; line < s->n_lines; line++) {
        for (int part = 0; part < n; part++) {
            *begin_at(s, part, line, 0) = 0;
            *begin_at(s, part, line, n) = sharers_chunk(&s->sharers, part, s->x->shape.dim[s->dim]).extent;
        }
        for (int c = 0; c < n - 1; c++) {
            cut(s, counts->local, line, c);
        }
    }
    return 0;
}

/* --- the exchange ------------------------------------------------------------------------------------------------- */

static int64_t share_of(const struct sorting *s, int from, int to, int64_t line)
{
    return *begin_at(s, from, line, to + 1) - *begin_at(s, from, line, to);
}

static void count_shares(const struct sorting *s, size_t *ret_sent, size_t *ret_got)
{
    for (int part = 0; part < s->sharers.n; part++) {
        ret_sent[part] = ret_got[part] = 0;
        for (int64_t line = 0; line < s->n_lines; line++) {
            ret_sent[part] += (size_t)share_of(s, s->sharers.me, part, line);
            ret_got[part] += (size_t)share_of(s, part, s->sharers.me, line);
        }
    }
}

static void copy_item(void *to, int64_t i, const void *from, int64_t j, size_t item)
{
    memcpy((char *)to + (size_t)i * item, (const char *)from + (size_t)j * item, item);
}

/* For each part, line by line, what it gets of mine. */
static void pack(const struct sorting *s, const struct mesh_tensor *from, struct mesh_tensor *to)
{
    size_t item = dtype_size(from->dtype);
    int64_t at = 0;
    for (int part = 0; part < s->sharers.n; part++) {
        for (int64_t line = 0; line < s->n_lines; line++) {
            int64_t begin = *begin_at(s, s->sharers.me, line, part);
            for (int64_t j = 0; j < share_of(s, s->sharers.me, part, line); j++) {
                copy_item(to->data, at++, from->data, element_at(s, line, begin + j), item);
            }
        }
    }
}

/* Each line is what the parts gave, one after another. */
static void unpack(const struct sorting *s, const struct mesh_tensor *from, struct mesh_tensor *to)
{
    size_t item = dtype_size(from->dtype);
    int64_t at = 0;
    for (int part = 0; part < s->sharers.n; part++) {
        for (int64_t line = 0; line < s->n_lines; line++) {
            int64_t begin = 0;
            for (int before = 0; before < part; before++) {
                begin += share_of(s, before, s->sharers.me, line);
            }
            for (int64_t j = 0; j < share_of(s, part, s->sharers.me, line); j++) {
                copy_item(to->data, element_at(s, line, begin + j), from->data, at++, item);
            }
        }
    }
}

/* The part's share of the result, not yet in order; the caller's reference. */
static struct mesh_tensor *exchanged(const struct sorting *s, const struct mesh_tensor *mine, const size_t *counts)
{
    struct mesh_tensor *sent = tensor_new(MESH_SHAPE(mine->n), mine->dtype);
    struct mesh_tensor *got = sent != NULL ? tensor_new(MESH_SHAPE(mine->n), mine->dtype) : NULL;
    struct mesh_tensor *out = got != NULL ? tensor_new(mine->shape, mine->dtype) : NULL;
    int r = out != NULL ? 0 : err_status();
    if (r == 0) {
        pack(s, mine, sent);
        r = sharers_swap(&s->sharers, &(struct sharers_swap){ sent, got, counts, counts + s->sharers.n });
    }
    if (r == 0) {
        unpack(s, got, out);
    }
    tensor_unref(sent);
    tensor_unref(got);
    if (r < 0) {
        tensor_unref(out);
        return NULL;
    }
    return out;
}

/* Sorts x; `given` are its elements' indices, or NULL: counted from `offset`.  Gives two references. */
static int sort_part(const struct op_attr *attr, struct mesh_tensor *x, struct mesh_tensor *given,
                     const int64_t *offset, struct mesh_tensor *ret_out[2])
{
    struct mesh_tensor *values = tensor_new(x->shape, x->dtype);
    struct mesh_tensor *indices = values != NULL ? tensor_new(x->shape, MESH_I64) : NULL;
    struct kernel_call call = { .in = { x, given }, .out = { values, indices }, .attr = attr };
    memcpy(call.offset, offset, sizeof call.offset);
    int r = indices != NULL ? kernel_run(k_sort, &call) : err_status();
    if (r < 0) {
        tensor_unref(values);
        tensor_unref(indices);
        return r;
    }
    ret_out[0] = values;
    ret_out[1] = indices;
    return 0;
}

static int redeal(struct sorting *s, const struct op_attr *attr)
{
    static const int64_t nowhere[MESH_MAX_NDIM];
    size_t *counts = mem_new_array(size_t, 2 * (size_t)s->sharers.n);
    struct mesh_tensor *values = NULL, *indices = NULL, *sorted[2] = { NULL };
    int r = counts != NULL ? 0 : err_no_memory(2 * (size_t)s->sharers.n * sizeof *counts, "the sizes of the parts");
    if (r == 0) {
        count_shares(s, counts, counts + s->sharers.n);
        values = exchanged(s, s->values, counts);
        indices = values != NULL ? exchanged(s, s->indices, counts) : NULL;
        r = indices != NULL ? sort_part(attr, values, indices, nowhere, sorted) : err_status();
    }
    if (r == 0) {
        tensor_unref(s->values);
        tensor_unref(s->indices);
        s->values = sorted[0];
        s->indices = sorted[1];
    }
    tensor_unref(values);
    tensor_unref(indices);
    mem_free(counts);
    return r;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static int begin(struct sorting *s, const struct op_attr *attr)
{
    struct box b = { .ndim = 0 };
    struct mesh_tensor *sorted[2] = { NULL };
    if (s->is_member) {
        layout_box(s->x->shape, s->x->mesh->size, s->x->mesh->coordinate, &s->x->placements, &b);
        s->lines = lines_of(s->x->local->shape, s->dim);
        s->n_lines = s->lines.n;
    }
    size_t n = (size_t)s->sharers.n, n_lines = (size_t)s->n_lines;
    s->key = mem_new_array(uint64_t, n_lines * (n - 1) + 1);
    s->begin = mem_new_array(int64_t, n * n_lines * (n + 1) + 1);
    if (s->key == NULL || s->begin == NULL) {
        return err_no_memory(n_lines * n * (n + 2) * sizeof(int64_t), "where parts are cut");
    }
    memset(s->key, 0, n_lines * (n - 1) * sizeof *s->key);
    int r = s->is_member ? sort_part(attr, s->x->local, NULL, b.offset, sorted) : 0;
    s->values = s->is_member ? sorted[0] : tensor_new(MESH_SHAPE(0), s->x->dtype);
    s->indices = s->is_member ? sorted[1] : tensor_new(MESH_SHAPE(0), MESH_I64);
    return r < 0 || (s->values != NULL && s->indices != NULL) ? r : err_status();
}

int along_sort(mesh_dtensor *x, const struct op_attr *attr, mesh_dtensor *ret_out[2])
{
    struct sorting s = { .x = x,
                         .dim = attr->dim[0],
                         .item_bits = (int)dtype_size(x->dtype) * 8,
                         .is_descending = attr->mode != 0,
                         .is_member = x->mesh->is_member,
                         .sharers = sharers_of(x->mesh, &x->placements, attr->dim[0]) };
    int r = begin(&s, attr);
    r = r < 0 ? r : find_cuts(&s);
    r = r < 0 || !s.is_member ? r : redeal(&s, attr);
    mem_free(s.key);
    mem_free(s.begin);
    if (r < 0) {
        tensor_unref(s.values);
        tensor_unref(s.indices);
        return r;
    }
    mesh_dtensor *values = dtensor_new(x->mesh, x->shape, x->dtype, &x->placements, s.values);
    mesh_dtensor *indices = dtensor_new(x->mesh, x->shape, MESH_I64, &x->placements, s.indices);
    if (values == NULL || indices == NULL) {
        return err_status();
    }
    ret_out[0] = values;
    ret_out[1] = indices;
    return 0;
}
