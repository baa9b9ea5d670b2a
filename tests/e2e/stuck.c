/* tests/e2e/stuck.c - ranks that get stuck in the ways that `meshctl diagnose` must tell apart: `stuck WAY`.
 *
 * Every rank prints "ready" when it is about to wait; all of them end when the job is stopped, at the latest after a
 * minute.  $STUCK_TIMEOUT_MS: the time limit of calls of ranks 0 and 1; the others wait four times as long.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1024, CULPRIT = 2, PAUSE_S = 60 };

static float data[COUNT];

static void ready(void)
{
    printf("ready pid %d\n", (int)getpid());
    fflush(stdout);
}

static int pause_long(void)
{
    struct timespec t = { .tv_sec = PAUSE_S };
    nanosleep(&t, NULL);
    return 0;
}

static int reduce(mesh_group *g, int n)
{
    int r = 0;
    for (int i = 0; i < n && r == 0; i++) {
        r = mesh_all_reduce(data, COUNT, MESH_F32, MESH_SUM, g);
    }
    return r;
}

static mesh_group *all_ranks(void)
{
    int ranks[64];
    for (int i = 0; i < mesh_world_size(); i++) {
        ranks[i] = i;
    }
    return mesh_new_group(ranks, mesh_world_size());
}

/* sleep: rank 2 stays away from the 7th call. */
static int act_sleep(void)
{
    mesh_group *g = all_ranks();
    int r = reduce(g, 6);
    ready();
    return r < 0 ? r : mesh_rank() == CULPRIT ? pause_long() : reduce(g, 1);
}

/* key: rank 2 waits for a key that nobody sets. */
static int act_key(void)
{
    static const char *const go[] = { "go", NULL };
    int r = reduce(mesh_world(), 6);
    ready();
    return r < 0 ? r : mesh_rank() == CULPRIT ? mesh_store_wait(go, 60000) : reduce(mesh_world(), 1);
}

/* together: all call, until they are stopped. */
static int act_together(void)
{
    int r = reduce(mesh_world(), 6);
    struct timespec t = { .tv_nsec = 1000000 };
    ready();
    for (int i = 0; i < PAUSE_S * 500 && r == 0; i++) {
        r = reduce(mesh_world(), 1);
        nanosleep(&t, NULL);
    }
    return r;
}

/* Begins the call, says so under a key, then waits for it: the key is there before anybody hears of a mismatch. */
static int reduce_and_tell(void)
{
    char key[16];
    mesh_work *w = mesh_all_reduce_async(data, COUNT, MESH_F32, MESH_SUM, mesh_world());
    (void)snprintf(key, sizeof key, "in/%d", mesh_rank());
    int r = mesh_store_set(key, "1", 1);
    return r < 0 ? r : mesh_wait(w, 0);
}

/* differ: when the others are in their call, rank 2 reduces another number of elements; all stay to be looked at. */
static int act_differ(void)
{
    static const char *const others[] = { "in/0", "in/1", "in/3", NULL };
    int r = reduce(mesh_world(), 6);
    if (r == 0 && mesh_rank() == CULPRIT) {
        r = mesh_store_wait(others, 60000);
        r = r < 0 ? r : mesh_all_reduce(data, COUNT / 2, MESH_F32, MESH_SUM, mesh_world());
    } else if (r == 0) {
        r = reduce_and_tell();
    }
    printf("%s\n", mesh_last_error()->message);
    ready();
    (void)r;
    return pause_long();
}

/* knock: rank 2 stays away from its pair; rank 3 waits for it there; 0 and 1 wait for rank 3. */
static int act_knock(void)
{
    int pair[2] = { 2, 3 }, trio[3] = { 0, 1, 3 };
    mesh_group *g = mesh_new_group(pair, 2), *three = mesh_new_group(trio, 3);
    int r = reduce(mesh_world(), 6);
    ready();
    if (r < 0 || mesh_rank() == CULPRIT) {
        return r < 0 ? r : pause_long();
    }
    r = mesh_rank() == 3 ? reduce(g, 1) : 0;
    return r < 0 ? r : reduce(three, 1);
}

/* recv: rank 0 waits for a message that rank 2 does not send. */
static int act_recv(void)
{
    int r = reduce(mesh_world(), 1);
    ready();
    return r < 0 || mesh_rank() != 0 ? pause_long() : mesh_recv(data, 8, MESH_F32, CULPRIT, 7, mesh_world());
}

/* circle: ranks 1, 2 and 3 each wait for a message of the next one; rank 0 waits for one of rank 1. */
static int act_circle(void)
{
    int r = reduce(mesh_world(), 1), me = mesh_rank();
    ready();
    return r < 0 ? r : mesh_recv(data, 8, MESH_F32, me == 3 ? 1 : me + 1, 7, mesh_world());
}

/* mourn: all call until one of them dies; the others stay to be looked at. */
static int act_mourn(void)
{
    (void)act_together();
    return pause_long();
}

static const struct {
    const char *name;
    int (*run)(void);
} acts[] = {
    { "sleep", act_sleep }, { "key", act_key },     { "together", act_together }, { "differ", act_differ },
    { "knock", act_knock }, { "mourn", act_mourn }, { "recv", act_recv },         { "circle", act_circle },
};

static int limit_ms(void)
{
    const char *limit = getenv("STUCK_TIMEOUT_MS"), *rank = getenv("MESH_RANK");
    int times = rank != NULL && atoi(rank) > 1 ? 4 : 1;
    return limit != NULL ? atoi(limit) * times : 60000;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof acts / sizeof acts[0] && argc == 2; i++) {
        if (strcmp(argv[1], acts[i].name) == 0) {
            int r = mesh_init(.join_timeout_ms = 20000, .timeout_ms = limit_ms());
            r = r < 0 ? r : acts[i].run();
            if (r < 0) {
                mesh_perror(NULL);
            }
            return r < 0 ? 1 : mesh_finalize() < 0;
        }
    }
    fprintf(stderr, "stuck: no such way\n");
    return 2;
}
