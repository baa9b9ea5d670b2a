/* client/dtensor/window.h - operators whose places along a split dim come from few places of an input: each rank
 * fetches what it comes to hold, and nothing else moves.
 *
 *      rank 0    rank 1    rank 2          narrow(x, 0, 1, 5) of 7 places over 3 ranks: the result's
 *     [0 1 2]   [3 4 5]   [6]              ranks hold 2, 2 and 1 places; only 2 and 4 cross
 *       | |  \   | |  \
 *     [1 2]     [3 4]     [5]
 *
 * One mechanism for all of them: from the map of places every rank computes what every other one wants, also where
 * several mesh dims split the dim.  Of replicas the receiver asks the one that shares its coordinates, so each has the
 * same share.  Rows and columns of images may be split at once: first rows are fetched, then columns of all the rows
 * that are there, corners with them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_WINDOW_H
#define DTENSOR_WINDOW_H

#include "dtensor/dispatch.h"
#include "dtensor/sharers.h"

/* From which places of an input those from `first` to `end` of the result are made. */
enum window_map {
    WINDOW_STAYS,  /* this input has nothing to do with the dim */
    WINDOW_SHIFT,  /* place j from j - shift, or from nowhere: padding, another input */
    WINDOW_WRAP,   /* the same, modulo its extent */
    WINDOW_MIRROR, /* from extent - 1 - j */
    WINDOW_TAPS,   /* from j stride - shift to j stride - shift + reach: a convolution's images */
    WINDOW_TAPPED  /* from all of which place j is a tap: the gradient by them */
};

struct window {
    bool is_local;      /* no place changes its rank */
    bool is_pending;    /* the result is a sum over the places, not split along them */
    uint32_t mesh_dims; /* set of those that split */
    int dim;            /* what they split, of the inputs */
    int lead;           /* dims that the result has before it */
    int64_t out_extent; /* of what they split */
    int64_t stride, reach;
    struct {
        enum window_map map;
        int64_t shift;
    } in[OP_MAX_INPUTS];
};

#define WINDOWS_MAX 2
struct windows { /* one after another */
    int n;
    struct window at[WINDOWS_MAX];
};

/* Finds whether the operator is such a one on these inputs (a pure function of global facts): what it fetches (none: it
 * is not), and the placements that the inputs are brought to before and that the result has.  0 or a status with the
 * error set. */
int window_find(const struct op_row *op, mesh_dtensor *const *in, const struct op_shapes *s,
                struct windows *ret_windows, struct op_choice *ret_choice);
/* The arguments with which the kernel finishes what was fetched at this rank's coordinate. */
void window_finish_attr(const struct window *w, const struct op_row *op, mesh_dtensor *const *in,
                        struct op_attr *inout);

struct window_input {
    const mesh_dtensor *x;
    const mesh_placements *placements; /* that it was brought to */
    struct mesh_tensor *local;         /* its part then */
};
/* The places of input i that this rank's part of the result is made of, in order; the caller's reference.  NULL: error
 * set. */
struct mesh_tensor *window_fetch(const struct window *w, int i, const struct window_input *from);

/* --- inside ------------------------------------------------------------------------------------------------------- */

/* `length` places of an input from `begin` on, going round at its extent; in the order in which they stand in the
 * result. */
struct spans {
    int64_t begin, length, extent;
};
struct spans window_wanted(const struct window *w, int i, int64_t extent, struct chunk out);
int64_t spans_count(const struct spans *s); /* how many stretches without going round */
struct chunk spans_at(const struct spans *s, int64_t k);
int64_t spans_overlap(const struct spans *s, struct chunk held); /* places that are both wanted and held */
struct chunk chunk_overlap(struct chunk a, struct chunk b);

/* A convolution's: for rows, for columns, for both or none; all other mesh dims go by the rules. */
bool window_is_convolution(const struct op_row *op);
int window_of_convolution(const struct op_row *op, mesh_dtensor *const *in, const struct op_shapes *s,
                          struct windows *ret_windows, struct op_choice *ret_choice);

#endif
