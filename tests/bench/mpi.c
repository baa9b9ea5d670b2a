/* tests/bench/mpi.c - the collectives of whatever MPI this is linked with, in the rows of rows.h.
 *
 *   mpirun -n N mpi NAME MODE [OPTIONS]      NAME and MODE are only words for the rows
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "rows.h"

static int rank_here;

static int ping_pong(const struct bench_call *c, int n)
{
    int other = 1 - rank_here;
    if (rank_here > 1) {
        return MPI_SUCCESS;
    }
    if (rank_here == 0) {
        (void)MPI_Send(c->x, n, MPI_FLOAT, other, 0, MPI_COMM_WORLD);
        return MPI_Recv(c->y, n, MPI_FLOAT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    (void)MPI_Recv(c->y, n, MPI_FLOAT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return MPI_Send(c->y, n, MPI_FLOAT, other, 0, MPI_COMM_WORLD);
}

static int begin(const struct bench_call *c)
{
    int n = (int)c->count, part = (int)c->part;
    switch (c->op) {
    case BENCH_ALL_REDUCE:
        return MPI_Allreduce(MPI_IN_PLACE, c->x, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case BENCH_ALL_GATHER:
        return MPI_Allgather(c->x, part, MPI_FLOAT, c->y, part, MPI_FLOAT, MPI_COMM_WORLD);
    case BENCH_REDUCE_SCATTER:
        return MPI_Reduce_scatter_block(c->x, c->y, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case BENCH_BROADCAST:
        return MPI_Bcast(c->x, n, MPI_FLOAT, c->root, MPI_COMM_WORLD);
    case BENCH_ALL_TO_ALL:
        return MPI_Alltoall(c->x, part, MPI_FLOAT, c->y, part, MPI_FLOAT, MPI_COMM_WORLD);
    case BENCH_BARRIER:
        return MPI_Barrier(MPI_COMM_WORLD);
    case BENCH_REDUCE:
        return MPI_Reduce(c->x, c->y, n, MPI_FLOAT, MPI_SUM, c->root, MPI_COMM_WORLD);
    case BENCH_GATHER:
        return MPI_Gather(c->x, part, MPI_FLOAT, c->y, part, MPI_FLOAT, c->root, MPI_COMM_WORLD);
    case BENCH_SCATTER:
        return MPI_Scatter(c->x, part, MPI_FLOAT, c->y, part, MPI_FLOAT, c->root, MPI_COMM_WORLD);
    case BENCH_PING_PONG:
        return ping_pong(c, n);
    default:
        return MPI_ERR_TYPE;
    }
}

static int call(const struct bench_call *c)
{
    return begin(c) == MPI_SUCCESS ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct rows rows;
    rows_init(&rows);
    (void)MPI_Init(&argc, &argv);
    if (argc < 3 || !rows_options(&rows, argc - 3, argv + 3)) {
        (void)fprintf(stderr, "usage: mpi NAME MODE " ROWS_OPTIONS "\n");
        (void)MPI_Abort(MPI_COMM_WORLD, 2);
    }
    rows.is_asked[BENCH_ALL_REDUCE_F16] = rows.is_asked[BENCH_ALL_REDUCE_BF16] = false; /* MPI has no 16-bit floats */
    struct bench_library library = { .name = argv[1], .mode = argv[2], .call = call };
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &library.rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &library.n_ranks);
    rank_here = library.rank;
    int r = rows_run(&rows, &library);
    (void)MPI_Finalize();
    return r != 0;
}
