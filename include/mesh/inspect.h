/* mesh/inspect.h - seeing what a program does: pictures of layouts, values, communication; refusing what is not meant.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MESH_INSPECT_H
#define MESH_INSPECT_H

#include <stdio.h>

#include "debug.h"
#include "dtensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes who holds what of x as text into buf, cut to fit: a table of index ranges and the ranks that hold them.
 *
 * Replicas are joined by ",", parts of a pending reduction by "+"; ranks that hold nothing come last.  A tensor of more than two
 * dimensions is shown in slices of its last two.
 *
 *     [5,4] f32 [S(0), P(sum)] on (dp=2, tp=2)
 *           0:4
 *     0:3   0+1
 *     3:5   2+3
 *
 * Cost        no traffic; the same text on every rank.
 * Errors      the length of the whole text, as snprintf(); negative: MESH_EINVAL when x is NULL. */
MESH_API int mesh_visualize_sharding(const mesh_dtensor *x, char *buf, size_t cap);

/* As mesh_visualize_sharding(), as an SVG picture, drawn to scale.
 *
 * Errors      as mesh_visualize_sharding(). */
MESH_API int mesh_visualize_sharding_svg(const mesh_dtensor *x, char *buf, size_t cap);

/* Writes x's shape, dtype, layout and global values to f; long dimensions are shown by their ends.
 *
 * f may be NULL on ranks that are not to write.
 *
 * Collective  on x's mesh.
 * Cost        that of mesh_full_tensor().
 * Errors      MESH_EINVAL, MESH_EIO (on this rank only); those of collectives. */
MESH_API int mesh_print(mesh_dtensor *x, FILE *f);

typedef struct mesh_comm_record {
    mesh_comm_kind kind;
    int n_ranks;       /* of its group */
    uint64_t bytes;    /* that this rank must send at least */
    const char *where; /* public function, e.g. "mesh_matmul" */
    char op[32];       /* operator, e.g. "matmul"; "" outside one */
    char plan[64];     /* change of layout, e.g. "S(0)->R on tp"; "" when it is none */
} mesh_comm_record;
typedef struct mesh_comm_log mesh_comm_log;

/* Begins to list the collectives that this thread begins on groups of more than one rank, in order.
 *
 * Logs nest: the outer one has what the inner ones have.
 *
 * Ownership   belongs to the innermost scope, whose end ends it.
 * Errors      NULL: MESH_ENOMEM. */
MESH_API mesh_comm_log *mesh_comm_log_begin(void);

/* Ends the list; the records may be read until the scope ends.
 *
 * Errors      MESH_EINVAL for NULL; MESH_ESTATE when it has ended; MESH_ENOMEM when a record is missing. */
MESH_API int mesh_comm_log_end(mesh_comm_log *log);

/* How many records there are; of NULL 0. */
MESH_API size_t mesh_comm_log_size(const mesh_comm_log *log);

/* One record, from 0; NULL beyond the last.
 *
 * Ownership   the log's, until it is written to again or ends. */
MESH_API const mesh_comm_record *mesh_comm_log_at(const mesh_comm_log *log, size_t i);

/* Makes implicit communication an error on this thread, or not any more; returns how it was.
 *
 * When on, an operator that would have to redistribute an input, so that bytes travel, fails with MESH_EPLACEMENT and names the
 * argument, both layouts and the moves, on all ranks before any traffic.  What is asked for (mesh_redistribute(),
 * mesh_full_tensor(), mesh_item()), what an operator's own distributed form exchanges, and backward passes stay allowed. */
MESH_API bool mesh_explicit(bool on);

/* Compares replicas after each operator of this thread, or not any more; returns how it was.
 *
 * When on, the first operator whose result differs between ranks that should hold the same bits fails with MESH_EMISMATCH on
 * all ranks, naming operator, tensor and ranks.  Every rank of the mesh sets it alike.
 *
 * Cost        when on, a hash of each result and one small all_gather. */
MESH_API bool mesh_check_replicas(bool on);

#ifdef __cplusplus
}
#endif

#endif
