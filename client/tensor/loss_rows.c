/* client/tensor/loss_rows.c - rows of classes and their targets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tensor/loss_rows.h"

#include "base/check.h"
#include "base/error.h"
#include "tensor/numbers.h"
#include "tensor/shape.h"

struct loss_rows loss_rows_of(const struct mesh_tensor *x, const struct op_attr *attr, int64_t first_class)
{
    int class_dim = x->shape.ndim == 1 ? 0 : 1;
    struct loss_rows r = { .n_classes = x->shape.dim[class_dim],
                           .inner = shape_inner(x->shape, class_dim),
                           .first_class = first_class,
                           .all_classes = (int64_t)attr->value[1],
                           .smoothing = attr->value[0],
                           .ignored = attr->index[0] };
    r.n = shape_outer(x->shape, class_dim) * r.inner;
    return r;
}

int64_t loss_target(const struct mesh_tensor *target, int64_t i)
{
    switch (target->dtype) {
#define TARGET(D, T, U, unused)                                                                                        \
    case MESH_##D:                                                                                                     \
        return (int64_t)((const T *)target->data)[i];
        INT_TYPES(TARGET, 0)
    default:
        return -1;
    }
}

static int64_t row_in_whole(const struct kernel_call *part, int64_t i)
{
    return part == NULL ? i : part->row_of != NULL ? part->row_of(part->rows, i) : part->offset[0] + i;
}

int loss_check_targets(const char *name, const struct loss_rows *r, const struct mesh_tensor *target,
                       const struct kernel_call *part, bool is_known_to_all)
{
    int64_t row = target->shape.ndim > 0 ? shape_inner(target->shape, 0) : 1;
    for (int64_t i = 0; i < target->n; i++) {
        int64_t t = loss_target(target, i);
        if (t != r->ignored && (t < 0 || t >= r->all_classes)) {
            return (is_known_to_all ? err_set : err_set_local)(
                MESH_EINVAL,
                "%s: the target of row %lld is %lld, but there are %lld classes (and %lld is the ignored one)", name,
                (long long)row_in_whole(part, i / row), (long long)t, (long long)r->all_classes, (long long)r->ignored);
        }
    }
    return 0;
}

int loss_check(const char *name, const struct loss_rows *r, const struct kernel_call *c, int x, int target)
{
    const struct mesh_tensor *t = c->in[target], *whole = c->whole[target];
    if (c->in[x]->dtype != MESH_F32 && c->in[x]->dtype != MESH_F64) {
        return unsupported_dtype(name, c->in[x]->dtype);
    }
    if (t->dtype != MESH_I64 && t->dtype != MESH_I32) {
        return unsupported_dtype("the target of a loss", t->dtype);
    }
    bool is_counted = x == 0 && c->in[x]->shape.ndim > 1; /* the call says where the part of input 0 is */
    return whole != NULL ? loss_check_targets(name, r, whole, NULL, true)
                         : loss_check_targets(name, r, t, is_counted ? c : NULL, false);
}

void loss_store(struct mesh_tensor *t, int64_t i, double v)
{
    if (t->dtype == MESH_F32) {
        ((float *)t->data)[i] = (float)v;
    } else if (t->dtype == MESH_F64) {
        ((double *)t->data)[i] = v;
    } else {
        PRE(t->dtype == MESH_I64);
        ((int64_t *)t->data)[i] = (int64_t)v;
    }
}

double loss_load(const struct mesh_tensor *t, int64_t i)
{
    return t->dtype == MESH_F32 ? (double)((const float *)t->data)[i] : ((const double *)t->data)[i];
}
