/* client/ctl/bench_rank.c - one rank of `meshctl bench`, which prints what it measured as lines of JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/bench_rank.h"

#include <mesh/collective.h>

#include <stdio.h>

#include "base/error.h"
#include "ctl/bench_calls.h"
#include "ctl/say.h"

static int steps_of(int n_ranks)
{
    int steps = 0;
    for (int reached = 1; reached < n_ranks; reached *= 2) {
        steps++;
    }
    return steps;
}

/* The least that a rank must send, or receive when that is more. */
static double bytes_of(const struct bench_row *row)
{
    double bytes = (double)row->bytes, others = (double)(row->n_ranks - 1) / row->n_ranks;
    switch (row->op) {
    case BENCH_ALL_REDUCE:
    case BENCH_ALL_REDUCE_F16:
    case BENCH_ALL_REDUCE_BF16:
        return 2 * others * bytes;
    case BENCH_BROADCAST:
    case BENCH_REDUCE:
    case BENCH_PING_PONG:
        return row->n_ranks > 1 ? bytes : 0;
    default:
        return others * bytes;
    }
}

/* What was asked for, where it is not what was measured: every rank has as many elements, and at least one. */
static const char *asked(uint64_t bytes, const struct bench_row *row, char *buf, size_t cap)
{
    buf[0] = '\0';
    if (bytes != row->bytes && row->op != BENCH_BARRIER) {
        (void)snprintf(buf, cap, "\"asked_bytes\": %llu, ", (unsigned long long)bytes);
    }
    return buf;
}

static void print(const struct bench *bench, const struct bench_row *row, uint64_t bytes)
{
    char note[48];
    double moved = bytes_of(row), roof_us = roof_time_us(&bench->roof, steps_of(row->n_ranks), moved);
    (void)printf("{\"ranks\": %d, \"collective\": \"%s\", \"bytes\": %zu, %s\"batches\": %d, \"calls\": %ld, "
                 "\"median_us\": %.2f, \"best_us\": %.2f, \"worst_us\": %.2f, \"gb_per_s\": %.3f, \"roof_us\": %.2f, "
                 "\"percent_of_roof\": %.1f}\n",
                 row->n_ranks, bench_op_name(row->op), row->bytes, asked(bytes, row, note, sizeof note), row->n_batches,
                 row->n_calls, row->median_us, row->best_us, row->worst_us, moved / row->median_us / 1000, roof_us,
                 100 * roof_us / row->median_us);
    (void)fflush(stdout);
}

static int measure(const struct bench *bench, const struct bench_library *library, enum bench_op op, uint64_t bytes)
{
    struct bench_row row;
    int r = bench_measure(library, &bench_usual_rules, op, (size_t)bytes, &row);
    if (r == 0 && !row.is_right) {
        return err_set(MESH_EIO, "%s of %zu bytes on %d ranks gave a wrong result", bench_op_name(op), row.bytes,
                       row.n_ranks);
    }
    if (r == 0 && mesh_rank() == 0) {
        print(bench, &row, bytes);
    }
    return r;
}

static int measure_all(const struct bench *bench)
{
    struct bench_library library = bench_own_library("bench");
    int r = 0;
    for (size_t k = 0; k < bench->n_ops && r == 0; k++) {
        size_t n_sizes = bench->op[k] == BENCH_BARRIER ? 1 : bench->n_sizes;
        for (size_t i = 0; i < n_sizes && r == 0; i++) {
            r = measure(bench, &library, bench->op[k], bench->size[i]);
        }
    }
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
