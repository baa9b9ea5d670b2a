/* tests/truth/combos.h - every combination of layouts of a sample's inputs, by number.
 *
 * Each input takes any of its layouts (parts.h: whole, shards, every reduction there is; mixed reductions are no
 * layout), so number k of `total` reads as digits of different bases, input 0 lowest.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRUTH_COMBOS_H
#define TRUTH_COMBOS_H

#include "truth/samples.h"

struct combos {
    int n_in;
    int64_t total;
    int n[OP_MAX_INPUTS];                    /* layouts of each input */
    mesh_placements *layouts[OP_MAX_INPUTS]; /* [n] */
};

void combos_init(struct combos *c, const struct trial *t, int mesh_ndim);
void combos_fini(struct combos *c);

/* Which layout each input has in combination `number`, and the layouts themselves (either may be NULL). */
void combos_take(const struct combos *c, int64_t number, int *ret_at, mesh_placements *ret_layouts);

/* "add [5,3][S(0)] [5,3][R]" */
#define COMBO_TEXT_BYTES 700
const char *combo_text(const struct trial *t, const mesh_placements *layouts, char *buf, size_t cap);

#endif
