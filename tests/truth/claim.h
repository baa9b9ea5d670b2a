/* tests/truth/claim.h - a claim that an operator may be run part by part, and whether it holds, without any communication.
 *
 * It holds when running the kernel on each rank's parts, cut as the claim says, gives parts that join, as the claim says, to what
 * the kernel gives on the whole.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_CLAIM_H
#define TRUTH_CLAIM_H

#include "truth/parts.h"
#include "truth/samples.h"

#define CLAIM_TEXT_BYTES 700

struct claim {
    const struct trial *trial;
    int ndim;
    const int *size; /* of the mesh, [ndim] */
    mesh_placements in[OP_MAX_INPUTS], out[OP_MAX_OUTPUTS];
    enum split split;
    bool is_guess; /* no rule: parts that the operator's shape function refuses do not hold */
};

void claim_add_rule(struct claim *c, const struct rule *r); /* for one more mesh dim */
bool claim_is_layout(const struct claim *c);                /* dispatch would combine these rules */
bool claim_holds(const struct claim *c);
const char *claim_text(const struct claim *c, char *buf, size_t cap);

/* The arguments speak of the whole, so the shape function has nothing to say about a part (which may well be empty). */
bool claim_is_of_whole(enum op_id op);

#endif
