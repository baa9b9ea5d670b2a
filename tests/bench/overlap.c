/* tests/bench/overlap.c - does computing go on while bytes move: an all_reduce beside a matmul of equal length.
 *
 *   meshctl run -n N -- bench_overlap [--bytes BYTES] [--rounds N] [--free 0|1]
 *
 * Three times, each of the slowest rank: the all_reduce alone, so many matmuls as take as long, and both: begun, computed, waited
 * for.  Best are 1.0 times the longer one, worst 2.0, the sum.
 *
 *   --free 0   every rank computes.  Cores are free for the bytes only where there are two for each rank.
 *   --free 1   for two processors: rank 0 computes on the first, and all that moves bytes, of both ranks, has the second for
 *              itself; rank 1 sleeps.  The all_reduce alone then is one that is not helped by a waiting thread either.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/util.h"
#include "processor.h"
#include "slowest.h"

#define MAX_ROUNDS  101
#define SIDE        256 /* of a matmul's square: a fraction of a millisecond */
#define LOOK_US     50  /* how long a rank sleeps that neither computes nor waits */
#define MAX_MATMULS 100000

struct options {
    size_t bytes;
    int n_rounds;
    bool is_free;
};

struct bench {
    struct options o;
    float *buffer;
    mesh_dtensor *a, *b;
    int n_matmuls;
};

static bool computes(const struct bench *bench)
{
    return !bench->o.is_free || mesh_rank() == 0;
}

static mesh_work *begin(const struct bench *bench)
{
    return mesh_all_reduce_async(bench->buffer, bench->o.bytes / sizeof(float), MESH_F32, MESH_SUM, mesh_world());
}

static int compute(const struct bench *bench)
{
    mesh_scope *scope = mesh_scope_begin();
    for (int i = 0; i < bench->n_matmuls && computes(bench) && mesh_scope_next(scope); i++) {
        (void)mesh_matmul(bench->a, bench->b);
    }
    return mesh_scope_end(scope);
}

/* Waits; with cores that are free without lending this thread to it. */
static int wait_for(const struct bench *bench, mesh_work *w)
{
    struct timespec pause = { .tv_nsec = LOOK_US * 1000 };
    while (bench->o.is_free && !mesh_done(w)) {
        (void)nanosleep(&pause, NULL);
    }
    return mesh_wait(w, 0);
}

static int all_reduce_alone(const struct bench *bench)
{
    return wait_for(bench, begin(bench));
}

static int both(const struct bench *bench)
{
    mesh_work *w = begin(bench);
    int computed = compute(bench);
    int r = wait_for(bench, w);
    return r < 0 ? r : computed;
}

static int time_once(int (*fn)(const struct bench *), const struct bench *bench, double *ret_us)
{
    int r = mesh_barrier(mesh_world());
    int64_t begin_ns = clock_now_ns();
    r = r < 0 ? r : fn(bench);
    *ret_us = (double)(clock_now_ns() - begin_ns) / 1000.0;
    return r;
}

static int time_rounds(int (*fn)(const struct bench *), const struct bench *bench, double *us)
{
    int r = 0;
    for (int i = 0; i < bench->o.n_rounds && r == 0; i++) {
        r = time_once(fn, bench, &us[i]);
    }
    return r < 0 ? r : slowest_rank(us, bench->o.n_rounds);
}

/* As many matmuls as take as long as the all_reduce. */
static int match_length(struct bench *bench, double *us, double *ret_all_reduce_us)
{
    double one_us = 0;
    bench->n_matmuls = 20;
    int r = time_rounds(all_reduce_alone, bench, us);
    *ret_all_reduce_us = median_of(us, bench->o.n_rounds);
    r = r < 0 ? r : time_rounds(compute, bench, us);
    one_us = median_of(us, bench->o.n_rounds) / bench->n_matmuls;
    bench->n_matmuls = (int)MIN(MAX(*ret_all_reduce_us / one_us + 0.5, 1), MAX_MATMULS);
    return r;
}

static int measure(struct bench *bench)
{
    double us[MAX_ROUNDS], all_reduce_us = 0, matmul_us, both_us, best_us;
    int r = time_once(all_reduce_alone, bench, us);
    r = r < 0 ? r : match_length(bench, us, &all_reduce_us);
    r = r < 0 ? r : time_rounds(compute, bench, us);
    matmul_us = median_of(us, bench->o.n_rounds);
    r = r < 0 ? r : time_rounds(both, bench, us);
    both_us = median_of(us, bench->o.n_rounds);
    best_us = us[0];
    if (r == 0 && mesh_rank() == 0) {
        double longer_us = MAX(all_reduce_us, matmul_us);
        (void)printf(
            "{\"bench\": \"overlap\", \"ranks\": %d, \"processors\": %d, \"cores_free\": %s, \"bytes\": %zu, "
            "\"rounds\": %d, "
            "\"matmuls\": %d, \"all_reduce_us\": %.0f, \"matmul_us\": %.0f, \"both_us\": %.0f, \"both_best_us\": %.0f, "
            "\"ratio_to_longer\": %.2f, \"ratio_to_sum\": %.2f, \"goal_when_free\": 1.3}\n",
            mesh_world_size(), processor_count(),
            bench->o.is_free || processor_count() >= 2 * mesh_world_size() ? "true" : "false", bench->o.bytes,
            bench->o.n_rounds, bench->n_matmuls, all_reduce_us, matmul_us, both_us, best_us, both_us / longer_us,
            both_us / (all_reduce_us + matmul_us));
    }
    return r;
}

static int run_rank(const struct options *o)
{
    struct bench bench = { .o = *o, .buffer = calloc(1, o->bytes) };
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(mesh_world_size()), NULL);
    mesh_placements everywhere = MESH_PLACEMENTS(mesh_replicate());
    bench.a = mesh_rand(MESH_SHAPE(SIDE, SIDE), m, everywhere);
    bench.b = mesh_rand(MESH_SHAPE(SIDE, SIDE), m, everywhere);
    int r = bench.buffer == NULL ? MESH_ENOMEM : bench.b == NULL ? MESH_ESTATE : 0;
    if (r == 0) {
        memset(bench.buffer, 0, o->bytes);
        r = measure(&bench);
    }
    free(bench.buffer);
    return r;
}

static bool read_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i += 2) {
        long long value = i + 1 < argc ? atoll(argv[i + 1]) : -1;
        if (strcmp(argv[i], "--bytes") == 0 && value >= 4) {
            o->bytes = (size_t)value;
        } else if (strcmp(argv[i], "--rounds") == 0 && value > 0 && value <= MAX_ROUNDS) {
            o->n_rounds = (int)value;
        } else if (strcmp(argv[i], "--free") == 0 && (value == 0 || value == 1)) {
            o->is_free = value == 1;
        } else {
            (void)fprintf(stderr, "usage: bench_overlap [--bytes BYTES] [--rounds 1..%d] [--free 0|1]\n", MAX_ROUNDS);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o = { .bytes = 16 << 20, .n_rounds = 15 };
    if (!read_options(argc, argv, &o)) {
        return 2;
    }
    if (o.is_free) {
        (void)processor_stay_on(1); /* the library's thread begins here, and stays */
    }
    int r = mesh_init();
    if (o.is_free && r == 0 && mesh_rank() == 0) {
        (void)processor_stay_on(0);
    }
    r = r < 0 ? r : run_rank(&o);
    int left = r < 0 ? 0 : mesh_finalize();
    if (r < 0 || left < 0) {
        mesh_perror("overlap");
    }
    return r < 0 || left < 0;
}
