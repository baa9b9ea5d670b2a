/* tests/bench/collectives.c - how long collectives take: one JSON line per collective and size.
 *
 *   collectives --ranks N [--link sim|unix|tcp] [--max BYTES]     N threads of this process
 *   meshctl run -n N -- collectives [--max BYTES]                 N processes, linked as MESH_LINK says
 *
 * A size is that of the whole vector (all_gather: output; reduce_scatter, all_to_all: input).  Calls are made back to back in
 * batches; the time of a batch is that of the slowest rank; printed are the median and the best batch, per call.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/collective.h>
#include <mesh/debug.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "comm/world.h"

#define N_BATCHES 15
#define BATCH_US  20000.0

struct options {
    int n_ranks;
    enum link_kind link;
    size_t max_bytes;
};

struct buffers {
    float *in, *out;
    size_t bytes;
};

static int call(mesh_comm_kind kind, const struct buffers *b, int i)
{
    mesh_group *g = mesh_world();
    size_t n = (size_t)mesh_world_size(), count = b->bytes / 4, part = count / n > 0 ? count / n : 1;
    switch (kind) {
    case MESH_COMM_ALL_REDUCE:
        return mesh_all_reduce(b->out, count, MESH_F32, MESH_MAX, g); /* values that stay finite */
    case MESH_COMM_REDUCE_SCATTER:
        return mesh_reduce_scatter(b->out, b->in, part, MESH_F32, MESH_SUM, g);
    case MESH_COMM_ALL_GATHER:
        return mesh_all_gather(b->out, b->in, part, MESH_F32, g);
    case MESH_COMM_ALL_TO_ALL:
        return mesh_all_to_all(b->out, b->in, part, MESH_F32, g);
    case MESH_COMM_BROADCAST:
        return mesh_broadcast(b->out, count, MESH_F32, i % (int)n, g);
    default:
        return mesh_barrier(g);
    }
}

/* Microseconds per call of a batch, as the slowest rank saw it. */
static int time_batch(mesh_comm_kind kind, const struct buffers *b, int n_calls, double *ret_us)
{
    int r = mesh_barrier(mesh_world());
    int64_t begun = clock_now_ns();
    for (int i = 0; i < n_calls && r == 0; i++) {
        r = call(kind, b, i);
    }
    double us = (double)(clock_now_ns() - begun) / 1000.0 / n_calls;
    r = r < 0 ? r : mesh_all_reduce(&us, 1, MESH_F64, MESH_MAX, mesh_world());
    *ret_us = us;
    return r;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(mesh_comm_kind kind, const char *name, const struct buffers *b)
{
    double us[N_BATCHES], first;
    int r = time_batch(kind, b, 3, &first);
    r = r < 0 ? r : time_batch(kind, b, 3, &first);
    int n_calls = (int)(BATCH_US / (first > 0.1 ? first : 0.1)) + 1;
    for (int i = 0; i < N_BATCHES && r == 0; i++) {
        r = time_batch(kind, b, n_calls, &us[i]);
    }
    if (r == 0 && mesh_rank() == 0) {
        qsort(us, N_BATCHES, sizeof us[0], by_size);
        printf("{\"ranks\": %d, \"collective\": \"%s\", \"bytes\": %zu, \"median_us\": %.2f, \"best_us\": %.2f}\n",
               mesh_world_size(), name, b->bytes, us[N_BATCHES / 2], us[0]);
        fflush(stdout);
    }
    return r;
}

static int run_all(void *arg)
{
    static const struct {
        mesh_comm_kind kind;
        const char *name;
    } kinds[] = {
        { MESH_COMM_ALL_REDUCE, "all_reduce" }, { MESH_COMM_REDUCE_SCATTER, "reduce_scatter" },
        { MESH_COMM_ALL_GATHER, "all_gather" }, { MESH_COMM_ALL_TO_ALL, "all_to_all" },
        { MESH_COMM_BROADCAST, "broadcast" },   { MESH_COMM_BARRIER, "barrier" },
    };
    static const size_t sizes[] = { 8, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 16 << 20, 64 << 20 };
    const struct options *o = arg;
    struct buffers b = { .in = calloc(1, o->max_bytes + 4096), .out = calloc(1, o->max_bytes + 4096) };
    int r = 0;
    if (b.in == NULL || b.out == NULL) {
        return MESH_ENOMEM;
    }
    memset(b.in, 0, o->max_bytes); /* touched once, before any clock runs */
    memset(b.out, 0, o->max_bytes);
    for (size_t k = 0; k < ARRAY_SIZE(kinds) && r == 0; k++) {
        for (size_t s = 0; s < ARRAY_SIZE(sizes) && sizes[s] <= o->max_bytes && r == 0; s++) {
            b.bytes = sizes[s];
            r = measure(kinds[k].kind, kinds[k].name, &b);
            if (kinds[k].kind == MESH_COMM_BARRIER) {
                break;
            }
        }
    }
    free(b.in);
    free(b.out);
    return r;
}

static int usage(void)
{
    fprintf(stderr, "usage: collectives [--ranks N] [--link sim|unix|tcp] [--max BYTES]\n");
    return 2;
}

static int read_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            return usage();
        }
        if (strcmp(argv[i], "--ranks") == 0) {
            o->n_ranks = atoi(argv[i + 1]);
        } else if (strcmp(argv[i], "--max") == 0) {
            o->max_bytes = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--link") == 0) {
            o->link = strcmp(argv[i + 1], "tcp") == 0    ? LINK_TCP
                      : strcmp(argv[i + 1], "unix") == 0 ? LINK_UNIX
                                                         : LINK_SIM;
        } else {
            return usage();
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = { .n_ranks = 2, .link = LINK_UNIX, .max_bytes = 64 << 20 };
    int r = read_options(argc, argv, &o);
    if (r != 0) {
        return r;
    }
    if (getenv("MESH_JOB") == NULL) {
        r = world_run_linked(o.n_ranks, o.link, 0, run_all, &o);
    } else {
        r = mesh_init();
        r = r < 0 ? r : run_all(&o);
        int left = r < 0 ? 0 : mesh_finalize();
        r = r < 0 ? r : left;
    }
    if (r != 0) {
        mesh_perror("collectives");
    }
    return r != 0;
}
