/* tests/fault/survivor.c - a rank that goes on when another one stops, leaves, dies or never calls: `survivor ACT RANK`.
 *
 * What it finds out stands on standard output, one line each; it ends with 0 when that is what the act is to show.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 65536, TIMEOUT_MS = 1500 };

static void pause_ms(long ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

static void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

static int say_failure(int status)
{
    printf("rank %d: %s: %s\n", mesh_rank(), mesh_status_name((mesh_status)status), mesh_last_error()->message);
    fflush(stdout);
    return status;
}

static int reduce(mesh_group *g)
{
    static float data[COUNT];
    return mesh_all_reduce(data, COUNT, MESH_F32, MESH_SUM, g);
}

/* pause RANK: it stops itself in mid-job; the one after it lets it go on well before any time limit. */
static int act_pause(int odd)
{
    int64_t mine = getpid(), pids[16];
    int r = mesh_all_gather(pids, &mine, 1, MESH_I64, mesh_world());
    for (int step = 0; step < 40 && r == 0; step++) {
        if (step == 20 && mesh_rank() == odd) {
            raise(SIGSTOP);
        } else if (step == 20 && mesh_rank() == (odd + 1) % mesh_world_size()) {
            pause_ms(600);
            kill((pid_t)pids[odd], SIGCONT);
        }
        r = reduce(mesh_world());
    }
    if (r == 0) {
        say("all steps done");
    }
    return r < 0 ? say_failure(r) : 0;
}

/* idle RANK: it never makes the call that the others wait in. */
static int act_idle(int odd)
{
    int r = mesh_barrier(mesh_world());
    if (r == 0 && mesh_rank() == odd) {
        pause_ms(2 * TIMEOUT_MS);
        return 0;
    }
    r = r < 0 ? r : reduce(mesh_world());
    return r < 0 ? (say_failure(r) == MESH_ETIMEDOUT ? 0 : r) : MESH_ESTATE;
}

/* leave RANK: it says goodbye and ends well; the others go on and need it. */
static int act_leave(int odd)
{
    int r = mesh_barrier(mesh_world());
    if (r < 0 || mesh_rank() == odd) {
        return r;
    }
    for (int step = 0; step < 1000 && r == 0; step++) {
        r = reduce(mesh_world());
    }
    return r < 0 ? (say_failure(r) == MESH_EPEER ? 0 : r) : MESH_ESTATE;
}

static mesh_group *all_but(int odd)
{
    int ranks[16], n = 0;
    for (int i = 0; i < mesh_world_size(); i++) {
        if (i != odd) {
            ranks[n++] = i;
        }
    }
    return mesh_new_group(ranks, n);
}

/* The survivors alone: a sum, and a message round their ring. */
static int work_together(mesh_group *g)
{
    int n = mesh_group_size(g), me = mesh_group_rank(g);
    int32_t sum = 1, from = -1;
    int r = mesh_all_reduce(&sum, 1, MESH_I32, MESH_SUM, g);
    r = r < 0 ? r : mesh_send(&me, 1, MESH_I32, (me + 1) % n, 0, g);
    r = r < 0 ? r : mesh_recv(&from, 1, MESH_I32, (me + n - 1) % n, 0, g);
    if (r < 0) {
        return say_failure(r);
    }
    printf("%d survivors, a message of %d\n", (int)sum, (int)from);
    fflush(stdout);
    return sum == n && from == (me + n - 1) % n ? 0 : MESH_ESTATE;
}

/* die RANK: killed in mid-job.  The others hear of it, find the group unusable, and go on in a group of their own. */
static int act_die(int odd)
{
    int r = 0;
    (void)signal(SIGTERM, SIG_IGN); /* the launcher ends what is left of a failed job; this one finishes first */
    for (int step = 0; step < 100000 && r == 0; step++) {
        if (step == 20 && mesh_rank() == odd) {
            raise(SIGKILL);
        }
        r = reduce(mesh_world());
    }
    if (say_failure(r) != MESH_EPEER) {
        return MESH_ESTATE;
    }
    r = reduce(mesh_world());
    if (r != MESH_EPOISONED) {
        return say_failure(r);
    }
    say("the world is poisoned");
    mesh_group *g = all_but(odd);
    return g != NULL ? work_together(g) : say_failure(mesh_last_error()->status);
}

/* daemon RANK (of no meaning): waits until meshd is gone; collectives and messages go on. */
static int act_daemon(int odd)
{
    (void)odd;
    int r = mesh_barrier(mesh_world()), stored = 0;
    if (mesh_rank() == 0) {
        say("ready");
    }
    for (int i = 0; i < 2000 && r == 0 && stored == 0; i++) {
        stored = mesh_store_set("key", "value", 5);
        r = reduce(mesh_world());
        float all_see = stored < 0 ? 1.0f : 0.0f;
        r = r < 0 ? r : mesh_all_reduce(&all_see, 1, MESH_F32, MESH_MIN, mesh_world());
        stored = all_see > 0 ? stored : 0;
        pause_ms(5);
    }
    (void)say_failure(stored);
    for (int i = 0; i < 100 && r == 0; i++) {
        r = reduce(mesh_world());
    }
    mesh_group *g = all_but(-1);
    r = r < 0 || g == NULL ? say_failure(mesh_last_error()->status) : work_together(g);
    return r < 0 || stored == MESH_EDAEMON ? r : MESH_ESTATE;
}

static const struct {
    const char *name;
    int (*run)(int rank);
} acts[] = {
    { "pause", act_pause }, { "idle", act_idle }, { "leave", act_leave }, { "die", act_die }, { "daemon", act_daemon },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof acts / sizeof acts[0] && argc == 3; i++) {
        if (strcmp(argv[1], acts[i].name) == 0) {
            bool is_bounded = strcmp(argv[1], "idle") == 0;
            int r = mesh_init(.join_timeout_ms = 20000, .timeout_ms = is_bounded ? TIMEOUT_MS : 30000);
            if (r < 0) {
                mesh_perror("survivor");
                return 10 - r;
            }
            r = acts[i].run(atoi(argv[2]));
            int left = mesh_finalize();
            (void)left; /* the act's own result is what counts */
            return r < 0 ? 10 - r : 0;
        }
    }
    fprintf(stderr, "survivor: no such act\n");
    return 2;
}
