/* tests/bench/rows.c - the options of a collectives benchmark, and its rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void rows_init(struct rows *rows)
{
    static const size_t usual[] = { 8, 1 << 10, 16 << 10, 256 << 10, 1 << 20, 16 << 20, 64 << 20 };
    *rows = (struct rows){ .rules = bench_usual_rules, .n_sizes = ARRAY_SIZE(usual) };
    memcpy(rows->size, usual, sizeof usual);
    for (int op = 0; op < BENCH_N_USUAL; op++) {
        rows->is_asked[op] = true;
    }
}

/* The next word of a list; false: there is none. */
static bool next_word(const char **at, char *word, size_t cap)
{
    size_t n = strcspn(*at, ",");
    (void)snprintf(word, cap, "%.*s", (int)MIN(n, cap - 1), *at);
    *at += n + ((*at)[n] == ',');
    return n > 0;
}

static bool read_ops(struct rows *rows, const char *list)
{
    char word[32];
    enum bench_op op;
    memset(rows->is_asked, 0, sizeof rows->is_asked);
    while (next_word(&list, word, sizeof word)) {
        if (!bench_op_find(word, &op)) {
            return false;
        }
        rows->is_asked[op] = true;
    }
    return true;
}

static bool read_sizes(struct rows *rows, const char *list)
{
    char word[32], *end;
    for (rows->n_sizes = 0; next_word(&list, word, sizeof word); rows->n_sizes++) {
        if (rows->n_sizes == ROWS_MAX_SIZES) {
            return false;
        }
        rows->size[rows->n_sizes] = strtoull(word, &end, 10);
        if (*end != 0) {
            return false;
        }
    }
    return rows->n_sizes > 0;
}

static bool read_number(const char *text, double *ret_number)
{
    char *end;
    *ret_number = strtod(text, &end);
    return *text != 0 && *end == 0 && *ret_number > 0;
}

bool rows_option(struct rows *rows, const char *name, const char *value)
{
    double number;
    if (strcmp(name, "--ops") == 0) {
        return read_ops(rows, value);
    }
    if (strcmp(name, "--sizes") == 0) {
        return read_sizes(rows, value);
    }
    if (!read_number(value, &number)) {
        return false;
    }
    if (strcmp(name, "--reps") == 0) {
        rows->rules.n_batches = (int)MIN(number, BENCH_MAX_BATCHES);
        return true;
    }
    if (strcmp(name, "--batch-ms") == 0) {
        rows->rules.batch_ms = number;
        return true;
    }
    rows->rules.point_ms = number;
    return strcmp(name, "--point-ms") == 0;
}

bool rows_options(struct rows *rows, int argc, char **argv)
{
    for (int i = 0; i < argc; i += 2) {
        if (i + 1 == argc || !rows_option(rows, argv[i], argv[i + 1])) {
            (void)fprintf(stderr, "'%s' is no option, or its value is none; these exist: " ROWS_OPTIONS "\n", argv[i]);
            return false;
        }
    }
    return true;
}

static void print(const struct bench_library *l, const struct bench_row *row)
{
    (void)printf("%s,%s,%s,%d,%zu,%d,%ld,%.2f,%.2f,%.2f,%.4f,%s\n", l->name, l->mode, bench_op_name(row->op),
                 row->n_ranks, row->bytes, row->n_batches, row->n_calls, row->median_us, row->best_us, row->worst_us,
                 (double)row->bytes / row->median_us / 1000, row->is_right ? "ok" : "WRONG");
    (void)fflush(stdout);
}

int rows_run(const struct rows *rows, const struct bench_library *library)
{
    struct bench_row row;
    int r = 0;
    if (library->rank == 0) {
        (void)puts("peer,mode,op,ranks,bytes,reps,iters,median_us,min_us,max_us,GBps,check");
    }
    for (int op = 0; op < BENCH_N_OPS; op++) {
        int n_sizes = !rows->is_asked[op] ? 0 : op == BENCH_BARRIER ? 1 : rows->n_sizes;
        for (int i = 0; i < n_sizes && r == 0; i++) {
            r = bench_measure(library, &rows->rules, (enum bench_op)op, rows->size[i], &row);
            if (r == 0 && library->rank == 0) {
                print(library, &row);
            }
        }
    }
    return r;
}
