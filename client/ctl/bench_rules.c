/* client/ctl/bench_rules.c - the timing of one collective at one size, in batches, as the slowest rank sees it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/bench_rules.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"

#define PAGE_BYTES  ((size_t)4096)
#define N_WARM_UP   5 /* tries to find how many calls fill a batch: the first calls are often far slower */
#define MAX_CALLS   20000
#define N_NOTES     (BENCH_MAX_BATCHES + 1) /* what a rank tells of a point: its times, and whether its result was right */
#define N_PLAN      ((size_t)4)
#define MIN_BATCHES 3
#define SHORTEST_US 0.01

const struct bench_rules bench_usual_rules = { .n_batches = 9, .batch_ms = 25, .point_ms = 4000 };

struct point {
    const struct bench_library *l;
    const struct bench_rules *rules;
    struct bench_call call;
    long n_calls;
    double estimate_us; /* of one call */
};

static int time_batch(const struct point *p, double *ret_us)
{
    struct bench_call c = p->call;
    int r = p->l->call(&(struct bench_call){ .op = BENCH_BARRIER });
    int64_t begin_ns = clock_now_ns();
    for (long i = 0; i < p->n_calls && r == 0; i++) {
        c.root = (int)(i % p->l->n_ranks);
        r = p->l->call(&c);
    }
    *ret_us = (double)(clock_now_ns() - begin_ns) / 1000.0;
    return r;
}

/* Rank 0 says how many calls fill a batch, after how long its last ones took; all ranks do the same then. */
static int agree_on_calls(struct point *p, float *plan)
{
    double batch_us = p->rules->batch_ms * 1000, took_us;
    size_t n = MAX(N_PLAN, (size_t)p->l->n_ranks);
    struct bench_call tell = { .op = BENCH_BROADCAST, .x = plan, .count = n, .part = n };
    int r = 0;
    bool is_enough = false;
    p->n_calls = 2;
    for (int i = 0; i < N_WARM_UP && r == 0 && !is_enough; i++) {
        r = time_batch(p, &took_us);
        double one_us = MAX(took_us / (double)p->n_calls, SHORTEST_US);
        plan[0] = (float)MIN(MAX((double)(long)(batch_us / one_us), 1), MAX_CALLS);
        plan[1] = took_us > batch_us / 3;
        plan[2] = (float)one_us;
        r = r < 0 ? r : p->l->call(&tell);
        p->n_calls = (long)plan[0];
        is_enough = plan[1] > 0;
        p->estimate_us = (double)plan[2];
    }
    return r;
}

static int batches_of(const struct point *p)
{
    int n = MIN(MAX(p->rules->n_batches, MIN_BATCHES), BENCH_MAX_BATCHES);
    double batch_us = (double)p->n_calls * p->estimate_us, limit_us = p->rules->point_ms * 1000;
    return MAX(MIN(n, (int)MIN(limit_us / batch_us, BENCH_MAX_BATCHES)), MIN_BATCHES);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sum_up(const float *notes, int n_ranks, int n_batches, struct bench_row *row)
{
    double us[BENCH_MAX_BATCHES] = { 0 };
    row->is_right = true;
    for (int rank = 0; rank < n_ranks; rank++, notes += N_NOTES) {
        for (int i = 0; i < n_batches; i++) {
            us[i] = MAX(us[i], (double)notes[i]);
        }
        row->is_right = row->is_right && notes[BENCH_MAX_BATCHES] > 0;
    }
    qsort(us, (size_t)n_batches, sizeof us[0], by_size);
    row->n_batches = n_batches;
    row->median_us = us[n_batches / 2];
    row->best_us = us[0];
    row->worst_us = us[n_batches - 1];
}

/* scratch [N_NOTES x (1 + ranks)] */
static int time_point(struct point *p, float *scratch, struct bench_row *row)
{
    bool is_right = false;
    double us;
    int r = bench_check(p->l, &p->call, &is_right);
    r = r < 0 ? r : agree_on_calls(p, scratch);
    int n_batches = batches_of(p);
    for (int i = 0; i < n_batches && r == 0; i++) {
        r = time_batch(p, &us);
        scratch[i] = (float)(us / (double)p->n_calls);
    }
    scratch[BENCH_MAX_BATCHES] = is_right;
    struct bench_call tell = { .op = BENCH_ALL_GATHER, .x = scratch, .y = scratch + N_NOTES, .part = N_NOTES };
    tell.count = N_NOTES * (size_t)p->l->n_ranks;
    r = r < 0 ? r : p->l->call(&tell);
    if (r == 0) {
        sum_up(scratch + N_NOTES, p->l->n_ranks, n_batches, row);
        row->n_calls = p->n_calls;
    }
    return r;
}

static void *from_page(void *p)
{
    return (void *)(((uintptr_t)p + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
}

int bench_measure(const struct bench_library *l, const struct bench_rules *rules, enum bench_op op, size_t bytes,
                  struct bench_row *ret_row)
{
    size_t size = bench_element_size(op), n = (size_t)l->n_ranks;
    size_t count = MAX((bytes + size - 1) / size, 1);
    count = op == BENCH_BARRIER ? n : (count + n - 1) / n * n;
    struct bench_row row = { .op = op, .n_ranks = l->n_ranks, .bytes = op == BENCH_BARRIER ? 0 : count * size };
    struct point p = { .l = l, .rules = rules, .call = { .op = op, .count = count, .part = count / n } };
    void *x = mem_alloc(count * size + PAGE_BYTES), *y = mem_alloc(count * size + PAGE_BYTES);
    float *scratch = mem_zalloc(MAX((1 + n) * N_NOTES, N_PLAN) * sizeof *scratch);
    int r = x == NULL || y == NULL || scratch == NULL ? err_no_memory(2 * count * size, "a benchmark's buffers") : 0;
    if (r == 0) {
        p.call.x = from_page(x);
        p.call.y = from_page(y);
        r = time_point(&p, scratch, &row);
    }
    mem_free(scratch);
    mem_free(y);
    mem_free(x);
    *ret_row = row;
    return r;
}
