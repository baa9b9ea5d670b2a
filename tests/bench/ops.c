/* tests/bench/ops.c - what an operator costs above its kernel: one JSON line per operator, on 8x8 f32 in a world of one rank.
 *
 *   ops [ROUNDS]
 *
 * An operator runs 1000 times a round, in one scope; its kernel 1000 times on the same memory.  Time is that of this thread on a
 * processor, so that other programs disturb it little; printed are the best and the median round, in ns per call.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dtensor/dtensor.h"
#include "tensor/kernels.h"

#define CALLS 1000

struct subject {
    const char *name;
    mesh_dtensor *(*run)(mesh_dtensor *a, mesh_dtensor *b);
    int (*kernel)(const struct kernel_call *c);
    int n_in;
};

static const struct subject subjects[] = {
    { "add", mesh_add, k_add, 2 },
    { "mul", mesh_mul, k_mul, 2 },
    { "matmul", mesh_matmul, k_matmul, 2 },
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double round_of_operator(const struct subject *s, mesh_dtensor *a, mesh_dtensor *b)
{
    mesh_scope *scope = mesh_scope_begin();
    double begin = now_ns();
    for (int i = 0; i < CALLS; i++) {
        (void)s->run(a, b);
    }
    int r = mesh_scope_end(scope); /* what an operator makes is freed too */
    double end = now_ns();
    if (r < 0) {
        mesh_perror(s->name);
        exit(1);
    }
    return (end - begin) / CALLS;
}

static double round_of_kernel(const struct subject *s, mesh_dtensor *a, mesh_dtensor *b, mesh_dtensor *out)
{
    static const struct op_attr none;
    struct kernel_call call = { .in = { a->local, s->n_in > 1 ? b->local : NULL },
                                .out = { out->local },
                                .attr = &none };
    double begin = now_ns();
    for (int i = 0; i < CALLS; i++) {
        (void)s->kernel(&call);
    }
    return (now_ns() - begin) / CALLS;
}

static void measure(const struct subject *s, mesh_device_mesh *m, int rounds)
{
    mesh_placements p = MESH_PLACEMENTS(mesh_replicate());
    mesh_dtensor *a = mesh_randn(MESH_SHAPE(8, 8), m, p), *b = mesh_randn(MESH_SHAPE(8, 8), m, p);
    mesh_dtensor *out = mesh_zeros(MESH_SHAPE(8, 8), m, p);
    double *op = malloc((size_t)rounds * sizeof *op), *kernel = malloc((size_t)rounds * sizeof *kernel);
    if (!a || !b || !out || !op || !kernel) {
        mesh_perror("bench");
        exit(1);
    }
    (void)round_of_operator(s, a, b);
    for (int i = 0; i < rounds; i++) {
        op[i] = round_of_operator(s, a, b);
        kernel[i] = round_of_kernel(s, a, b, out);
    }
    qsort(op, (size_t)rounds, sizeof *op, by_value);
    qsort(kernel, (size_t)rounds, sizeof *kernel, by_value);
    printf("{\"bench\":\"ops\",\"op\":\"%s\",\"shape\":[8,8],\"dtype\":\"f32\",\"rounds\":%d,\"op_best_ns\":%.0f,"
           "\"op_median_ns\":%.0f,\"kernel_best_ns\":%.0f,\"kernel_median_ns\":%.0f,\"above_kernel_best_ns\":%.0f}\n",
           s->name, rounds, op[0], op[rounds / 2], kernel[0], kernel[rounds / 2], op[0] - kernel[0]);
    free(op);
    free(kernel);
}

static int bench(void *arg)
{
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(1), MESH_NAMES("tp"));
    for (size_t i = 0; m && i < sizeof subjects / sizeof subjects[0]; i++) {
        measure(&subjects[i], m, *(const int *)arg);
    }
    return m ? 0 : -1;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    rounds = rounds < 1 ? 1 : rounds;
    if (mesh_world_run(1, bench, &rounds) < 0) {
        mesh_perror("bench");
        return 1;
    }
    return 0;
}
