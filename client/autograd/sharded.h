/* client/autograd/sharded.h - reductions along dims that are sharded, put together from operators whose parts complete each other.
 *
 *     softmax    m = max x (all_reduce max), s = sum exp(x - m) (all_reduce sum), y = exp(x - m) / s
 *     var        m = mean x, q = sum (x - m)^2 and s = sum (x - m), (q - s^2 / n) / (n - correction)
 *     argmax     m = max x, then the lowest index at which x is m (all_reduce min)
 *
 * What is reduced has one number per line; x itself stays where it is.  x has no pending reductions (settled()).  Nothing here
 * is recorded but by softmax_of(): whoever calls records the whole under one name.  NULL: error set; NULL in, NULL out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AUTOGRAD_SHARDED_H
#define AUTOGRAD_SHARDED_H

#include "autograd/grads.h"

/* Whether some dim of the set is spread over ranks. */
bool is_sharded_along(const mesh_dtensor *x, uint32_t dims);

mesh_dtensor *settled(mesh_dtensor *x); /* x with its pending reductions done and strided shards made plain, recorded */
mesh_dtensor *completed(mesh_dtensor *x); /* the same, not recorded */

/* Hangs the whole onto its result: y, or NULL with the error set. */
mesh_dtensor *recorded(const struct tape_entry *e, mesh_dtensor *y);

/* dims leave with extent 1. */
mesh_shape kept_shape(mesh_shape x, uint32_t dims);
mesh_dtensor *sum_kept(mesh_dtensor *x, uint32_t dims);  /* completed */
mesh_dtensor *mean_kept(mesh_dtensor *x, uint32_t dims); /* completed */

mesh_dtensor *sharded_softmax(mesh_dtensor *x, int dim, bool is_log);
mesh_dtensor *sharded_logsumexp(mesh_dtensor *x, const struct op_attr *attr);
mesh_dtensor *sharded_var(mesh_dtensor *x, const struct op_attr *attr);                  /* as OP_var */
mesh_dtensor *sharded_index(enum op_id id, mesh_dtensor *x, const struct op_attr *attr); /* OP_argmax, OP_argmin */
mesh_dtensor *norm_of(mesh_dtensor *x, const struct op_attr *attr);   /* value[0] p, finite; sharded or not */
mesh_dtensor *cumsum_of(mesh_dtensor *x, const struct op_attr *attr); /* sharded or not */

/* OP_softmax, OP_log_softmax: sharded or not, recorded. */
mesh_dtensor *softmax_of(enum op_id id, mesh_dtensor *x, int dim);

/* 1 / sqrt(variance + eps) of the last index[0] dims (mode 1: of the mean square), and the mean (mode 1: NULL). */
mesh_dtensor *normalizer(mesh_dtensor *x, const struct op_attr *attr, mesh_dtensor **ret_mean);

#endif
