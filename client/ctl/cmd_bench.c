/* client/ctl/cmd_bench.c - meshctl bench: how fast the collectives of this machine's ranks are, against bare sockets.
 *
 *      meshctl bench --ranks 4
 *        |  measures the roof, then runs itself as a job of 4 ranks with the roof in MESHCTL_BENCH_ROOF
 *        '--> meshctl bench (4 times): bench_rank.c
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/suggest.h"
#include "base/util.h"
#include "ctl/bench_rank.h"
#include "ctl/commands.h"
#include "ctl/run_job.h"
#include "ctl/say.h"

#define ROOF_VARIABLE    "MESHCTL_BENCH_ROOF"
#define MAX_SIZE         (INT64_C(1) << 32)
#define MORE_COLLECTIVES "reduce,gather,scatter,ping_pong,all_reduce_f16,all_reduce_bf16"
#define LINK_TCP         2
#define REPORT_MS        3000 /* as in run */
#define KILL_MS          5000

struct bench_options {
    int64_t n_ranks;
    const char *sizes, *collectives;
    int link;
};

#define AT(field) offsetof(struct bench_options, field)

/* clang-format off */
static const struct option rows[] = {
    { "ranks",       'n', OPTION_NUMBER, AT(n_ranks),     "N",             1, 1024, "how many ranks to start; default 2" },
    { "sizes",       's', OPTION_TEXT,   AT(sizes),       "BYTES,...",     0, 0,    "of the whole vector; default 8,1024,16384,262144,1048576,16777216" },
    { "collectives", 'c', OPTION_TEXT,   AT(collectives), "NAME,...",      0, 0,    "which; default all_reduce,reduce_scatter,all_gather,all_to_all,broadcast,barrier; also " MORE_COLLECTIVES },
    { "link",         0,  OPTION_CHOICE, AT(link),        "auto|unix|tcp", 0, 0,    "what links the ranks; by default auto, which is unix here" },
};
/* clang-format on */
static const char *const link_names[] = { "auto", "unix", "tcp" };
static const struct bench_options defaults = {
    .n_ranks = 2,
    .sizes = "8,1024,16384,262144,1048576,16777216",
    .collectives = "all_reduce,reduce_scatter,all_gather,all_to_all,broadcast,barrier",
};

const struct command_options options_bench = { rows, ARRAY_SIZE(rows), &defaults, sizeof defaults };

/* The next word of a list; false: there is none. */
static bool next_word(const char **at, char *word, size_t cap)
{
    size_t n = strcspn(*at, ",");
    if (n == 0 && **at == 0) {
        return false;
    }
    (void)snprintf(word, cap, "%.*s", (int)MIN(n, cap - 1), *at);
    *at += n + ((*at)[n] == ',');
    return true;
}

static int read_sizes(struct bench *b, const char *list)
{
    char word[32], *end;
    for (b->n_sizes = 0; next_word(&list, word, sizeof word); b->n_sizes++) {
        long long bytes = strtoll(word, &end, 10);
        if (word[0] == 0 || *end != 0 || bytes < 0 || bytes > MAX_SIZE || b->n_sizes == BENCH_MAX_SIZES) {
            return say_usage("--sizes has '%s': up to %d numbers of bytes from 0 to %lld, with commas between", word,
                             BENCH_MAX_SIZES, (long long)MAX_SIZE);
        }
        b->size[b->n_sizes] = (uint64_t)bytes;
    }
    return b->n_sizes > 0 ? EXIT_OK : say_usage("--sizes is empty");
}

static const char *nearest_op(const char *word)
{
    const char *known[BENCH_N_OPS];
    for (int i = 0; i < BENCH_N_OPS; i++) {
        known[i] = bench_op_name((enum bench_op)i);
    }
    return suggest_nearest(word, known, BENCH_N_OPS);
}

static int read_collectives(struct bench *b, const char *list)
{
    char word[32];
    for (b->n_ops = 0; next_word(&list, word, sizeof word); b->n_ops++) {
        if (b->n_ops == ARRAY_SIZE(b->op) || !bench_op_find(word, &b->op[b->n_ops])) {
            const char *near = nearest_op(word);
            return near != NULL ? say_usage("--collectives has '%s'; did you mean '%s'?", word, near)
                                : say_usage("--collectives has '%s': some of %s,%s", word, defaults.collectives,
                                            MORE_COLLECTIVES);
        }
    }
    return b->n_ops > 0 ? EXIT_OK : say_usage("--collectives is empty");
}

/* This process is one of the ranks. */
static int run_as_rank(struct bench *b, const char *roof)
{
    if (sscanf(roof, "%lf,%lf", &b->roof.latency_us, &b->roof.bytes_per_us) != 2 || b->roof.bytes_per_us <= 0) {
        return say_usage(ROOF_VARIABLE " is '%.40s', which no meshctl bench has set", roof);
    }
    return bench_rank(b);
}

static int run_ranks(const struct ctl *ctl, const struct bench_options *o, const struct roof *roof)
{
    char variable[96], link[32], n_ranks[24];
    char *const argv[] = {
        (char *)"meshctl", (char *)"bench",         (char *)"--ranks",      n_ranks, (char *)"--sizes",
        (char *)o->sizes,  (char *)"--collectives", (char *)o->collectives, NULL
    };
    struct text_list environment = { .at = { variable, link }, .n = 2 };
    struct run_job_options job = { .launch = {
                                       .argv = argv, .n_ranks = (int)o->n_ranks, .environment = &environment } };
    (void)snprintf(n_ranks, sizeof n_ranks, "%lld", (long long)o->n_ranks);
    (void)snprintf(variable, sizeof variable, ROOF_VARIABLE "=%.4f,%.4f", roof->latency_us, roof->bytes_per_us);
    (void)snprintf(link, sizeof link, "MESH_LINK=%s", link_names[o->link]);
    int code = program_find("/proc/self/exe", job.launch.path, sizeof job.launch.path);
    if (code != EXIT_OK) {
        say("%s", mesh_last_error()->message);
        return code;
    }
    job.launch.master_port = free_port();
    job.launch.files = launch_raise_limit();
    job.create = (struct run_create_options){ .ctl = ctl, .n_ranks = (int)o->n_ranks };
    job.limits = (struct supervise_limits){ .report_ms = REPORT_MS, .grace_ms = 1000, .kill_ms = KILL_MS };
    return run_job(&job);
}

int cmd_bench(const struct ctl *ctl, const struct arguments *arguments, const void *options)
{
    const struct bench_options *o = options;
    const char *given = getenv(ROOF_VARIABLE);
    struct bench b = { .n_ops = 0 };
    (void)arguments;
    int code = read_sizes(&b, o->sizes);
    code = code == EXIT_OK ? read_collectives(&b, o->collectives) : code;
    if (code != EXIT_OK || given != NULL) {
        return code != EXIT_OK ? code : run_as_rank(&b, given);
    }
    int r = roof_measure(o->link == LINK_TCP, &b.roof);
    if (r < 0) {
        return say_failure(r);
    }
    (void)printf("{\"roof\": \"%s\", \"latency_us\": %.2f, \"gb_per_s\": %.3f}\n", o->link == LINK_TCP ? "tcp" : "unix",
                 b.roof.latency_us, b.roof.bytes_per_us / 1000);
    (void)fflush(stdout);
    return run_ranks(ctl, o, &b.roof);
}
