/* client/dtensor/along.c - running sums and largest elements along a sharded dim.
 *
 *     cumsum   part p writes its total into the places of all later parts of carry [lines, parts], pending sum; reduced, place p
 *              is what part p begins with
 *     topk     each part sends its k largest with their indices in the whole; of these the k largest are taken
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/along.h"

#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/util.h"
#include "tensor/lines.h"

static bool splits(const mesh_dtensor *x, int mesh_dim, int dim)
{
    return placement_splits(x->placements.at[mesh_dim], dim);
}

int along_parts(const mesh_dtensor *x, int dim)
{
    int n = 1;
    for (int i = 0; i < x->mesh->ndim; i++) {
        n *= splits(x, i, dim) ? x->mesh->size[i] : 1;
    }
    return n;
}

/* The number of this rank's part, in the order of the dim. */
static int my_part(const mesh_dtensor *x, int dim)
{
    int part = 0;
    for (int i = 0; i < x->mesh->ndim; i++) {
        part = splits(x, i, dim) ? part * x->mesh->size[i] + x->mesh->coordinate[i] : part;
    }
    return part;
}

static mesh_placements with_dim(const mesh_dtensor *x, int dim, mesh_placement to)
{
    mesh_placements p = x->placements;
    for (int i = 0; i < p.n; i++) {
        p.at[i] = splits(x, i, dim) ? to : p.at[i];
    }
    return p;
}

static mesh_shape with_extent(mesh_shape s, int dim, int64_t extent)
{
    s.dim[dim] = extent;
    return s;
}

/* A local tensor: of this shape on members of the mesh, empty elsewhere. */
static struct mesh_tensor *new_local(const mesh_dtensor *x, mesh_shape shape, mesh_dtype t)
{
    return tensor_new_zeroed(x->mesh->is_member ? shape : MESH_SHAPE(0), t);
}

/* --- cumsum ------------------------------------------------------------------------------------------------------- */

/* Numbers of 8 bytes, whatever they are: carry[line, part] = total[line] for the parts that come after this one. */
static void spread(struct mesh_tensor *carry, const struct mesh_tensor *total, int dim, int me, bool is_backward)
{
    struct lines to = lines_of(carry->shape, dim);
    for (int64_t i = 0; i < to.n; i++) {
        for (int64_t part = 0; part < to.length; part++) {
            if (is_backward ? part < me : part > me) {
                int64_t at = line_begin(&to, i) + part * to.step;
                memcpy((int64_t *)carry->data + at, (const int64_t *)total->data + i, sizeof(int64_t));
            }
        }
    }
}

static void pick(struct mesh_tensor *first, const struct mesh_tensor *carry, int dim, int me)
{
    struct lines from = lines_of(carry->shape, dim);
    for (int64_t i = 0; i < from.n; i++) {
        int64_t at = line_begin(&from, i) + me * from.step;
        memcpy((int64_t *)first->data + i, (const int64_t *)carry->data + at, sizeof(int64_t));
    }
}

/* What each part begins with, for all parts: pending sum until it is reduced here. */
static mesh_dtensor *carry_of(mesh_dtensor *x, const struct op_attr *attr, struct mesh_tensor *total)
{
    int dim = attr->dim[0], parts = along_parts(x, dim);
    mesh_shape local = x->mesh->is_member ? with_extent(x->local->shape, dim, parts) : MESH_SHAPE(0);
    mesh_placements pending = with_dim(x, dim, mesh_partial(MESH_SUM)), whole = with_dim(x, dim, mesh_replicate());
    struct op_attr sum = { .dims = UINT32_C(1) << dim };
    struct kernel_call call = { .in = { x->local }, .out = { total }, .attr = &sum };
    struct mesh_tensor *carry = new_local(x, local, total->dtype);
    if (carry != NULL && x->mesh->is_member) {
        if (kernel_run(k_sum, &call) < 0) {
            tensor_unref(carry);
            return NULL;
        }
        spread(carry, total, dim, my_part(x, dim), attr->mode != 0);
    }
    mesh_dtensor *c =
        carry == NULL ? NULL : dtensor_new(x->mesh, with_extent(x->shape, dim, parts), total->dtype, &pending, carry);
    return c == NULL ? NULL : dtensor_redistribute(c, &whole);
}

int along_cumsum(mesh_dtensor *x, const struct op_attr *attr, mesh_dtensor **ret_sum)
{
    int dim = attr->dim[0];
    bool is_float = dtype_kind(x->dtype) == DTYPE_FLOAT, is_member = x->mesh->is_member;
    mesh_dtype wide = is_float ? MESH_F64 : MESH_I64, t = is_float ? x->dtype : MESH_I64;
    mesh_shape local = is_member ? x->local->shape : MESH_SHAPE(0);
    struct mesh_tensor *first = new_local(x, is_member ? with_extent(local, dim, 1) : local, wide);
    struct mesh_tensor *sum = first != NULL ? new_local(x, local, t) : NULL;
    mesh_dtensor *carry = sum != NULL ? carry_of(x, attr, first) : NULL;
    int r = carry != NULL ? 0 : err_status();
    if (r == 0 && is_member) {
        struct kernel_call call = { .in = { x->local, first }, .out = { sum }, .attr = attr };
        pick(first, carry->local, dim, my_part(x, dim));
        r = kernel_run(k_cumsum, &call);
    }
    tensor_unref(first);
    if (r < 0) {
        tensor_unref(sum);
        return r;
    }
    mesh_dtensor *y = dtensor_new(x->mesh, x->shape, t, &x->placements, sum);
    if (y == NULL) {
        return err_status();
    }
    *ret_sum = y;
    return 0;
}

/* --- topk --------------------------------------------------------------------------------------------------------- */

/* The k largest of the given local parts; indices NULL: they are found by `offset`.  Takes nothing, gives two
 * references. */
static int largest(const mesh_dtensor *x, const struct op_attr *attr, struct mesh_tensor *const in[2],
                   const int64_t *offset, struct mesh_tensor *ret_out[2])
{
    int dim = attr->dim[0];
    mesh_shape to = x->mesh->is_member ? with_extent(in[0]->shape, dim, attr->index[0]) : MESH_SHAPE(0);
    struct mesh_tensor *values = new_local(x, to, x->dtype), *indices = values ? new_local(x, to, MESH_I64) : NULL;
    int r = indices != NULL ? 0 : err_status();
    if (r == 0 && x->mesh->is_member) {
        struct kernel_call call = { .in = { in[0], in[1] }, .out = { values, indices }, .attr = attr };
        if (offset != NULL) {
            memcpy(call.offset, offset, sizeof call.offset);
        }
        r = kernel_run(k_topk, &call);
    }
    if (r < 0) {
        tensor_unref(values);
        tensor_unref(indices);
        return r;
    }
    ret_out[0] = values;
    ret_out[1] = indices;
    return 0;
}

/* Wraps both, taking the references; then brings them to `to`. */
static int wrap(const mesh_dtensor *x, mesh_shape shape, const mesh_placements *p, const mesh_placements *to,
                struct mesh_tensor *local[2], mesh_dtensor *ret_out[2])
{
    mesh_dtensor *values = dtensor_new(x->mesh, shape, x->dtype, p, local[0]);
    mesh_dtensor *indices = dtensor_new(x->mesh, shape, MESH_I64, p, local[1]);
    values = values != NULL && indices != NULL ? dtensor_redistribute(values, to) : NULL;
    indices = values != NULL ? dtensor_redistribute(indices, to) : NULL;
    if (indices == NULL) {
        return err_status();
    }
    ret_out[0] = values;
    ret_out[1] = indices;
    return 0;
}

int along_topk(mesh_dtensor *x, const struct op_attr *attr, mesh_dtensor *ret_out[2])
{
    int dim = attr->dim[0];
    int64_t k = attr->index[0];
    mesh_placements whole = with_dim(x, dim, mesh_replicate());
    struct box b = { .ndim = 0 };
    struct mesh_tensor *local[2] = { NULL };
    mesh_dtensor *candidates[2] = { NULL };
    if (x->mesh->is_member) {
        layout_box(x->shape, x->mesh->size, x->mesh->coordinate, &x->placements, &b);
    }
    int r = largest(x, attr, (struct mesh_tensor *[2]){ x->local, NULL }, b.offset, local);
    if (r == 0) {
        mesh_shape all = with_extent(x->shape, dim, k * along_parts(x, dim));
        r = wrap(x, all, &x->placements, &whole, local, candidates);
    }
    if (r == 0) {
        struct mesh_tensor *in[2] = { candidates[0]->local, candidates[1]->local };
        r = largest(x, attr, in, NULL, local);
    }
    return r < 0 ? r : wrap(x, with_extent(x->shape, dim, k), &whole, &whole, local, ret_out);
}
