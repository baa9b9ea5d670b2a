/* tests/truth/programs_run.c - random programs: each seed on one rank, then on several, threads or the processes of a
 * job.
 *
 *     programs [first seed [how many [-v]]]              on 1 to 8 threads
 *     meshctl run -n RANKS -- programs --job FIRST MANY  as one rank of a job; each computes its own reference
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "truth/programs.h"

#define MAX_SECONDS 120 /* of a seed */

bool is_verbose;
static char complaint[900];

int complain(const struct program *p, const char *format, ...)
{
    char text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!__atomic_test_and_set(&complaint[sizeof complaint - 1], __ATOMIC_SEQ_CST)) {
        snprintf(complaint, sizeof complaint - 1, "seed %llu, %d ranks, rank %d: %s", (unsigned long long)p->seed,
                 p->n_ranks, mesh_rank(), text);
    }
    return -1;
}

static int run(void *arg)
{
    struct program p = *(struct program *)arg;
    mesh_scope *scope = mesh_scope_begin();
    int r = program_run(&p), ended = mesh_scope_end(scope);
    if (r == 0 && ended < 0) {
        return complain(&p, "a failure that nobody saw: %s", mesh_last_error()->message);
    }
    return r;
}

static uint64_t now_running;

static void last_words(int signal_)
{
    char text[80];
    int n = snprintf(text, sizeof text, "seed %llu: signal %d\n", (unsigned long long)now_running, signal_);
    (void)!write(2, text, (size_t)n);
    signal(signal_, SIG_DFL);
    raise(signal_);
}

static int run_reference(struct program *p)
{
    p->n_ranks = 1;
    p->is_reference = true;
    int r = mesh_world_run(1, run, p);
    if (r < 0) {
        printf("seed %llu: on one rank: %s %s\n", (unsigned long long)p->seed, complaint, mesh_last_error()->message);
    }
    p->is_reference = false;
    return r;
}

static int try_seed(uint64_t seed, bool is_job)
{
    struct program p = { .seed = seed, .outcome = outcome_new() };
    now_running = seed;
    alarm(MAX_SECONDS);
    memset(complaint, 0, sizeof complaint);
    int r = run_reference(&p);
    if (r == 0) {
        p.n_ranks = is_job ? mesh_world_size() : 1 + (int)(mixed(seed) % 8);
        r = is_job ? run(&p) : mesh_world_run(p.n_ranks, run, &p);
        if (r != 0) {
            printf("%s\n", complaint[0] ? complaint : mesh_last_error()->message);
        }
    }
    outcome_free(p.outcome);
    fflush(stdout);
    return r != 0;
}

static int join(void)
{
    int r = mesh_init(.join_timeout_ms = 20000, .timeout_ms = 20000);
    if (r < 0) {
        mesh_perror("programs: mesh_init");
    }
    return r;
}

int main(int argc, char **argv)
{
    bool is_job = argc > 1 && strcmp(argv[1], "--job") == 0;
    argc -= is_job;
    argv += is_job;
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, n = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
    int failures = 0;
    is_verbose = argc > 3;
    signal(SIGALRM, last_words);
    signal(SIGSEGV, last_words);
    signal(SIGABRT, last_words);
    signal(SIGFPE, last_words);
    if (is_job && join() < 0) {
        return EXIT_FAILURE;
    }
    for (uint64_t i = 0; i < n && !(is_job && failures); i++) {
        failures += try_seed(first + i, is_job);
    }
    if (!is_job || mesh_rank() == 0) {
        printf("%llu programs, %d failed\n", (unsigned long long)n, failures);
    }
    return is_job && mesh_finalize() < 0 ? EXIT_FAILURE : failures > 0;
}
