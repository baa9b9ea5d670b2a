/* tests/fault/survivor.c - ranks of which one breaks in some way, and what the others make of it: `survivor ACT RANK
 * [CALL]`.
 *
 * ACT is what that rank does; CALL is the call in which the others need it (sync, async: an all_reduce; recv, irecv: a
 * message).  The others print what their call said and after how long, then find the group unusable, and go on in a
 * group without it.  A rank ends with 0 when all that was as it should be.
 * SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <mesh/mesh.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 65536, LARGE = 4 << 20, TIMEOUT_MS = 1000, SLACK_MS = 5000, TAG = 7 };

static float data[LARGE];

static void pause_ms(long ms)
{
    struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
    while (nanosleep(&t, &t) != 0) {
    }
}

static long now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

static int say_failure(int status)
{
    const mesh_error *e = mesh_last_error();
    printf("rank %d: %s about rank %d in %s: %s\n", mesh_rank(), mesh_status_name((mesh_status)status), e->rank,
           e->where, e->message);
    fflush(stdout);
    return status;
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

struct part {
    int odd; /* the rank that breaks */
    size_t count;
    const char *call;
};

static int reduce(mesh_group *g, size_t count)
{
    return mesh_all_reduce(data, count, MESH_F32, MESH_SUM, g);
}

static int reduce_async(mesh_group *g, size_t count)
{
    return mesh_wait(mesh_all_reduce_async(data, count, MESH_F32, MESH_SUM, g), 0);
}

/* The odd rank sends to all others. */
static int message(const struct part *p, int is_async)
{
    int r = 0;
    if (mesh_rank() != p->odd) {
        return is_async ? mesh_wait(mesh_recv_async(data, p->count, MESH_F32, p->odd, TAG, mesh_world()), 0)
                        : mesh_recv(data, p->count, MESH_F32, p->odd, TAG, mesh_world());
    }
    for (int i = 0; i < mesh_world_size() && r == 0; i++) {
        r = i != p->odd ? mesh_send(data, p->count, MESH_F32, i, TAG, mesh_world()) : 0;
    }
    return r;
}

static int is_message(const struct part *p)
{
    return strstr(p->call, "recv") != NULL;
}

static int call(const struct part *p)
{
    if (is_message(p)) {
        return message(p, p->call[0] == 'i');
    }
    return strcmp(p->call, "async") == 0 ? reduce_async(mesh_world(), p->count) : reduce(mesh_world(), p->count);
}

/* Until it fails. */
static int call_on(const struct part *p)
{
    int r = 0;
    for (int i = 0; i < 1000000 && r == 0; i++) {
        r = call(p);
    }
    return r;
}

/* Afterwards ------------------------------------------------------------------------------------------------------- */

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

/* Those alone: a sum, and a message round their ring. */
static int work_together(mesh_group *g)
{
    int n = mesh_group_size(g), me = mesh_group_rank(g);
    int32_t sum = 1, from = -1;
    int r = g == NULL ? mesh_last_error()->status : mesh_all_reduce(&sum, 1, MESH_I32, MESH_SUM, g);
    r = r < 0 ? r : mesh_send(&me, 1, MESH_I32, (me + 1) % n, 0, g);
    r = r < 0 ? r : mesh_recv(&from, 1, MESH_I32, (me + n - 1) % n, 0, g);
    if (r < 0) {
        return say_failure(r);
    }
    printf("%d survivors, a message of %d\n", (int)sum, (int)from);
    fflush(stdout);
    return sum == n && from == (me + n - 1) % n ? 0 : MESH_ESTATE;
}

static int expect_poisoned(void)
{
    int r = reduce(mesh_world(), COUNT);
    (void)say_failure(r);
    return r == MESH_EPOISONED ? 0 : MESH_ESTATE;
}

/* The call failed with `r` after it had begun at begin_ms: in time, as it should, and all else goes on without
 * `without`. */
static int go_on(int r, int want, long begin_ms, int without)
{
    long took_ms = now_ms() - begin_ms;
    if (say_failure(r) != want || took_ms > (want == MESH_ETIMEDOUT ? TIMEOUT_MS : 0) + SLACK_MS) {
        printf("rank %d: expected %s, took %ld ms\n", mesh_rank(), mesh_status_name((mesh_status)want), took_ms);
        return MESH_ESTATE;
    }
    r = expect_poisoned();
    return r < 0 ? r : work_together(all_but(without));
}

static int survive(const struct part *p, int want)
{
    long begin_ms = now_ms();
    return go_on(call_on(p), want, begin_ms, p->odd);
}

/* Acts ------------------------------------------------------------------------------------------------------------- */

static int is_odd(const struct part *p)
{
    return mesh_rank() == p->odd;
}

/* The odd rank goes on when the others have returned from the call before: its death would end that as well. */
static int let_others_through(const struct part *p)
{
    char key[32];
    int r = 0;
    (void)snprintf(key, sizeof key, "through-%d", mesh_rank());
    if (!is_odd(p)) {
        return mesh_store_set(key, "", 1);
    }
    for (int i = 0; i < mesh_world_size() && r == 0; i++) {
        (void)snprintf(key, sizeof key, "through-%d", i);
        r = i == p->odd ? 0 : mesh_store_wait((const char *const[]){ key, NULL }, 0);
    }
    return r;
}

/* before: killed before its call. */
static int act_before(struct part *p)
{
    int r = mesh_barrier(mesh_world());
    r = r < 0 ? r : let_others_through(p);
    if (r == 0 && is_odd(p)) {
        raise(SIGKILL);
    }
    return r < 0 ? r : survive(p, MESH_EPEER);
}

/* during: killed by its child while it makes long calls. */
static int act_during(struct part *p)
{
    pid_t parent = getpid();
    p->count = LARGE;
    int r = call(p);
    r = r < 0 ? r : let_others_through(p);
    if (r == 0 && is_odd(p) && fork() == 0) {
        pause_ms(40);
        (void)kill(parent, SIGKILL);
        _exit(0);
    }
    return r < 0 ? r : is_odd(p) ? call_on(p) : survive(p, MESH_EPEER);
}

/* after: killed when its call has ended; that of the others ends well, and the next does not. */
static int act_after(struct part *p)
{
    int r = call(p);
    r = r < 0 ? r : let_others_through(p);
    if (r == 0 && is_odd(p)) {
        raise(SIGKILL);
    }
    return r < 0 ? say_failure(r) : survive(p, MESH_EPEER);
}

/* leave: it says goodbye and ends well; the others go on and need it. */
static int act_leave(struct part *p)
{
    int r = mesh_barrier(mesh_world());
    return r < 0 || is_odd(p) ? r : survive(p, MESH_EPEER);
}

/* never: it does not make the call that the others wait in. */
static int act_never(struct part *p)
{
    int r = mesh_barrier(mesh_world());
    if (r == 0 && is_odd(p)) {
        pause_ms(2 * TIMEOUT_MS + 500);
        return 0;
    }
    return r < 0 ? r : survive(p, MESH_ETIMEDOUT);
}

/* stop: it is stopped, and goes on when the others have given it up. */
static int act_stop(struct part *p)
{
    int64_t mine = getpid(), pids[16];
    int r = mesh_all_gather(pids, &mine, 1, MESH_I64, mesh_world());
    if (r == 0 && is_odd(p)) {
        raise(SIGSTOP);
        return call_on(p) < 0 ? 0 : MESH_ESTATE;
    }
    r = r < 0 ? r : survive(p, MESH_ETIMEDOUT);
    if (mesh_rank() == (p->odd + 1) % mesh_world_size()) {
        (void)kill((pid_t)pids[p->odd], SIGCONT);
    }
    return r;
}

/* pause: it is stopped for a while that is shorter than any time limit; nobody minds. */
static int act_pause(struct part *p)
{
    int64_t mine = getpid(), pids[16];
    int r = mesh_all_gather(pids, &mine, 1, MESH_I64, mesh_world());
    for (int step = 0; step < 40 && r == 0; step++) {
        if (step == 20 && is_odd(p)) {
            raise(SIGSTOP);
        } else if (step == 20 && mesh_rank() == (p->odd + 1) % mesh_world_size()) {
            pause_ms(600);
            (void)kill((pid_t)pids[p->odd], SIGCONT);
        }
        r = call(p);
    }
    if (r == 0) {
        say("all steps done");
    }
    return r < 0 ? say_failure(r) : 0;
}

static int is_stream_to_a_rank(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_un un;
    } peer = { .un = { .sun_path = "" } };
    socklen_t len = sizeof peer;
    return getpeername(fd, &peer.any, &len) == 0 &&
           (peer.any.sa_family == AF_INET || strstr(peer.un.sun_path, "meshd") == NULL ||
            strstr(peer.un.sun_path, "mesh-rank") != NULL);
}

/* reset: its streams to the other ranks break, while all processes and their meshd live. */
static int act_reset(struct part *p)
{
    int r = call(p);
    if (r == 0 && is_odd(p)) {
        for (int fd = 3; fd < 256; fd++) {
            if (is_stream_to_a_rank(fd)) {
                (void)shutdown(fd, SHUT_RDWR);
            }
        }
    }
    if (r < 0) {
        return say_failure(r);
    }
    long begin_ms = now_ms();
    return go_on(call_on(p), MESH_EPEER, begin_ms, -1);
}

/* daemon: waits until meshd is gone; collectives and messages go on. */
static int act_daemon(struct part *p)
{
    int r = mesh_barrier(mesh_world()), stored = 0;
    if (mesh_rank() == 0) {
        say("ready");
    }
    for (int i = 0; i < 2000 && r == 0 && stored == 0; i++) {
        stored = mesh_store_set("key", "value", 5);
        r = call(p);
        float all_see = stored < 0 ? 1.0f : 0.0f;
        r = r < 0 ? r : mesh_all_reduce(&all_see, 1, MESH_F32, MESH_MIN, mesh_world());
        stored = all_see > 0 ? stored : 0;
        pause_ms(5);
    }
    (void)say_failure(stored);
    for (int i = 0; i < 100 && r == 0; i++) {
        r = call(p);
    }
    r = r < 0 ? say_failure(r) : work_together(all_but(-1));
    return r < 0 || stored == MESH_EDAEMON ? r : MESH_ESTATE;
}

/* Differences ------------------------------------------------------------------------------------------------------ */

static mesh_work *differ_kind(int odd)
{
    return odd ? mesh_all_gather_async(data, data + 64, 16, MESH_F32, mesh_world())
               : mesh_all_reduce_async(data, 16, MESH_F32, MESH_SUM, mesh_world());
}

static mesh_work *differ_dtype(int odd)
{
    return mesh_all_reduce_async(data, 16, odd ? MESH_I32 : MESH_F32, MESH_SUM, mesh_world());
}

static mesh_work *differ_op(int odd)
{
    return mesh_all_reduce_async(data, 16, MESH_F32, odd ? MESH_MAX : MESH_SUM, mesh_world());
}

static mesh_work *differ_count(int odd)
{
    return mesh_all_reduce_async(data, odd ? 17 : 16, MESH_F32, MESH_SUM, mesh_world());
}

static mesh_work *differ_root(int odd)
{
    return mesh_broadcast_async(data, 16, MESH_F32, odd ? 1 : 0, mesh_world());
}

/* As many elements in all, cut in another way. */
static mesh_work *differ_splits(int odd)
{
    size_t counts[3] = { 4, odd ? 5 : 6, odd ? 7 : 6 };
    return mesh_all_gather_v_async(data, counts, data + 64, MESH_F32, mesh_world());
}

static const struct {
    const char *name;
    mesh_work *(*begin)(int is_odd);
} differences[] = {
    { "kind", differ_kind },   { "dtype", differ_dtype }, { "op", differ_op },
    { "count", differ_count }, { "root", differ_root },   { "splits", differ_splits },
};

/* differ:WHAT: its call is another one; all hear so, at the latest in their next call, and a new group of all works. */
static int act_differ(struct part *p)
{
    int r = mesh_barrier(mesh_world());
    long begin_ms = now_ms();
    for (size_t i = 0; r == 0 && i < sizeof differences / sizeof differences[0]; i++) {
        if (strcmp(p->call, differences[i].name) == 0) {
            r = mesh_wait(differences[i].begin(is_odd(p)), 0);
        }
    }
    r = r == 0 ? mesh_barrier(mesh_world()) : r; /* who had nothing to receive hears of it in the next call */
    return go_on(r, MESH_EMISMATCH, begin_ms, -1);
}

/* order: it uses two groups in another order than the others, and waits in each: all wait for each other. */
static int act_order(struct part *p)
{
    int r = mesh_barrier(mesh_world());
    mesh_group *first = all_but(-1), *second = all_but(-1);
    long begin_ms = now_ms();
    r = r < 0 ? r : reduce(is_odd(p) ? second : first, COUNT);
    if (say_failure(r) != MESH_ETIMEDOUT || now_ms() - begin_ms > TIMEOUT_MS + SLACK_MS) {
        return MESH_ESTATE;
    }
    return work_together(all_but(-1));
}

static const struct {
    const char *name;
    int (*run)(struct part *p);
    int is_bounded; /* it ends by a time limit */
} acts[] = {
    { "before", act_before, 0 }, { "during", act_during, 0 }, { "after", act_after, 0 }, { "leave", act_leave, 0 },
    { "never", act_never, 1 },   { "stop", act_stop, 1 },     { "pause", act_pause, 0 }, { "reset", act_reset, 0 },
    { "daemon", act_daemon, 0 }, { "differ", act_differ, 0 }, { "order", act_order, 1 },
};

int main(int argc, char **argv)
{
    (void)signal(SIGTERM, SIG_IGN); /* the launcher ends what is left of a failed job; this one finishes first */
    for (size_t i = 0; i < sizeof acts / sizeof acts[0] && argc >= 3; i++) {
        if (strcmp(argv[1], acts[i].name) == 0) {
            struct part p = { .odd = atoi(argv[2]), .count = COUNT, .call = argc > 3 ? argv[3] : "sync" };
            int r = mesh_init(.join_timeout_ms = 20000, .timeout_ms = acts[i].is_bounded ? TIMEOUT_MS : 30000);
            if (r < 0) {
                mesh_perror("survivor");
                return 10 - r;
            }
            r = acts[i].run(&p);
            int left = mesh_finalize();
            (void)left; /* the act's own result is what counts */
            return r < 0 ? 10 - r : 0;
        }
    }
    fprintf(stderr, "survivor: no such act\n");
    return 2;
}
