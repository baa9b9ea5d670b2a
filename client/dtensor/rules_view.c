/* client/dtensor/rules_view.c - rules of operators that move or repeat elements: transpose, reshape, expand and its adjoint.
 *
 * Reshape is decided exactly.  The elements of a local part, as row-major indices of the whole, are
 *      { offset + i_0 s_0 + i_1 s_1 + ... : 0 <= i_k < n_k },  s_k > n_(k+1) s_(k+1)
 * after runs that continue each other are merged (n_(k+1) s_(k+1) = s_k) and extents of 1 dropped.  That form is unique: s_last is the
 * smallest gap, n_last how long the first run with that gap is, and so on outwards.  So two parts hold the same elements in
 * the same order exactly when their forms are equal.  No division of extents by ranks is asked for: uneven, nested and empty parts
 * come out right or are refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/rules.h"

#include "base/util.h"
#include "dtensor/stream.h"
#include "tensor/shape.h"

#define ROOM_FOR_PENDING 8 /* rules that pass pending reductions are added behind */

struct runs {
    bool is_empty;
    int n;
    int64_t offset, count[MESH_MAX_NDIM], stride[MESH_MAX_NDIM]; /* innermost first */
};

static struct runs runs_of(mesh_shape global, const struct box *b)
{
    struct runs r = { .n = 0 };
    int64_t stride = 1;
    for (int d = global.ndim - 1; d >= 0; d--) {
        int64_t count = b->extent[d];
        if (count == 0) {
            return (struct runs){ .is_empty = true };
        }
        r.offset += b->offset[d] * stride;
        if (count > 1 && r.n > 0 && r.count[r.n - 1] * r.stride[r.n - 1] == stride) {
            r.count[r.n - 1] *= count;
        } else if (count > 1) {
            r.count[r.n] = count;
            r.stride[r.n++] = stride;
        }
        stride *= global.dim[d];
    }
    return r;
}

static bool runs_equal(const struct runs *a, const struct runs *b)
{
    if (a->is_empty || b->is_empty) {
        return a->is_empty == b->is_empty;
    }
    bool is_equal = a->n == b->n && a->offset == b->offset;
    for (int k = 0; is_equal && k < a->n; k++) {
        is_equal = a->count[k] == b->count[k] && a->stride[k] == b->stride[k];
    }
    return is_equal;
}

/* Strided parts have no such form: they are compared run by run. */
static bool streams_agree(mesh_shape from, mesh_shape to, const int *mesh_size, const int *c, const mesh_placements *in,
                          const mesh_placements *out)
{
    struct stream a, b;
    stream_first(&a, from, mesh_size, c, in);
    stream_first(&b, to, mesh_size, c, out);
    return streams_are_equal(&a, &b);
}

static bool forms_agree(mesh_shape from, mesh_shape to, const int *mesh_size, const int *c, const mesh_placements *in,
                        const mesh_placements *out)
{
    struct box a, b;
    layout_box(from, mesh_size, c, in, &a);
    layout_box(to, mesh_size, c, out, &b);
    struct runs x = runs_of(from, &a), y = runs_of(to, &b);
    return runs_equal(&x, &y);
}

bool reshape_is_exact(mesh_shape from, mesh_shape to, int mesh_ndim, const int *mesh_size, const mesh_placements *in,
                      const mesh_placements *out)
{
    int c[MESH_MAX_MESH_NDIM] = { 0 };
    bool has_stride = placements_have_stride(in) || placements_have_stride(out);
    do {
        if (!(has_stride ? streams_agree : forms_agree)(from, to, mesh_size, c, in, out)) {
            return false;
        }
    } while (next_coordinate(mesh_ndim, mesh_size, c));
    return true;
}

bool dims_overlap(mesh_shape from, int i, mesh_shape to, int j)
{
    int64_t a = shape_inner(from, i), b = shape_inner(to, j);
    return MAX(a, b) < MIN(a * from.dim[i], b * to.dim[j]);
}

static void add_pair(mesh_placement in, mesh_placement out, struct rule_list *inout)
{
    struct rule r = rule_whole();
    r.in[0] = in;
    r.out[0] = out;
    rule_add(inout, &r);
}

static void split_alike(int i, int j, struct rule_list *inout)
{
    add_pair(mesh_shard(i), mesh_shard(j), inout);
}

/* A shard of dim i repeats every `period` elements; dim j has the same parts when it is cut into chunks of that many.  What earlier
 * mesh dims have cut already (before of dim i, after of dim j, as many parts) is not cut by a stride. */
static bool chunked_alike(const struct op_shapes *s, mesh_placement in, int j, int before, int after,
                          mesh_placement *ret_out)
{
    int64_t factor = (int64_t)placement_factor(in) * before;
    int64_t a = shape_inner(s->in[0], in.dim), extent = s->in[0].dim[in.dim];
    int64_t b = shape_inner(s->out[0], j), whole = b * s->out[0].dim[j], period = a * extent / factor;
    bool is_same_dim = before == after && a == b && extent == s->out[0].dim[j];
    if (!is_same_dim &&
        (extent % factor != 0 || period == 0 || b == 0 || period % b != 0 || whole % (period * after) != 0)) {
        return false;
    }
    int64_t chunks = is_same_dim ? placement_factor(in) : whole / period / after;
    *ret_out = chunks == 1 ? mesh_shard(j) : mesh_strided_shard(j, (int)chunks);
    return chunks > 0 && chunks <= INT32_MAX;
}

/* Where there are several mesh dims, what is not right by itself may be so together with what the others do. */
static void try_pair(const struct op_shapes *s, int parts, mesh_placement in, mesh_placement out,
                     struct rule_list *inout)
{
    mesh_placements before = { .n = 1, .at = { in } }, after = { .n = 1, .at = { out } };
    bool may_combine = s->mesh_ndim > 1 && dims_overlap(s->in[0], in.dim, s->out[0], out.dim);
    bool has_room = inout->n < RULES_MAX - ROOM_FOR_PENDING;
    if (has_room && (may_combine || reshape_is_exact(s->in[0], s->out[0], 1, &parts, &before, &after))) {
        add_pair(in, out, inout);
    }
}

/* The product of those of the earlier mesh dims whose bit is set. */
static int parts_before(const struct op_shapes *s, int set)
{
    int parts = 1;
    for (int k = 0; k < s->n_earlier; k++) {
        parts *= (set >> k & 1) != 0 ? s->earlier[k] : 1;
    }
    return parts;
}

static void try_strides(const struct op_shapes *s, int parts, int j, struct rule_list *inout)
{
    mesh_placement now = s->now[0], out;
    for (int before = 0; before < 1 << s->n_earlier; before++) {
        for (int after = 0; after < 1 << s->n_earlier; after++) {
            if (chunked_alike(s, now, j, parts_before(s, before), parts_before(s, after), &out)) {
                try_pair(s, parts, now, out, inout);
            }
        }
    }
}

void rule_reshape(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    for (int i = 0; i < s->in[0].ndim; i++) {
        for (int j = 0; j < s->out[0].ndim; j++) {
            try_pair(s, parts, mesh_shard(i), mesh_shard(j), inout);
        }
    }
    for (int j = 0; placement_is_shard(s->now[0]) && j < s->out[0].ndim; j++) {
        try_strides(s, parts, j, inout);
    }
}

void rule_transpose(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    int a = s->attr.dim[0], b = s->attr.dim[1];
    for (int d = 0; d < s->in[0].ndim; d++) {
        split_alike(d, d == a ? b : d == b ? a : d, inout);
    }
}

void rule_expand(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    int lead = s->out[0].ndim - s->in[0].ndim;
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (s->in[0].dim[d] == s->out[0].dim[d + lead]) {
            split_alike(d, d + lead, inout);
        }
    }
}

void rule_sum_to(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    int lead = s->in[0].ndim - s->out[0].ndim;
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (d >= lead && s->in[0].dim[d] == s->out[0].dim[d - lead]) {
            split_alike(d, d - lead, inout);
            continue;
        }
        struct rule r = rule_whole();
        r.in[0] = mesh_shard(d);
        r.out[0] = mesh_partial(MESH_SUM);
        rule_add(inout, &r);
    }
}

void rule_reduce(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    int to = 0;
    for (int d = 0; d < s->in[0].ndim; d++) {
        bool goes = (s->attr.dims >> d & 1U) != 0;
        struct rule r = rule_whole();
        r.in[0] = mesh_shard(d);
        r.out[0] = goes ? mesh_partial(MESH_SUM) : mesh_shard(to);
        rule_add(inout, &r);
        to += !goes || s->attr.keepdim;
    }
}

/* The dimension the operator works along is whole; every other one may be split on all tensors alike. */
void rule_along(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    (void)parts;
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (d == s->attr.dim[0]) {
            continue;
        }
        struct rule r = rule_whole();
        for (int i = 0; i < s->n_in; i++) {
            r.in[i] = mesh_shard(d);
        }
        for (int o = 0; o < s->n_out; o++) {
            r.out[o] = mesh_shard(d);
        }
        rule_add(inout, &r);
    }
}
