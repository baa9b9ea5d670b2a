/* client/comm/collective.h - one collective call as data, for the layers above: the same path as the public functions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMM_COLLECTIVE_H
#define COMM_COLLECTIVE_H

#include <mesh/collective.h>
#include <mesh/debug.h>

#include "base/call_words.h"
#include "session/session.h"

struct collective_call {
    mesh_comm_kind kind;
    mesh_dtype dtype;
    mesh_reduce_op op; /* of reductions */
    int root;          /* group rank; of broadcast */
    size_t count;      /* elements: of the whole vector (all_reduce, broadcast), of one rank's part (all_gather: in;
                              reduce_scatter: out), per peer (all_to_all); unused when counts are given */
    const size_t *in_counts;  /* [group size] elements per rank: reduce_scatter_v, all_to_all_v (sent to each) */
    const size_t *out_counts; /* [group size] elements per rank: all_gather_v, all_to_all_v (received from each) */
    size_t in_rows; /* all_to_all: in has that many rows, each with a row of every part in turn; 0: parts in turn */
    const void *in; /* may equal out where the public call is in place */
    void *out;
    uint32_t parts;     /* all_reduce of several buffers as one: digest of their lengths; 0: of one */
    bool is_monitored;  /* a barrier by way of group rank 0, which names everybody who is late */
    int64_t timeout_ms; /* of this call; 0: the session's */
};

int collective_run(mesh_group *g, const struct collective_call *call);          /* blocks; 0 or the status, error set */
mesh_work *collective_start(mesh_group *g, const struct collective_call *call); /* NULL: error set */

/* Hears of every call that this thread begins; NULL: nobody does.  Returns who did. */
typedef void (*collective_observer)(const mesh_group *g, const struct collective_call *call);
collective_observer collective_observe(collective_observer observer);

/* The dtype can be reduced with op: else MESH_EUNSUPPORTED, before any traffic. */
int reduce_check(mesh_dtype t, mesh_reduce_op op);
/* a[i] = a[i] op b[i]; min and max propagate NaN; AVG adds (the divide comes once, at the end). */
void reduce_into(void *a, const void *b, size_t count, mesh_dtype t, mesh_reduce_op op);
/* x[i] = the element that changes nothing: sum 0, prod 1, max -inf or the least, min +inf or the greatest. */
void reduce_fill_identity(void *x, size_t count, mesh_dtype t, mesh_reduce_op op);

#endif
