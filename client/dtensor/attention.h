/* client/dtensor/attention.h - attention over places of k that are spread over ranks: each attends to its own, and what
 * they found is put together.
 *
 *     y = sum over the parts p of exp(lse_p - lse) y_p        lse = log sum over p of exp(lse_p)
 *
 * y_p and lse_p are what the kernel makes of a part: the rule for ATTENTION_BY_KEYS gives them, as Partial(sum) and as
 * ATTENTION_PART, which they only become by attention_join().  The gradients are plain sums, once lse is known.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_ATTENTION_H
#define DTENSOR_ATTENTION_H

#include "dtensor/dispatch.h"

#define ATTENTION_PART mesh_partial(MESH_MAX)

/* y and lse of OP_attention with ATTENTION_BY_KEYS, in place of which come those of the whole: y where q is split as q,
 * else on every rank.  One all_gather of lse and one reduction of y; nothing where no places are spread.  0 or a status
 * with the error set. */
int attention_join(const mesh_dtensor *q, mesh_dtensor *inout[2]);

/* Adds to the cost of a choice, up to the limit, what moves afterwards: by attention_join(), or when a gradient that is
 * a pending sum goes home to an input that is split.  Nothing for other operators.  Pure.  0 or MESH_ENOMEM. */
int attention_later_cost(const struct op_row *op, const struct op_shapes *s, const struct rule_mesh *m,
                         const mesh_placements *now, double limit, struct op_choice *inout);

/* The arguments as the kernel needs them at a coordinate, whose places of k do not begin at 0. */
void attention_attr_at(const struct op_row *op, const struct op_shapes *s, const struct rule_mesh *m,
                       const int *coordinate, const mesh_placements *in, struct op_attr *inout);

#endif
