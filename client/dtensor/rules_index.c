/* client/dtensor/rules_index.c - rules of operators that choose elements by numbers: embedding, index_select, gather, scatter_add.
 *
 * Where the indexed dim itself is split, every rank looks up what it has and takes 0 for the rest, so the result is a pending
 * sum: a table is never gathered.  The reverse adds only what falls into the own part: no rank makes more than its part.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/rules.h"

#include "base/dtype.h"

static void add(mesh_placement a, mesh_placement b, mesh_placement c, mesh_placement out, struct rule_list *inout)
{
    struct rule r = rule_whole();
    r.in[0] = a;
    r.in[1] = b;
    r.in[2] = c;
    r.out[0] = out;
    rule_add(inout, &r);
}

static mesh_placement whole(void)
{
    return mesh_replicate();
}

static bool can_add(const struct op_shapes *s)
{
    return dtype_kind(s->in_dtype[0]) != DTYPE_BOOL;
}

/* x [a.., n, b..], index [i..] -> y [a.., i.., b..] */
void rule_take(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    int dim = s->attr.dim[0], n_index = s->in[1].ndim;
    (void)parts;
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (d != dim) {
            add(mesh_shard(d), whole(), whole(), mesh_shard(d < dim ? d : d + n_index - 1), inout);
        }
    }
    for (int d = 0; d < n_index; d++) {
        add(whole(), mesh_shard(d), whole(), mesh_shard(dim + d), inout);
    }
    if (can_add(s)) {
        add(mesh_shard(dim), whole(), whole(), mesh_partial(MESH_SUM), inout);
    }
}

/* x (only its layout counts), dy, index -> dx */
void rule_take_backward(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    int dim = s->attr.dim[0], n_index = s->in[2].ndim;
    (void)parts;
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (d != dim) {
            add(mesh_shard(d), mesh_shard(d < dim ? d : d + n_index - 1), whole(), mesh_shard(d), inout);
        }
    }
    add(mesh_shard(dim), whole(), whole(), mesh_shard(dim), inout);
    for (int d = 0; d < n_index; d++) {
        add(whole(), mesh_shard(dim + d), mesh_shard(d), mesh_partial(MESH_SUM), inout);
    }
    add(whole(), mesh_partial(MESH_SUM), whole(), mesh_partial(MESH_SUM), inout);
    if (dtype_kind(s->in_dtype[1]) == DTYPE_FLOAT) {
        add(whole(), mesh_partial(MESH_AVG), whole(), mesh_partial(MESH_AVG), inout);
    }
}

void rule_gather(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    int dim = s->attr.dim[0];
    (void)parts;
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (d != dim && s->in[0].dim[d] == s->in[1].dim[d]) {
            add(mesh_shard(d), mesh_shard(d), whole(), mesh_shard(d), inout);
        }
    }
    if (s->in[0].ndim == 0) {
        return;
    }
    add(whole(), mesh_shard(dim), whole(), mesh_shard(dim), inout);
    if (can_add(s)) {
        add(mesh_shard(dim), whole(), whole(), mesh_partial(MESH_SUM), inout);
    }
}

/* y = x + what src adds; without x (mode) the parts of a pending sum need no x that is pending. */
void rule_scatter_add(const struct op_shapes *s, int parts, struct rule_list *inout)
{
    int dim = s->attr.dim[0];
    bool is_from_zero = (s->attr.mode & INDEX_FROM_ZERO) != 0, is_float = dtype_kind(s->in_dtype[0]) == DTYPE_FLOAT;
    mesh_placement sum = mesh_partial(MESH_SUM), avg = mesh_partial(MESH_AVG);
    (void)parts;
    for (int d = 0; d < s->in[0].ndim; d++) {
        if (d != dim && s->in[0].dim[d] == s->in[1].dim[d]) {
            add(mesh_shard(d), mesh_shard(d), mesh_shard(d), mesh_shard(d), inout);
        }
    }
    if (s->in[0].ndim > 0) {
        add(mesh_shard(dim), whole(), whole(), mesh_shard(dim), inout);
        add(is_from_zero ? whole() : sum, mesh_shard(dim), mesh_shard(dim), sum, inout);
    }
    add(is_from_zero ? whole() : sum, whole(), sum, sum, inout);
    if (is_float) {
        add(is_from_zero ? whole() : avg, whole(), avg, avg, inout);
    }
    if (is_float && !is_from_zero) {
        add(avg, whole(), whole(), avg, inout); /* avg(x_i) + a = avg(x_i + a) */
        add(whole(), whole(), avg, avg, inout);
    }
}
