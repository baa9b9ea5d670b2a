/* tests/e2e/rank.c - the program that the tests start as a rank: `rank ACT [ARGUMENT...]` does one thing and says how
 * it went.
 *
 * A failing call prints "rank 1: MESH_EPEER at 123456: sentence" (milliseconds of the monotonic clock, which all
 * processes share) on standard output and ends with 10 minus the status.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 65536 };

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int fail(int status)
{
    const mesh_error *e = mesh_last_error();
    const char *rank = getenv("MESH_RANK");
    printf("rank %s: %s at %lld: %s\n", rank != NULL ? rank : "?", mesh_status_name((mesh_status)status), now_ms(),
           e->message);
    fflush(stdout);
    return 10 - status;
}

static void pause_ms(long ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

static int is_rank(const char *text)
{
    return atoi(text) == mesh_rank();
}

/* print: who am I, after all have come. */
static int act_print(char **args)
{
    (void)args;
    int r = mesh_barrier(mesh_world());
    printf("rank %d of %d\n", mesh_rank(), mesh_world_size());
    return r;
}

/* exit RANK CODE: that rank leaves without a word, the others wait for it. */
static int act_exit(char **args)
{
    int r = mesh_barrier(mesh_world());
    if (r == 0 && is_rank(args[0])) {
        _exit(atoi(args[1]));
    }
    return r < 0 ? r : mesh_barrier(mesh_world());
}

/* Many all_reduces; in the middle one rank sends itself a signal. */
static int all_reduce_until(const char *rank, int signal_number)
{
    static float data[COUNT];
    int r = 0;
    for (int step = 0; step < 1000000 && r == 0; step++) {
        if (step == 20 && is_rank(rank)) {
            printf("killed at %lld\n", now_ms());
            fflush(stdout);
            raise(signal_number);
        }
        r = mesh_all_reduce(data, COUNT, MESH_F32, MESH_SUM, mesh_world());
    }
    return r;
}

/* die RANK, stop RANK */
static int act_die(char **args)
{
    return all_reduce_until(args[0], SIGKILL);
}

static int act_stop(char **args)
{
    return all_reduce_until(args[0], SIGSTOP);
}

/* mesh: makes a 2 x n/2 mesh and a key, then waits until somebody sets the key "go". */
static int act_mesh(char **args)
{
    (void)args;
    const char *const go[] = { "go", NULL };
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, mesh_world_size() / 2), MESH_NAMES("dp", "tp"));
    if (m == NULL) {
        return mesh_last_error()->status;
    }
    int r = mesh_rank() == 0 ? mesh_store_set("greeting", "hello", 5) : 0;
    r = r < 0 ? r : mesh_barrier(mesh_world());
    printf("ready\n");
    fflush(stdout);
    return r < 0 ? r : mesh_store_wait(go, 60000);
}

/* badmesh: a mesh whose product is not the world's size. */
static int act_badmesh(char **args)
{
    (void)args;
    mesh_device_mesh *m = mesh_init_device_mesh("cpu", MESH_SHAPE(2, mesh_world_size()), MESH_NAMES("dp", "tp"));
    return m != NULL ? 0 : mesh_last_error()->status;
}

/* unlike: rank 1 makes a mesh of another shape. */
static int act_unlike(char **args)
{
    (void)args;
    int n = mesh_world_size();
    mesh_device_mesh *m = mesh_rank() == 1 ? mesh_init_device_mesh("cpu", MESH_SHAPE(n, 1), MESH_NAMES("dp", "tp"))
                                           : mesh_init_device_mesh("cpu", MESH_SHAPE(1, n), MESH_NAMES("dp", "tp"));
    return m != NULL ? 0 : mesh_last_error()->status;
}

/* reduce: one all_reduce, checked. */
static int act_reduce(char **args)
{
    (void)args;
    int64_t sum = mesh_rank();
    int r = mesh_all_reduce(&sum, 1, MESH_I64, MESH_SUM, mesh_world());
    printf("sum %lld\n", (long long)sum);
    return r;
}

static int all_reduce_times(long times, int64_t *ret_sum)
{
    int r = 0;
    for (long i = 0; i < times && r == 0; i++) {
        *ret_sum = mesh_rank();
        r = mesh_all_reduce(ret_sum, 1, MESH_I64, MESH_SUM, mesh_world());
    }
    return r;
}

/* last RANK N: 200 all_reduces; that rank is gone as soon as it has done its part; N more of the others. */
static int act_last(char **args)
{
    int64_t sum = 0;
    int r = all_reduce_times(200, &sum);
    if (r == 0 && is_rank(args[0])) {
        printf("gone at %lld\n", now_ms());
        fflush(stdout);
        _exit(0);
    }
    printf("sum %lld\n", (long long)sum);
    return r < 0 ? r : all_reduce_times(atol(args[1]), &sum);
}

/* wait MS: a barrier that one rank reaches only after that time. */
static int act_wait(char **args)
{
    printf("ready\n");
    fflush(stdout);
    if (mesh_rank() == 0) {
        pause_ms(atol(args[0]));
    }
    return mesh_barrier(mesh_world());
}

static const struct {
    const char *name;
    int n_args;
    int (*run)(char **args);
} acts[] = {
    { "print", 0, act_print }, { "exit", 2, act_exit },       { "die", 1, act_die },       { "stop", 1, act_stop },
    { "mesh", 0, act_mesh },   { "badmesh", 0, act_badmesh }, { "unlike", 0, act_unlike }, { "reduce", 0, act_reduce },
    { "last", 2, act_last },   { "wait", 1, act_wait },
};

static long number_in(const char *variable, long otherwise)
{
    const char *text = getenv(variable);
    return text != NULL ? atol(text) : otherwise;
}

/* Before the act: RANK_ABSENT, the rank that never comes, RANK_ABSENT_MS, when it ends instead, RANK_ABSENT_CODE, how
 * (negative: by that signal); RANK_LATE_MS, when the others join. */
static void be_absent_or_late(void)
{
    if (getenv("RANK_ABSENT") == NULL || number_in("RANK_ABSENT", 0) != number_in("MESH_RANK", -1)) {
        pause_ms(number_in("RANK_LATE_MS", 0));
        return;
    }
    int code = (int)number_in("RANK_ABSENT_CODE", 0);
    pause_ms(number_in("RANK_ABSENT_MS", 30000));
    if (code < 0) {
        raise(-code);
    }
    exit(code);
}

/* RANK_JOIN_MS, a join deadline; RANK_TIMEOUT_MS, that of all later waits; RANK_WORLD, a world asked for. */
static int join(void)
{
    be_absent_or_late();
    return mesh_init(.join_timeout_ms = number_in("RANK_JOIN_MS", 20000),
                     .timeout_ms = number_in("RANK_TIMEOUT_MS", 30000), .world_size = (int)number_in("RANK_WORLD", 0));
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof acts / sizeof acts[0] && argc > 1; i++) {
        if (strcmp(argv[1], acts[i].name) == 0 && argc - 2 == acts[i].n_args) {
            int r = join();
            r = r < 0 ? r : acts[i].run(argv + 2);
            if (r < 0) {
                return fail(r);
            }
            r = mesh_finalize();
            return r < 0 ? fail(r) : 0;
        }
    }
    fprintf(stderr, "rank: no such act\n");
    return 2;
}
