/* client/ctl/bench_calls.c - our own collectives, called as the rules of benchmarks ask.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/bench_calls.h"

#include <mesh/collective.h>
#include <mesh/group.h>

static int ping_pong(const struct bench_call *c, mesh_group *g)
{
    int rank = mesh_rank(), r = 0;
    if (rank == 0) {
        r = mesh_send(c->x, c->count, MESH_F32, 1, 0, g);
        r = r < 0 ? r : mesh_recv(c->y, c->count, MESH_F32, 1, 0, g);
    } else if (rank == 1) {
        r = mesh_recv(c->y, c->count, MESH_F32, 0, 0, g);
        r = r < 0 ? r : mesh_send(c->y, c->count, MESH_F32, 0, 0, g);
    }
    return r;
}

static int call(const struct bench_call *c)
{
    mesh_group *g = mesh_world();
    switch (c->op) {
    case BENCH_ALL_REDUCE:
        return mesh_all_reduce(c->x, c->count, MESH_F32, MESH_SUM, g);
    case BENCH_ALL_REDUCE_F16:
        return mesh_all_reduce(c->x, c->count, MESH_F16, MESH_SUM, g);
    case BENCH_ALL_REDUCE_BF16:
        return mesh_all_reduce(c->x, c->count, MESH_BF16, MESH_SUM, g);
    case BENCH_ALL_GATHER:
        return mesh_all_gather(c->y, c->x, c->part, MESH_F32, g);
    case BENCH_REDUCE_SCATTER:
        return mesh_reduce_scatter(c->y, c->x, c->part, MESH_F32, MESH_SUM, g);
    case BENCH_BROADCAST:
        return mesh_broadcast(c->x, c->count, MESH_F32, c->root, g);
    case BENCH_ALL_TO_ALL:
        return mesh_all_to_all(c->y, c->x, c->part, MESH_F32, g);
    case BENCH_REDUCE:
        return mesh_reduce(c->y, c->x, c->count, MESH_F32, MESH_SUM, c->root, g);
    case BENCH_GATHER:
        return mesh_gather(c->y, c->x, c->part, MESH_F32, c->root, g);
    case BENCH_SCATTER:
        return mesh_scatter(c->y, c->x, c->part, MESH_F32, c->root, g);
    case BENCH_PING_PONG:
        return ping_pong(c, g);
    default:
        return mesh_barrier(g);
    }
}

struct bench_library bench_own_library(const char *mode)
{
    return (struct bench_library){
        .name = "mesh", .mode = mode, .rank = mesh_rank(), .n_ranks = mesh_world_size(), .call = call
    };
}
