/* client/ctl/bench_rank.c - one rank of `meshctl bench`.
 *
 * A size is that of the whole vector in bytes (all_gather: the output; reduce_scatter and all_to_all: the input).  Calls are
 * made back to back in batches; the time of a batch is that of its slowest rank; the median and the best batch are printed,
 * each per call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/bench_rank.h"

#include <mesh/collective.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/call_words.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "ctl/say.h"

#define N_BATCHES 15
#define BATCH_US  20000.0
#define N_WARM_UP 3

struct buffers {
    float *in, *out;
    size_t count; /* of the whole vector */
};

static int call(mesh_comm_kind kind, const struct buffers *b, int i)
{
    mesh_group *g = mesh_world();
    size_t n = (size_t)mesh_world_size(), part = MAX(b->count / n, 1);
    switch (kind) {
    case MESH_COMM_ALL_REDUCE:
        return mesh_all_reduce(b->out, b->count, MESH_F32, MESH_SUM, g); /* of zeros, which stay */
    case MESH_COMM_REDUCE_SCATTER:
        return mesh_reduce_scatter(b->out, b->in, part, MESH_F32, MESH_SUM, g);
    case MESH_COMM_ALL_GATHER:
        return mesh_all_gather(b->out, b->in, part, MESH_F32, g);
    case MESH_COMM_ALL_TO_ALL:
        return mesh_all_to_all(b->out, b->in, part, MESH_F32, g);
    case MESH_COMM_BROADCAST: /* the root moves on, so that no call can overtake another */
        return mesh_broadcast(b->out, b->count, MESH_F32, i % (int)n, g);
    default:
        return mesh_barrier(g);
    }
}

/* Microseconds per call, as the slowest rank saw it. */
static int time_batch(mesh_comm_kind kind, const struct buffers *b, int n_calls, double *ret_us)
{
    int r = mesh_barrier(mesh_world());
    int64_t begin_ns = clock_now_ns();
    for (int i = 0; i < n_calls && r == 0; i++) {
        r = call(kind, b, i);
    }
    double us = (double)(clock_now_ns() - begin_ns) / 1000.0 / n_calls;
    r = r < 0 ? r : mesh_all_reduce(&us, 1, MESH_F64, MESH_MAX, mesh_world());
    *ret_us = us;
    return r;
}

static int steps_of(int n_ranks)
{
    int steps = 0;
    for (int reached = 1; reached < n_ranks; reached *= 2) {
        steps++;
    }
    return steps;
}

/* The least that a rank must send, or receive when that is more. */
static double bytes_of(mesh_comm_kind kind, double bytes, int n_ranks)
{
    double others = (double)(n_ranks - 1) / n_ranks;
    switch (kind) {
    case MESH_COMM_ALL_REDUCE:
        return 2 * others * bytes;
    case MESH_COMM_BROADCAST:
        return n_ranks > 1 ? bytes : 0;
    case MESH_COMM_BARRIER:
        return 0;
    default:
        return others * bytes;
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const struct bench *bench, mesh_comm_kind kind, uint64_t bytes, const double *us)
{
    int n = mesh_world_size();
    double median_us = us[N_BATCHES / 2], moved = bytes_of(kind, (double)bytes, n);
    double roof_us = roof_time_us(&bench->roof, steps_of(n), moved);
    (void)printf("{\"ranks\": %d, \"collective\": \"%s\", \"bytes\": %" PRIu64 ", \"median_us\": %.2f, "
                 "\"best_us\": %.2f, \"gb_per_s\": %.3f, \"roof_us\": %.2f, \"percent_of_roof\": %.1f}\n",
                 n, comm_kind_name(kind), bytes, median_us, us[0], moved / median_us / 1000, roof_us,
                 100 * roof_us / median_us);
    (void)fflush(stdout);
}

static int measure(const struct bench *bench, mesh_comm_kind kind, const struct buffers *b)
{
    double us[N_BATCHES], first_us;
    int r = time_batch(kind, b, N_WARM_UP, &first_us);
    r = r < 0 ? r : time_batch(kind, b, N_WARM_UP, &first_us);
    int n_calls = (int)(BATCH_US / MAX(first_us, 0.1)) + 1;
    for (int i = 0; i < N_BATCHES && r == 0; i++) {
        r = time_batch(kind, b, n_calls, &us[i]);
    }
    if (r == 0 && mesh_rank() == 0) {
        qsort(us, N_BATCHES, sizeof us[0], by_size);
        print(bench, kind, kind == MESH_COMM_BARRIER ? 0 : b->count * sizeof(float), us);
    }
    return r;
}

static uint64_t largest(const struct bench *b)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < b->n_sizes; i++) {
        bytes = MAX(bytes, b->size[i]);
    }
    return bytes;
}

static int measure_all(const struct bench *bench)
{
    size_t bytes = (size_t)largest(bench) + sizeof(float) * (size_t)mesh_world_size(); /* a part has at least one */
    struct buffers b = { .in = mem_zalloc(bytes), .out = mem_zalloc(bytes) };
    int r = b.in == NULL || b.out == NULL ? err_no_memory(bytes, "the buffers of a benchmark") : 0;
    for (size_t k = 0; k < bench->n_kinds && r == 0; k++) {
        for (size_t i = 0; i < bench->n_sizes && r == 0; i++) {
            b.count = MAX((size_t)bench->size[i] / sizeof(float), 1);
            r = measure(bench, bench->kind[k], &b);
            if (bench->kind[k] == MESH_COMM_BARRIER) {
                break;
            }
        }
    }
    mem_free(b.in);
    mem_free(b.out);
    return r;
}

int bench_rank(const struct bench *b)
{
    int r = mesh_init();
    if (r < 0) {
        return say_failure(r);
    }
    r = measure_all(b);
    int code = r < 0 ? say_failure(r) : EXIT_OK;
    int left = mesh_finalize();
    return r == 0 && left < 0 ? say_failure(left) : code;
}
