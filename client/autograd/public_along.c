/* client/autograd/public_along.c - operators along one dim: softmax, log_softmax, cumsum, sort, topk.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_reduce.h>

#include "autograd/public_call.h"
#include "autograd/sharded.h"
#include "base/dtype.h"
#include "base/error.h"
#include "core/scope.h"
#include "dtensor/along.h"
#include "dtensor/along_sort.h"
#include "tensor/shape.h"

static mesh_dtensor *or_fail(mesh_dtensor *y)
{
    return y != NULL ? y : scope_fail(err_status());
}

/* The dim as 0..ndim-1; a scalar has none. */
static int dim_attr(const char *name, const mesh_dtensor *x, int dim, struct op_attr *ret_attr)
{
    int d = 0, r = shape_dim(x->shape, dim, name, &d);
    *ret_attr = (struct op_attr){ .dim = { d } };
    return r;
}

static mesh_dtensor *softmax(enum op_id id, mesh_dtensor *x, int dim)
{
    struct op_attr attr;
    int r = dim_attr(op_table[id].name, x, dim, &attr);
    return r < 0 ? scope_fail(r) : or_fail(softmax_of(id, x, attr.dim[0]));
}

MESH_API mesh_dtensor *mesh_softmax(mesh_dtensor *x, int dim)
{
    const struct object *mark = scope_mark();
    return public_enter(__func__, &x, 1) ? public_result(mark, softmax(OP_softmax, x, dim)) : NULL;
}

MESH_API mesh_dtensor *mesh_log_softmax(mesh_dtensor *x, int dim)
{
    const struct object *mark = scope_mark();
    return public_enter(__func__, &x, 1) ? public_result(mark, softmax(OP_log_softmax, x, dim)) : NULL;
}

MESH_API mesh_dtensor *mesh_cumsum(mesh_dtensor *x, int dim)
{
    struct op_attr attr;
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    int r = dim_attr("cumsum", x, dim, &attr);
    if (r < 0) {
        return scope_fail(r);
    }
    if (!is_sharded_along(x, UINT32_C(1) << attr.dim[0])) {
        return public_apply(OP_cumsum, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &attr);
    }
    x = settled(x);
    struct tape_entry e = { .name = "cumsum", .gradient = &g_cumsum, .attr = &attr, .n_in = 1, .in = &x };
    mesh_dtensor *y = x == NULL ? NULL : cumsum_of(x, &attr);
    return public_result(mark, or_fail(y == NULL || dtype_kind(y->dtype) != DTYPE_FLOAT ? y : recorded(&e, y)));
}

/* Values and indices; the values' gradient goes back through the indices. */
static int record_choice(enum op_id id, mesh_dtensor *x, const struct op_attr *attr, mesh_dtensor *const *out)
{
    mesh_dtensor *in[2] = { x, out[1] };
    struct tape_entry e = { .name = op_table[id].name, .gradient = &g_sort, .attr = attr, .n_in = 2, .in = in };
    return dtype_kind(x->dtype) != DTYPE_FLOAT || recorded(&e, out[0]) != NULL ? 0 : err_status();
}

/* What nobody asked for goes. */
static void give(int r, const struct object *mark, mesh_dtensor *const *out, mesh_dtensor **ret_values,
                 mesh_dtensor **ret_indices)
{
    struct object *kept[2] = { ret_values != NULL && r == 0 && out[0] != NULL ? &out[0]->object : NULL,
                               ret_indices != NULL && r == 0 && out[1] != NULL ? &out[1]->object : NULL };
    if (r < 0) {
        scope_fail(r);
    }
    if (ret_values != NULL) {
        *ret_values = r < 0 ? NULL : out[0];
    }
    if (ret_indices != NULL) {
        *ret_indices = r < 0 ? NULL : out[1];
    }
    scope_sweep(mark, kept, 2);
}

#define SORT_LEAST_PLACES 1024 /* per part: the messages of a sort in place cost more than gathering fewer */

/* Whether the rules have nothing better than to gather the dim: no other dim is free to be split instead. */
static bool sorts_in_place(mesh_dtensor *x, const struct op_attr *attr)
{
    int dim = attr->dim[0];
    struct op_outcome y;
    mesh_dtensor *in[OP_MAX_INPUTS] = { x };
    if (!is_sharded_along(x, UINT32_C(1) << dim) || x->shape.dim[dim] / along_parts(x, dim) < SORT_LEAST_PLACES ||
        op_foresee(OP_sort, in, attr, &y) < 0) {
        return false;
    }
    for (int m = 0; m < x->placements.n; m++) {
        if (x->mesh->size[m] > 1 && x->placements.at[m].kind == MESH_IS_SHARD &&
            y.placements.at[m].kind == MESH_IS_REPLICATE) {
            return true;
        }
    }
    return false;
}

static int sort(mesh_dtensor *x, int dim, bool descending, mesh_dtensor **ret_out)
{
    struct op_attr attr;
    int r = dim_attr("sort", x, dim, &attr);
    attr.mode = descending;
    if (r == 0 && is_sharded_along(x, UINT32_C(1) << attr.dim[0])) {
        x = settled(x);
        r = x == NULL ? err_status() : 0;
    }
    mesh_dtensor *in[OP_MAX_INPUTS] = { x };
    if (r == 0) {
        r = sorts_in_place(x, &attr) ? along_sort(x, &attr, ret_out) : apply_plain(OP_sort, in, &attr, ret_out);
    }
    return r < 0 ? r : record_choice(OP_sort, x, &attr, ret_out);
}

MESH_API void mesh_sort(mesh_dtensor *x, int dim, bool descending, mesh_dtensor **ret_values,
                        mesh_dtensor **ret_indices)
{
    mesh_dtensor *out[OP_MAX_OUTPUTS] = { NULL };
    const struct object *mark = scope_mark();
    int r = public_enter(__func__, &x, 1) ? sort(x, dim, descending, out) : 0;
    give(r, mark, out, ret_values, ret_indices);
}

/* The candidates of all parts are fewer than the whole dim, else gathering that is as good. */
static bool pays(const mesh_dtensor *x, int dim, int64_t k)
{
    return k >= 0 && is_sharded_along(x, UINT32_C(1) << dim) && k < x->shape.dim[dim] / along_parts(x, dim);
}

static int topk(mesh_dtensor *x, int64_t k, int dim, mesh_dtensor **ret_out)
{
    struct op_attr attr;
    int r = dim_attr("topk", x, dim, &attr);
    attr.index[0] = k;
    if (r < 0) {
        return r;
    }
    if (pays(x, attr.dim[0], k)) {
        x = settled(x);
        r = x == NULL ? err_status() : along_topk(x, &attr, ret_out);
    } else {
        mesh_dtensor *in[OP_MAX_INPUTS] = { x };
        r = apply_plain(OP_topk, in, &attr, ret_out);
    }
    return r < 0 ? r : record_choice(OP_topk, x, &attr, ret_out);
}

MESH_API void mesh_topk(mesh_dtensor *x, int64_t k, int dim, mesh_dtensor **ret_values, mesh_dtensor **ret_indices)
{
    mesh_dtensor *out[OP_MAX_OUTPUTS] = { NULL };
    const struct object *mark = scope_mark();
    int r = public_enter(__func__, &x, 1) ? topk(x, k, dim, out) : 0;
    give(r, mark, out, ret_values, ret_indices);
}
