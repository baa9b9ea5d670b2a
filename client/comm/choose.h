/* client/comm/choose.h - which algorithm a call runs, from facts that all ranks share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_CHOOSE_H
#define COMM_CHOOSE_H

#include "comm/plan.h"

/* bytes: of the whole vector (all parts together). */
enum plan_algorithm plan_choose(mesh_comm_kind kind, mesh_dtype t, int size, uint64_t bytes);

#endif
