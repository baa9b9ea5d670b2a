/* client/autograd/apply.c - applies an operator, leaving a node where a gradient will be asked for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/apply.h"

#include <string.h>

#include "autograd/grads.h"
#include "base/dtype.h"
#include "base/error.h"

int apply_plain(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_out)
{
    struct op_attr clean;
    memset(&clean, 0, sizeof clean);
    if (attr != NULL) {
        int n_dims = attr->shape.ndim; /* op_apply() refuses one out of range */
        clean.shape.ndim = n_dims;
        memcpy(clean.shape.dim, attr->shape.dim,
               n_dims < 0 || n_dims > MESH_MAX_NDIM ? 0 : (size_t)n_dims * sizeof attr->shape.dim[0]);
        clean.dims = attr->dims;
        clean.keepdim = attr->keepdim;
        memcpy(clean.dim, attr->dim, sizeof clean.dim);
        memcpy(clean.value, attr->value, sizeof clean.value);
        memcpy(clean.index, attr->index, sizeof clean.index);
        clean.mode = attr->mode;
        clean.groups = attr->groups;
        memcpy(clean.dilation, attr->dilation, sizeof clean.dilation);
    }
    return op_apply(id, in, &clean, ret_out);
}

int ag_apply(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_out)
{
    const struct op_row *row = &op_table[id];
    const struct gradient *gradient = gradient_of(id);
    bool records = gradient != &CONSTANT && tape_wants(in, row->n_in);
    if (records && gradient->run == NULL) {
        return err_set(MESH_EUNSUPPORTED, "%s has no gradient; apply it to mesh_detach() of its input", row->name);
    }
    int r = apply_plain(id, in, attr, ret_out);
    if (r < 0 || !records || dtype_kind(ret_out[0]->dtype) != DTYPE_FLOAT) { /* what is counted has no slope */
        return r;
    }
    return tape_record(
        &(struct tape_entry){ .name = row->name, .gradient = gradient, .attr = attr, .n_in = row->n_in, .in = in },
        ret_out[0]);
}
