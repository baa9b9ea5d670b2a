/* client/dtensor/window.h - operators that shift places along a split dim: each rank fetches the few that it comes to hold.
 *
 *      rank 0    rank 1    rank 2          narrow(x, 0, 1, 5) of 7 places over 3 ranks: the result's
 *     [0 1 2]   [3 4 5]   [6]              ranks hold 2, 2 and 1 places; only 2 and 4 cross
 *       | |  \   | |  \
 *     [1 2]     [3 4]     [5]
 *
 * Place j of the result is place j - shift of an input (modulo its extent, or mirrored, or nowhere: padding, another input).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_WINDOW_H
#define DTENSOR_WINDOW_H

#include "dtensor/dispatch.h"

struct window {
    bool is_used;
    bool wraps, is_mirrored;
    bool is_local;      /* no place changes its rank */
    int mesh_dim, dim;  /* who splits what; no other mesh dim splits it */
    int64_t out_extent; /* of dim in the result */
    int64_t shift[OP_MAX_INPUTS];
};

/* Whether the operator is such a one on these inputs (a pure function of global facts); fills in the inputs' and the result's
 * placements, and the arguments with which the kernel finishes what was fetched at this rank's coordinate. */
bool window_find(const struct op_row *op, mesh_dtensor *const *in, const struct op_shapes *s,
                 struct window *ret_window);
void window_choose(const struct window *w, mesh_dtensor *const *in, const struct op_shapes *s,
                   struct op_choice *ret_choice);
void window_finish_attr(const struct window *w, const struct op_row *op, const mesh_dtensor *x, struct op_attr *inout);

/* The places of input i that this rank's part of the result is made of, in order; the caller's reference.  NULL: error set. */
struct mesh_tensor *window_fetch(const struct window *w, int i, const mesh_dtensor *x);

#endif
