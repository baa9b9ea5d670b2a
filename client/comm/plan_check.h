/* client/comm/plan_check.h - proves a plan by running all ranks of it on integers, with no buffering between them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_PLAN_CHECK_H
#define COMM_PLAN_CHECK_H

#include "comm/plan.h"

/* q->rank is ignored.  all_to_all with split sizes: q->in_counts is the [size x size] matrix "r sends to s" (by rows), and
 * q->out_counts must be NULL.  0, or MESH_ESTATE with a sentence that says what is wrong with the plan. */
int plan_check(const struct plan_request *q);

#endif
