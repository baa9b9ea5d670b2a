/* client/autograd/public_move.c - the operators of mesh/ops_move.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/ops_move.h>

#include "autograd/border.h"
#include "autograd/promote.h"
#include "autograd/public_call.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/util.h"
#include "core/scope.h"
#include "tensor/shape.h"

static mesh_dtensor *apply_or_fail(int r, enum op_id id, mesh_dtensor *x, const struct op_attr *attr)
{
    return r < 0 ? scope_fail(r) : public_apply(id, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, attr);
}

/* An operator along one dim, with up to two numbers. */
static mesh_dtensor *along(const char *public_function, enum op_id id, mesh_dtensor *x, int dim, const int64_t *index)
{
    struct op_attr attr = { .index = { index[0], index[1] } };
    int d = 0;
    if (!public_enter(public_function, &x, 1)) {
        return NULL;
    }
    int r = shape_dim(x->shape, dim, op_table[id].name, &d);
    attr.dim[0] = d;
    return apply_or_fail(r, id, x, &attr);
}

MESH_API mesh_dtensor *mesh_permute(mesh_dtensor *x, mesh_shape dims)
{
    return public_op1(__func__, OP_permute, x, &(struct op_attr){ .shape = dims });
}

/* s with a new dim of extent 1 at *inout_dim, which becomes not negative. */
static int unsqueeze_shape(const char *what, mesh_shape s, int *inout_dim, mesh_shape *ret_shape)
{
    mesh_shape out = { .ndim = s.ndim + 1 };
    int dim = *inout_dim;
    if (s.ndim == MESH_MAX_NDIM || dim < -s.ndim - 1 || dim > s.ndim) {
        return err_set(
            MESH_EINVAL,
            "%s: no new dim at place %d of a tensor of %d dims: it may be in [%d, %d], and at most %d dims are "
            "supported",
            what, dim, s.ndim, -s.ndim - 1, s.ndim, MESH_MAX_NDIM);
    }
    int at = dim < 0 ? dim + s.ndim + 1 : dim;
    for (int d = 0; d < out.ndim; d++) {
        out.dim[d] = d == at ? 1 : s.dim[d < at ? d : d - 1];
    }
    *inout_dim = at;
    *ret_shape = out;
    return 0;
}

MESH_API mesh_dtensor *mesh_unsqueeze(mesh_dtensor *x, int dim)
{
    struct op_attr attr = { 0 };
    return public_enter(__func__, &x, 1)
               ? apply_or_fail(unsqueeze_shape("unsqueeze", x->shape, &dim, &attr.shape), OP_reshape, x, &attr)
               : NULL;
}

MESH_API mesh_dtensor *mesh_squeeze(mesh_dtensor *x, int dim)
{
    struct op_attr attr = { 0 };
    int at = 0;
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    int r = shape_dim(x->shape, dim, "squeeze", &at);
    for (int d = 0; r == 0 && d < x->shape.ndim; d++) {
        if (d != at || x->shape.dim[d] != 1) {
            attr.shape.dim[attr.shape.ndim++] = x->shape.dim[d];
        }
    }
    return apply_or_fail(r, OP_reshape, x, &attr);
}

/* Whether mesh dims of several ranks split the dim. */
static bool is_split(const mesh_dtensor *x, int dim)
{
    bool found = false;
    for (int m = 0; m < x->placements.n; m++) {
        mesh_placement p = x->placements.at[m];
        found = found || (p.kind == MESH_IS_SHARD && p.dim == dim && x->mesh->size[m] > 1);
    }
    return found;
}

/* Dims that are split go one after another, since one exchange is along one dim; the others together. */
static mesh_dtensor *flip(mesh_dtensor *x, uint32_t dims)
{
    uint32_t rest = dims;
    for (int d = 0; x != NULL && d < x->shape.ndim; d++) {
        uint32_t bit = UINT32_C(1) << d;
        if ((rest & bit) != 0 && rest != bit && is_split(x, d)) {
            x = public_apply(OP_flip, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &(struct op_attr){ .dims = bit });
            rest &= ~bit;
        }
    }
    return x == NULL ? NULL
                     : public_apply(OP_flip, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &(struct op_attr){ .dims = rest });
}

MESH_API mesh_dtensor *mesh_flip(mesh_dtensor *x, mesh_shape dims)
{
    uint32_t set = 0;
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    int r = dims.ndim >= 0 && dims.ndim <= MESH_MAX_NDIM ? 0 : err_set(MESH_EINVAL, "flip: %d dims", dims.ndim);
    for (int i = 0; r == 0 && i < dims.ndim; i++) {
        int d = 0;
        r = shape_dim(x->shape, dims.dim[i], "flip", &d);
        if (r == 0 && (set >> d & 1U) != 0) {
            r = err_set(MESH_EINVAL, "flip: dim %d is named twice", d);
        }
        set |= 1U << d;
    }
    return public_result(mark, r < 0 ? scope_fail(r) : flip(x, set));
}

MESH_API mesh_dtensor *mesh_roll(mesh_dtensor *x, int64_t shift, int dim)
{
    int d = 0;
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    int r = shape_dim(x->shape, dim, "roll", &d);
    int64_t extent = r < 0 ? 1 : MAX(1, x->shape.dim[d]);
    return apply_or_fail(r, OP_roll, x, &(struct op_attr){ .dim = { d }, .index = { shift % extent } });
}

MESH_API mesh_dtensor *mesh_narrow(mesh_dtensor *x, int dim, int64_t start, int64_t length)
{
    return along(__func__, OP_narrow, x, dim, (int64_t[2]){ start, length });
}

MESH_API mesh_dtensor *mesh_select(mesh_dtensor *x, int dim, int64_t index)
{
    return along(__func__, OP_select, x, dim, (int64_t[2]){ index });
}

/* --- joining and cutting ------------------------------------------------------------------------------------------ */

/* Groups of OP_MAX_INPUTS become one tensor each, until one is left: every element is copied once per level. */
static int join(mesh_dtensor **x, int n, int dim, mesh_dtensor **ret_all)
{
    struct op_attr attr = { .dim = { dim } };
    do {
        int n_groups = 0;
        for (int i = 0; i < n; i += OP_MAX_INPUTS) {
            mesh_dtensor *in[OP_MAX_INPUTS] = { NULL };
            for (int k = 0; k < OP_MAX_INPUTS && i + k < n; k++) {
                in[k] = x[i + k];
            }
            int r = ag_apply(OP_cat, in, &attr, &x[n_groups++]);
            if (r < 0) {
                return r;
            }
        }
        n = n_groups;
    } while (n > 1);
    *ret_all = x[0];
    return 0;
}

/* All there, of as many dims; the dtype that holds them all. */
static int check_list(const char *what, mesh_dtensor *const *tensors, int n, mesh_dtype *ret_dtype)
{
    if (tensors == NULL || n < 1) {
        return err_set(MESH_EINVAL, "%s: %d tensors: at least one is needed", what, n);
    }
    for (int i = 0; i < n; i++) {
        if (tensors[i] == NULL) {
            return err_set(MESH_EINVAL, "%s: tensor %d of %d is NULL", what, i + 1, n);
        }
        if (tensors[i]->shape.ndim != tensors[0]->shape.ndim) {
            return err_set(MESH_ESHAPE, "%s: tensor 1 has %d dims, tensor %d has %d", what, tensors[0]->shape.ndim,
                           i + 1, tensors[i]->shape.ndim);
        }
        *ret_dtype = i == 0 ? tensors[0]->dtype : dtype_promoted(*ret_dtype, tensors[i]->dtype);
    }
    return 0;
}

static int same_shapes(const char *what, mesh_dtensor *const *tensors, int n)
{
    for (int i = 1; i < n; i++) {
        char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
        if (!shape_equal(tensors[i]->shape, tensors[0]->shape)) {
            return err_set(MESH_ESHAPE, "%s: tensor 1 is %s, tensor %d is %s: all must have one shape", what,
                           shape_text(tensors[0]->shape, a, sizeof a), i + 1,
                           shape_text(tensors[i]->shape, b, sizeof b));
        }
    }
    return 0;
}

struct joining {
    mesh_dtype dtype;
    int dim;
    bool is_new;      /* the dim is not there yet */
    mesh_shape shape; /* with it */
};

static mesh_dtensor *join_list(mesh_dtensor *const *tensors, int n, const struct joining *how)
{
    struct op_attr attr = { .shape = how->shape };
    const struct object *mark = scope_mark();
    mesh_dtensor *all = NULL, **x = mem_new_array(mesh_dtensor *, (size_t)n);
    int r = x != NULL ? 0 : err_no_memory((size_t)n * sizeof(mesh_dtensor *), "a list of tensors");
    for (int i = 0; r == 0 && i < n; i++) {
        x[i] = cast_to(tensors[i], how->dtype);
        r = x[i] != NULL ? 0 : err_status();
        if (r == 0 && how->is_new) {
            r = ag_apply(OP_reshape, (mesh_dtensor *[OP_MAX_INPUTS]){ x[i] }, &attr, &x[i]);
        }
    }
    r = r < 0 ? r : join(x, n, how->dim, &all);
    mem_free(x);
    return public_result(mark, r < 0 ? scope_fail(r) : all);
}

MESH_API mesh_dtensor *mesh_cat(mesh_dtensor *const *tensors, int n, int dim)
{
    struct joining how = { .is_new = false };
    if (!scope_enter(__func__)) {
        return NULL;
    }
    int r = check_list("cat", tensors, n, &how.dtype);
    r = r < 0 ? r : shape_dim(tensors[0]->shape, dim, "cat", &how.dim);
    return r < 0 ? scope_fail(r) : join_list(tensors, n, &how);
}

MESH_API mesh_dtensor *mesh_stack(mesh_dtensor *const *tensors, int n, int dim)
{
    struct joining how = { .is_new = true, .dim = dim };
    if (!scope_enter(__func__)) {
        return NULL;
    }
    int r = check_list("stack", tensors, n, &how.dtype);
    r = r < 0 ? r : same_shapes("stack", tensors, n);
    r = r < 0 ? r : unsqueeze_shape("stack", tensors[0]->shape, &how.dim, &how.shape);
    return r < 0 ? scope_fail(r) : join_list(tensors, n, &how);
}

static int split(mesh_dtensor *x, int64_t size, int dim, int n, mesh_dtensor **ret_pieces)
{
    int64_t extent = x->shape.dim[dim];
    for (int i = 0; i < n; i++) {
        int64_t begin = i * size;
        struct op_attr attr = { .dim = { dim }, .index = { begin, MIN(size, extent - begin) } };
        int r = ag_apply(OP_narrow, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &attr, &ret_pieces[i]);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

MESH_API int mesh_split(mesh_dtensor *x, int64_t split_size, int dim, mesh_dtensor **ret_pieces, int max_pieces)
{
    int d = 0;
    for (int i = 0; ret_pieces != NULL && i < max_pieces; i++) {
        ret_pieces[i] = NULL;
    }
    if (!public_enter(__func__, &x, 1)) {
        return 0;
    }
    int r = shape_dim(x->shape, dim, "split", &d);
    if (r == 0 && (split_size < 1 || ret_pieces == NULL)) {
        r = err_set(MESH_EINVAL, "split: pieces of %lld: at least 1, and an array to put them in",
                    (long long)split_size);
    }
    int64_t n = r < 0 ? 0 : MAX(1, x->shape.dim[d] / split_size + (x->shape.dim[d] % split_size != 0));
    if (r == 0 && n > max_pieces) {
        r = err_set(MESH_EINVAL, "split: %lld pieces of %lld make up dim %d, but the array has room for %d",
                    (long long)n, (long long)split_size, d, max_pieces);
    }
    r = r < 0 ? r : split(x, split_size, d, (int)n, ret_pieces);
    if (r < 0) {
        scope_fail(r);
        return 0;
    }
    return (int)n;
}

/* --- padding and repeating ---------------------------------------------------------------------------------------- */

MESH_API mesh_dtensor *mesh_pad(mesh_dtensor *x, mesh_shape pad, double value)
{
    const struct object *mark = scope_mark();
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    int r = 0;
    if (pad.ndim < 2 || pad.ndim > MESH_MAX_NDIM || pad.ndim % 2 != 0 || pad.ndim / 2 > x->shape.ndim) {
        r = err_set(MESH_EINVAL,
                    "pad: %d numbers for a tensor of %d dims: give (before, after) of the last dim, then of the one "
                    "before it, and so on",
                    pad.ndim, x->shape.ndim);
    }
    for (int i = 0; r == 0 && i < pad.ndim / 2; i++) {
        struct op_attr attr = { .dim = { x->shape.ndim - 1 - i },
                                .index = { pad.dim[2 * i], pad.dim[2 * i + 1] },
                                .value = { value } };
        r = ag_apply(OP_pad, (mesh_dtensor *[OP_MAX_INPUTS]){ x }, &attr, &x);
    }
    return public_result(mark, r < 0 ? scope_fail(r) : x);
}

MESH_API mesh_dtensor *mesh_repeat(mesh_dtensor *x, mesh_shape repeats)
{
    struct op_attr attr = { .shape = repeats };
    if (!public_enter(__func__, &x, 1)) {
        return NULL;
    }
    int lead = MAX(-1, repeats.ndim) - x->shape.ndim;
    int r = lead >= 0 && repeats.ndim <= MESH_MAX_NDIM
                ? 0
                : err_set(MESH_ESHAPE, "repeat: %d numbers for a tensor of %d dims: at least one each, at most %d",
                          repeats.ndim, x->shape.ndim, MESH_MAX_NDIM);
    for (int d = 0; r == 0 && d < repeats.ndim; d++) {
        int64_t n = d < lead ? 1 : x->shape.dim[d - lead];
        if (repeats.dim[d] < 0 || (n > 0 && repeats.dim[d] > INT64_MAX / 4 / n)) {
            r = err_set(MESH_EINVAL, "repeat: %lld times along dim %d", (long long)repeats.dim[d], d);
        } else {
            attr.shape.dim[d] = n * repeats.dim[d];
        }
    }
    return apply_or_fail(r, OP_repeat, x, &attr);
}
