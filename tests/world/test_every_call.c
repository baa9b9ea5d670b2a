/* tests/world/test_every_call.c - every public function, called with whatever arguments, answers: with one sentence on
 * all ranks.
 *
 * every_call.py writes the calls from the public headers, so that a new function is among them.  Arguments are drawn
 * alike on all ranks, some of them hostile: NULL, far out of range, of another mesh, of another dtype.  Each function
 * runs in worlds of its own.  A call may succeed or fail; it may not crash or hang, say different things on different
 * ranks, fail without a sentence, or end the job, unless it fails on the data or memory of one rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/util.h"
#include "world/draws.h"

#define MAX_CALLS   4000
#define MAX_SECONDS 60 /* of a function */

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Arguments are there: what failed so far was their making. */
static void begin_call(struct draw *d);

#include "every_call.inc"

struct answer { /* of one rank to one call */
    bool is_made;
    mesh_error error;
};

static struct answer answers[MAX_CALLS][N_RANKS];
static int current, n_calls; /* of the function under test */
static size_t function;
static _Atomic int last_begun; /* by any rank */
static uint64_t seed;

static void begin_call(struct draw *d)
{
    (void)d;
    (void)!mesh_world_run(0, NULL, NULL); /* the last error is now this one */
}

static const char *reset_message(void)
{
    static _Thread_local mesh_error was;
    (void)!mesh_world_run(0, NULL, NULL);
    was = *mesh_last_error();
    return was.message;
}

static void end_call(struct draw *d, mesh_scope *scope, struct answer *ret_answer)
{
    int waited = d->work != NULL ? mesh_wait(d->work, 0) : 0;
    mesh_error after = *mesh_last_error();
    int ended = mesh_scope_end(scope);
    const mesh_error none_ = { .status = MESH_OK };
    mesh_error e = ended < 0 ? *mesh_last_error() : after;
    ret_answer->error = ended == 0 && waited == 0 && strcmp(e.message, reset_message()) == 0 ? none_ : e;
    ret_answer->is_made = true;
    for (int i = 0; i < d->n_owned; i++) {
        free(d->owned[i]);
    }
}

/* Less than 0 when the job is over. */
static int one_call(int k)
{
    struct draw d = { .stream = mixed(seed ^ (function * 1000003 + (uint64_t)k)),
                      .hostility = k % 3 == 0 ? 0 : 4 + k % 11 };
    mesh_grad_enable(true);
    mesh_explicit(false);
    mesh_check_replicas(false);
    d.mesh = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), MESH_NAMES("a", "b"));
    d.other = mesh_init_device_mesh("cpu", MESH_SHAPE(2, 2), MESH_NAMES("c", "d"));
    mesh_scope *scope = mesh_scope_begin();
    last_begun = k;
    calls[function].call(&d);
    end_call(&d, scope, &answers[k][mesh_rank()]);
    return mesh_barrier(mesh_world());
}

static int run(void *arg)
{
    (void)arg;
    for (int k = current; k < n_calls; k++) {
        if (one_call(k) < 0) {
            return -1;
        }
    }
    return 0;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

static int complain(int k, const char *what)
{
    printf("%s, call %d: %s\n", calls[function].name, k, what);
    for (int r = 0; r < N_RANKS; r++) {
        const mesh_error *e = &answers[k][r].error;
        printf("    rank %d: %s [%s in %s]\n", r, e->message, mesh_status_name(e->status), e->where ? e->where : "-");
    }
    return 1;
}

/* Memory is every rank's own as well. */
static bool is_of_one_rank(int k)
{
    return calls[function].is_of_each_rank || answers[k][0].error.status == MESH_ENOMEM;
}

static int judge(int k)
{
    const mesh_error *first = &answers[k][0].error;
    for (int r = 0; r < N_RANKS; r++) {
        const mesh_error *e = &answers[k][r].error;
        if (!calls[function].is_of_each_rank &&
            (e->status != first->status || strcmp(e->message, first->message) != 0)) {
            return complain(k, "the ranks say different things");
        }
        if (e->status < 0 && (e->message[0] == '\0' || strstr(e->message, "(null)") != NULL || e->where == NULL)) {
            return complain(k, "no sentence");
        }
    }
    return 0;
}

static void last_words(int signal_)
{
    char text[160];
    int n = snprintf(text, sizeof text, "signal %d in %s, call %d\n", signal_, calls[function].name, last_begun);
    (void)!write(2, text, (size_t)n);
    signal(signal_, SIG_DFL);
    raise(signal_);
}

/* How many calls all ranks have made, from the first on. */
static int count_made(void)
{
    for (int k = 0; k < n_calls; k++) {
        for (int r = 0; r < N_RANKS; r++) {
            if (!answers[k][r].is_made) {
                return k;
            }
        }
    }
    return n_calls;
}

static void show(int from, int to)
{
    for (int k = from; k < to; k++) {
        printf("%s %d: %s\n", calls[function].name, k, answers[k][0].error.message);
    }
}

static int try_function(bool is_verbose)
{
    int failures = 0;
    memset(answers, 0, sizeof answers);
    while (current < n_calls) {
        alarm(MAX_SECONDS);
        int r = mesh_world_run(N_RANKS, run, NULL), made = count_made();
        for (int k = current; k < made; k++) {
            failures += judge(k);
        }
        if (r < 0 && made > 0 && !is_of_one_rank(made - 1)) {
            failures += complain(made - 1, "the job is over");
        }
        if (is_verbose) {
            show(current, made);
        }
        current = made > current ? made : n_calls;
    }
    current = 0;
    return failures;
}

/* What asks for far too much memory is to be refused by the system, not to be tried. */
#define SANITIZER_OPTIONS "max_allocation_size_mb=1000:allocator_may_return_null=1"
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return SANITIZER_OPTIONS;
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return SANITIZER_OPTIONS;
}

static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rlimit most = { (rlim_t)3 << 30, (rlim_t)3 << 30 };
    (void)!setrlimit(RLIMIT_AS, &most);
#endif
}

/* test_every_call [calls of each function [seed [function]]] */
int main(int argc, char **argv)
{
    int failures = 0;
    n_calls = argc > 1 ? atoi(argv[1]) : 30;
    n_calls = n_calls < 1 || n_calls > MAX_CALLS ? MAX_CALLS : n_calls;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    limit_memory();
    memset(far_text, 'x', sizeof far_text - 1);
    nowhere = fopen("/dev/null", "we");
    signal(SIGALRM, last_words);
    signal(SIGSEGV, last_words);
    signal(SIGABRT, last_words);
    for (function = 0; function < ARRAY_SIZE(calls); function++) {
        if (argc <= 3 || strcmp(argv[3], calls[function].name) == 0) {
            failures += try_function(argc > 3);
        }
    }
    fclose(nowhere);
    printf("%zu functions, %d calls each, %d failed\n", ARRAY_SIZE(calls), n_calls, failures);
    return failures > 0;
}
