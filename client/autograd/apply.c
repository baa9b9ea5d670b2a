/* autograd/apply.c - applies an operator, leaving a node where a gradient will be asked for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "autograd/apply.h"

#include "autograd/grads.h"
#include "base/error.h"

int ag_apply(enum op_id id, mesh_dtensor *const *in, const struct op_attr *attr, mesh_dtensor **ret_out)
{
    const struct op_row *row = &op_table[id];
    const struct gradient *gradient = gradient_of(id);
    bool records = tape_wants(in, row->n_in);
    if (records && gradient->run == NULL) {
        return err_set(MESH_EUNSUPPORTED, "%s has no gradient; apply it to mesh_detach() of its input", row->name);
    }
    int r = op_apply(id, in, attr, ret_out);
    if (r < 0 || !records) {
        return r;
    }
    return tape_record(
        &(struct tape_entry){ .name = row->name, .gradient = gradient, .attr = attr, .n_in = row->n_in, .in = in },
        ret_out[0]);
}
