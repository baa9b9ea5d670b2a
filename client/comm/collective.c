/* client/comm/collective.c - the public collectives, each in one line: what the call is, as data.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/collective.h"

#include "base/error.h"

#define CALL(...) (&(struct collective_call){ __VA_ARGS__ })

/* The function and its _async twin. */
#define COLLECTIVE(name, parameters, ...)                                                                              \
    int mesh_##name parameters                                                                                         \
    {                                                                                                                  \
        err_enter("mesh_" #name);                                                                                      \
        return collective_run(g, CALL(__VA_ARGS__));                                                                   \
    }                                                                                                                  \
    mesh_work *mesh_##name##_async parameters                                                                          \
    {                                                                                                                  \
        err_enter("mesh_" #name "_async");                                                                             \
        return collective_start(g, CALL(__VA_ARGS__));                                                                 \
    }

/* clang-format off */
COLLECTIVE(all_reduce, (void *buf, size_t count, mesh_dtype t, mesh_reduce_op op, mesh_group *g),
           .kind = MESH_COMM_ALL_REDUCE, .dtype = t, .op = op, .count = count, .out = buf)

COLLECTIVE(reduce_scatter, (void *out, const void *in, size_t out_count, mesh_dtype t, mesh_reduce_op op, mesh_group *g),
           .kind = MESH_COMM_REDUCE_SCATTER, .dtype = t, .op = op, .count = out_count, .in = in, .out = out)

COLLECTIVE(all_gather, (void *out, const void *in, size_t in_count, mesh_dtype t, mesh_group *g),
           .kind = MESH_COMM_ALL_GATHER, .dtype = t, .count = in_count, .in = in, .out = out)

COLLECTIVE(all_to_all, (void *out, const void *in, size_t count_per_peer, mesh_dtype t, mesh_group *g),
           .kind = MESH_COMM_ALL_TO_ALL, .dtype = t, .count = count_per_peer, .in = in, .out = out)

COLLECTIVE(broadcast, (void *buf, size_t count, mesh_dtype t, int root, mesh_group *g),
           .kind = MESH_COMM_BROADCAST, .dtype = t, .root = root, .count = count, .out = buf)

COLLECTIVE(reduce, (void *out, const void *in, size_t count, mesh_dtype t, mesh_reduce_op op, int root, mesh_group *g),
           .kind = MESH_COMM_REDUCE, .dtype = t, .op = op, .root = root, .count = count, .in = in, .out = out)

COLLECTIVE(gather, (void *out, const void *in, size_t in_count, mesh_dtype t, int root, mesh_group *g),
           .kind = MESH_COMM_GATHER, .dtype = t, .root = root, .count = in_count, .in = in, .out = out)

COLLECTIVE(scatter, (void *out, const void *in, size_t out_count, mesh_dtype t, int root, mesh_group *g),
           .kind = MESH_COMM_SCATTER, .dtype = t, .root = root, .count = out_count, .in = in, .out = out)

COLLECTIVE(barrier, (mesh_group *g),
           .kind = MESH_COMM_BARRIER)
/* clang-format on */

static int no_counts(void)
{
    return err_set(MESH_EINVAL, "the counts are NULL: one per rank of the group is needed");
}

#define COLLECTIVE_V(name, parameters, has_counts, ...)                                                                \
    int mesh_##name parameters                                                                                         \
    {                                                                                                                  \
        err_enter("mesh_" #name);                                                                                      \
        return (has_counts) ? collective_run(g, CALL(__VA_ARGS__)) : no_counts();                                      \
    }                                                                                                                  \
    mesh_work *mesh_##name##_async parameters                                                                          \
    {                                                                                                                  \
        err_enter("mesh_" #name "_async");                                                                             \
        if (!(has_counts)) {                                                                                           \
            (void)no_counts();                                                                                         \
            return NULL;                                                                                               \
        }                                                                                                              \
        return collective_start(g, CALL(__VA_ARGS__));                                                                 \
    }

/* clang-format off */
COLLECTIVE_V(all_gather_v, (void *out, const size_t *counts, const void *in, mesh_dtype t, mesh_group *g),
             counts != NULL,
             .kind = MESH_COMM_ALL_GATHER, .dtype = t, .out_counts = counts, .in = in, .out = out)

COLLECTIVE_V(reduce_scatter_v, (void *out, const void *in, const size_t *counts, mesh_dtype t, mesh_reduce_op op, mesh_group *g),
             counts != NULL,
             .kind = MESH_COMM_REDUCE_SCATTER, .dtype = t, .op = op, .in_counts = counts, .in = in, .out = out)

COLLECTIVE_V(all_to_all_v, (void *out, const size_t *out_counts, const void *in, const size_t *in_counts, mesh_dtype t, mesh_group *g),
             out_counts != NULL && in_counts != NULL,
             .kind = MESH_COMM_ALL_TO_ALL, .dtype = t, .in_counts = in_counts, .out_counts = out_counts, .in = in, .out = out)

COLLECTIVE_V(gather_v, (void *out, const size_t *counts, const void *in, mesh_dtype t, int root, mesh_group *g),
             counts != NULL,
             .kind = MESH_COMM_GATHER, .dtype = t, .root = root, .out_counts = counts, .in = in, .out = out)

COLLECTIVE_V(scatter_v, (void *out, const void *in, const size_t *counts, mesh_dtype t, int root, mesh_group *g),
             counts != NULL,
             .kind = MESH_COMM_SCATTER, .dtype = t, .root = root, .in_counts = counts, .in = in, .out = out)
/* clang-format on */
