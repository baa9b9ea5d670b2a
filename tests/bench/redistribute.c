/* tests/bench/redistribute.c - what a redistribution costs beside the bare collective it consists of, and that it moves no more.
 *
 *   meshctl run -n N -- bench_redistribute [ROUNDS]        2 or 4 ranks; one JSON line per case of so many ranks
 *
 * In each round both run, a batch of calls each; printed are the medians of the slowest rank.  The bare collective goes from one
 * buffer to another, always the same ones, of the same kind of memory (pages of 2 MiB where the system has them); the
 * redistribution makes its result anew, as it must.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/util.h"
#include "slowest.h"

#define MAX_ROUNDS 101
#define BATCH_US   10000.0

static const struct subject {
    const char *name;
    int n_ranks;
    int64_t rows, columns;
    bool gathers; /* to Replicate; else to Shard(1) */
    double limit; /* the goal for the ratio */
} subjects[] = {
    { "8x8 Shard(0) -> Replicate", 2, 8, 8, true, 1.3 },
    { "64 MiB Shard(0) -> Replicate", 2, 2048, 8192, true, 1.1 },
    { "64 MiB Shard(0) -> Shard(1)", 4, 2048, 8192, false, 1.3 },
};

struct run {
    const struct subject *s;
    mesh_dtensor *x;
    mesh_scope *step; /* of a result */
    float *in, *out;  /* of the bare collective */
    size_t part;      /* elements that it takes from, or for, each rank */
};

static int redistribute_once(const struct run *run)
{
    (void)mesh_scope_next(run->step); /* frees the result before */
    mesh_dtensor *y = mesh_redistribute(run->x, MESH_PLACEMENTS(run->s->gathers ? mesh_replicate() : mesh_shard(1)));
    return y == NULL ? MESH_ESTATE : 0;
}

static int bare_once(const struct run *run)
{
    return run->s->gathers ? mesh_all_gather(run->out, run->in, run->part, MESH_F32, mesh_world())
                           : mesh_all_to_all(run->out, run->in, run->part, MESH_F32, mesh_world());
}

/* Microseconds per call. */
static int time_batch(int (*once)(const struct run *), const struct run *run, int n_calls, double *ret_us)
{
    int r = mesh_barrier(mesh_world());
    int64_t begin_ns = clock_now_ns();
    for (int i = 0; i < n_calls && r == 0; i++) {
        r = once(run);
    }
    *ret_us = (double)(clock_now_ns() - begin_ns) / 1000.0 / n_calls;
    return r;
}

/* The bytes that this rank sends in one call, by all kinds of collectives together. */
static int count_bytes(int (*once)(const struct run *), const struct run *run, uint64_t *ret_bytes)
{
    *ret_bytes = 0;
    mesh_comm_reset();
    int r = once(run);
    for (int kind = MESH_COMM_ALL_REDUCE; kind <= MESH_COMM_BARRIER; kind++) {
        *ret_bytes += mesh_comm_bytes((mesh_comm_kind)kind);
    }
    return r;
}

static int calls_in_batch(const struct run *run, int *ret_calls)
{
    double us = 0;
    int r = time_batch(bare_once, run, 3, &us);
    r = r < 0 ? r : slowest_rank(&us, 1);
    *ret_calls = 1 + (int)(BATCH_US / MAX(us, 0.1));
    return r;
}

static int measure(const struct run *run, int n_rounds)
{
    double ours[MAX_ROUNDS], bare[MAX_ROUNDS], unused;
    uint64_t bytes = 0, bare_bytes = 0;
    int n_calls = 1;
    int r = count_bytes(redistribute_once, run, &bytes);
    r = r < 0 ? r : count_bytes(bare_once, run, &bare_bytes);
    r = r < 0 ? r : calls_in_batch(run, &n_calls);
    r = r < 0 ? r : time_batch(redistribute_once, run, n_calls, &unused);
    for (int i = 0; i < n_rounds && r == 0; i++) {
        r = time_batch(redistribute_once, run, n_calls, &ours[i]);
        r = r < 0 ? r : time_batch(bare_once, run, n_calls, &bare[i]);
    }
    r = r < 0 ? r : slowest_rank(ours, n_rounds);
    r = r < 0 ? r : slowest_rank(bare, n_rounds);
    if (r == 0 && mesh_rank() == 0) {
        double us = median_of(ours, n_rounds), bare_us = median_of(bare, n_rounds);
        (void)printf("{\"bench\": \"redistribute\", \"case\": \"%s\", \"ranks\": %d, \"rounds\": %d, \"calls\": %d, "
                     "\"median_us\": %.2f, \"best_us\": %.2f, \"bare\": \"%s\", \"bare_median_us\": %.2f, "
                     "\"bare_best_us\": %.2f, "
                     "\"ratio\": %.2f, \"ratio_of_best\": %.2f, \"goal\": %.1f, \"bytes_sent\": %llu, "
                     "\"bare_bytes_sent\": %llu}\n",
                     run->s->name, mesh_world_size(), n_rounds, n_calls, us, ours[0],
                     run->s->gathers ? "all_gather" : "all_to_all", bare_us, bare[0], us / bare_us, ours[0] / bare[0],
                     run->s->limit, (unsigned long long)bytes, (unsigned long long)bare_bytes);
    }
    return r;
}

static int run_subject(const struct subject *s, mesh_device_mesh *m, int n_rounds)
{
    size_t n_ranks = (size_t)mesh_world_size(), count = (size_t)(s->rows * s->columns), local = count / n_ranks;
    struct run run = { .s = s, .part = s->gathers ? local : local / n_ranks };
    mesh_scope *scope = mesh_scope_begin();
    run.x = mesh_ones(MESH_SHAPE(s->rows, s->columns), m, MESH_PLACEMENTS(mesh_shard(0)));
    run.in = mem_zalloc(local * sizeof(float));
    run.out = mem_zalloc(count * sizeof(float));
    run.step = mesh_scope_begin();
    int r = run.x == NULL || run.in == NULL || run.out == NULL ? MESH_ENOMEM : measure(&run, n_rounds);
    mem_free(run.in);
    mem_free(run.out);
    int left = mesh_scope_end(scope);
    return r < 0 ? r : left;
}

int main(int argc, char **argv)
{
    int n_rounds = argc > 1 ? atoi(argv[1]) : 15;
    int r = mesh_init();
    mesh_device_mesh *m = r < 0 ? NULL : mesh_init_device_mesh("cpu", MESH_SHAPE(mesh_world_size()), NULL);
    r = m == NULL ? MESH_ESTATE : 0;
    n_rounds = MIN(MAX(n_rounds, 1), MAX_ROUNDS);
    for (size_t i = 0; i < ARRAY_SIZE(subjects) && r == 0; i++) {
        r = subjects[i].n_ranks == mesh_world_size() ? run_subject(&subjects[i], m, n_rounds) : 0;
    }
    int left = r < 0 ? 0 : mesh_finalize();
    if (r < 0 || left < 0) {
        mesh_perror("redistribute");
    }
    return r < 0 || left < 0;
}
