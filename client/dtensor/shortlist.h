/* client/dtensor/shortlist.h - the combinations of rules that look cheapest, where there are too many to plan each.
 *
 * A combination takes one rule per mesh dim; what it costs is the sum over the inputs of what bringing them to it
 * costs, which is known about (redistribute_costs()) for all layouts of an input at once.  Sums of the least that is
 * left to add cut off whole branches, so that few of the combinations are looked at.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_SHORTLIST_H
#define DTENSOR_SHORTLIST_H

#include "dtensor/rules.h"

#define SHORTLIST_MAX 64

struct shortlist_query {
    int n_in, mesh_ndim;
    const int *n_rules;                 /* [mesh_ndim] */
    const double *costs[OP_MAX_INPUTS]; /* of all layouts of the input, mesh dim 0 slowest; NULL: absent */
    int (*n_kinds)[MESH_MAX_MESH_NDIM]; /* [input]: distinct placements on each mesh dim */
    uint8_t (*kind_of)[MESH_MAX_MESH_NDIM][RULES_MAX]; /* [input]: which of them a rule has */
};

struct shortlist {
    int n;
    struct {
        double cost;
        uint8_t rule[MESH_MAX_MESH_NDIM];
    } at[SHORTLIST_MAX]; /* the cheapest first; of equal ones the first in order, mesh dim 0 slowest */
};

/* At most a million branches are looked at, in order.  0 or MESH_ENOMEM. */
int shortlist_make(const struct shortlist_query *q, struct shortlist *ret_list);

#endif
