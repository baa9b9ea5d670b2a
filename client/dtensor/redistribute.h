/* client/dtensor/redistribute.h - from one list of placements to another, as a list of one-dimensional moves.
 *
 * A move changes the placement on one mesh dim.  It is a simple collective (or none) only while no later mesh dim
 * splits the tensor dim it touches, since the inner split depends on the outer; the planner searches the cheapest legal
 * sequence.  Where that has several collectives, what is left after pending reductions may cost less as one exchange of
 * the whole mesh.  Planning is pure; running it is redistribute_run().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DTENSOR_REDISTRIBUTE_H
#define DTENSOR_REDISTRIBUTE_H

#include "dtensor/dtensor.h"

#define REDISTRIBUTE_MAX_MOVES 16
#define REDISTRIBUTE_GRID_MAX  96

/* What one more collective is worth in bytes: about its latency times the bandwidth of a link. */
#define REDISTRIBUTE_COLLECTIVE_BYTES 16384.0

/* A move of all mesh dims at once: one all_to_all over the mesh of what changes ranks (exchange.h).  It is the last
 * one. */
#define ALL_MESH_DIMS (-1)

struct move {
    int mesh_dim; /* or ALL_MESH_DIMS, without from and to */
    mesh_placement from, to;
    int64_t bytes; /* sent per rank by the largest sender; 0: local only */
};

struct move_list {
    int n;
    struct move at[REDISTRIBUTE_MAX_MOVES];
    double cost; /* bytes plus a constant per collective; a pure function of global facts */
};

struct relayout { /* the global facts a plan follows from */
    mesh_shape shape;
    mesh_dtype dtype;
    int mesh_ndim;
    const int *mesh_size;             /* [mesh_ndim] */
    const mesh_placements *from, *to; /* normalised */
};
int redistribute_plan(const struct relayout *q, struct move_list *ret_moves);
/* The same plan where it costs less than the limit; else no moves, at the cost of the limit: what is dearer is not
 * searched. */
int redistribute_plan_below(const struct relayout *q, double limit, struct move_list *ret_moves);
/* Some placements for each mesh dim: the layouts that take one of each, in order, mesh dim 0 slowest. */
struct layout_grid {
    int n[MESH_MAX_MESH_NDIM];
    mesh_placement at[MESH_MAX_MESH_NDIM][REDISTRIBUTE_GRID_MAX];
};
/* About what the plan for each layout of a grid costs, all by one search; q->to is not looked at.  An exchange counts
 * what a few ranks get by it; a pending reduction that the tensor has not counts as whole, which a shard that becomes
 * pending will have to be in the end.  DBL_MAX: no layout.  0 or MESH_ENOMEM. */
int redistribute_costs(const struct relayout *q, const struct layout_grid *g, double *ret_costs);
/* A move of mesh dim i to `to` that one collective (or none) can do, and that leaves no mixed pending reductions. */
bool redistribute_move_is_legal(int mesh_ndim, const int *mesh_size, const mesh_placements *p, int i,
                                mesh_placement to);
const char *move_text(const struct move *move, const mesh_device_mesh *m, char *buf, size_t cap); /* "S(0)->R on dp" */
/* "S(0)->R on dp (all_gather, 4096 bytes), ..." */
const char *redistribute_text(const struct move_list *moves, const mesh_device_mesh *m, char *buf, size_t cap);

/* The plan for x, remembered from before when there was one. */
int redistribute_recall(const mesh_dtensor *x, const mesh_placements *to, struct move_list *ret_moves);

/* The local part under `to`; the reference is the caller's.  NULL: error set. */
struct mesh_tensor *redistribute_run(const mesh_dtensor *x, const mesh_placements *to);
/* As redistribute_run(), but the elements of the result may be on their way still: tensor_settle(). */
struct mesh_tensor *redistribute_begin(const mesh_dtensor *x, const mesh_placements *to);

/* What changes nothing when reduced by op; the reference is the caller's.  NULL: error set. */
struct mesh_tensor *tensor_identity(mesh_shape shape, mesh_dtype t, mesh_reduce_op op);

#endif
