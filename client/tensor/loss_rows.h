/* client/tensor/loss_rows.h - rows of classes and their target classes, as losses see them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TENSOR_LOSS_ROWS_H
#define TENSOR_LOSS_ROWS_H

#include "tensor/kernels.h"

/* Row i of n begins at (i / inner) * n_classes * inner + i % inner, its classes are `inner` apart. */
struct loss_rows {
    int64_t n, n_classes, inner; /* n_classes: of them this rank has these, from first_class on */
    int64_t first_class, all_classes;
    double smoothing;
    int64_t ignored;
};

/* x is [C], [n,C] or [n,C,d...]; attr as for cross_entropy; first_class as in kernel_call.offset. */
struct loss_rows loss_rows_of(const struct mesh_tensor *x, const struct op_attr *attr, int64_t first_class);

static inline int64_t loss_row_begin(const struct loss_rows *r, int64_t i)
{
    return i / r->inner * r->n_classes * r->inner + i % r->inner;
}

int64_t loss_target(const struct mesh_tensor *target, int64_t i);

/* The dtypes, and that each target (input number `target` of the call) is a class or ignored.  A bad one is known to
 * all ranks when all have the same targets, else only this one has seen it. */
int loss_check(const char *name, const struct loss_rows *r, const struct kernel_call *c, int x, int target);
/* The second half of it, which looks at r->all_classes and r->ignored; part: the call whose input 0 has these rows,
 * NULL: they are counted from 0. */
int loss_check_targets(const char *name, const struct loss_rows *r, const struct mesh_tensor *target,
                       const struct kernel_call *part, bool is_known_to_all);

double loss_load(const struct mesh_tensor *t, int64_t i);    /* f32 f64 */
void loss_store(struct mesh_tensor *t, int64_t i, double v); /* f32 f64 i64 */

#endif
