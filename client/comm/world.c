/* client/comm/world.c - mesh_world_run(): a world whose ranks are threads of this process.
 *
 *      local_world (control plane), sim_net --> thread per rank: session, join, fn, leave --> the first failure, if any
 *
 * A rank whose function fails tells the others, so that their calls end with MESH_EABORTED and that rank's sentence.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/world.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "comm/join.h"

#define MAX_THREADS     1024
#define JOIN_TIMEOUT_MS 60000

struct world {
    struct local_world *local;
    struct sim_net *net; /* NULL: sockets */
    enum link_kind kind;
    int64_t timeout_ms;
    mesh_world_fn fn;
    void *arg;

    pthread_mutex_t lock; /* guards what follows */
    int status;           /* 0, or what the first failing rank returned */
    mesh_error error;     /* of it */
};

struct rank_thread {
    struct world *world;
    int rank;
    bool has_thread;
    pthread_t thread;
};

static void keep_first_failure(struct world *w, int status, const mesh_error *e)
{
    pthread_mutex_lock(&w->lock);
    if (w->status == 0) {
        w->status = status;
        w->error = *e;
    }
    pthread_mutex_unlock(&w->lock);
}

/* The function of this rank returned r, which is not 0. */
static void function_failed(struct rank_thread *t, int r)
{
    if (r > 0 || (int)err_last()->status != r) {
        (void)err_set_about(r < 0 ? r : MESH_EABORTED, t->rank, "the function of rank %d returned %d", t->rank, r);
    }
    keep_first_failure(t->world, r, err_last());
    struct mesh_session *s = session_current();
    if (s != NULL && !atomic_load(&s->is_aborted)) {
        struct report report = {
            .kind = REPORT_ABORT, .status = MESH_EABORTED, .culprit = -1, .sentence = err_last()->message
        };
        mesh_error why = *err_last();
        s->control->ops->report(s->control, &report, NULL);
        (void)err_restore(&why);
    }
}

static int begin(struct rank_thread *t)
{
    struct world *w = t->world;
    struct mesh_session *s = session_new(w->timeout_ms);
    if (s == NULL) {
        return err_last()->status;
    }
    s->control = control_local_new(s, w->local, t->rank);
    if (s->control == NULL) {
        mesh_error why = *err_last();
        session_free(s);
        return err_restore(&why);
    }
    s->world = w->local;
    struct join_request q = { .job = "threads", .rank = t->rank, .timeout_ms = JOIN_TIMEOUT_MS };
    int r = session_begin(s, &q, w->net, w->kind);
    if (r == 0) {
        comm_of(s)->is_simulated = true;
    }
    return r;
}

static void *rank_main(void *arg)
{
    struct rank_thread *t = arg;
    int r = begin(t);
    if (r < 0) {
        keep_first_failure(t->world, r, err_last());
        return NULL;
    }
    r = t->world->fn(t->world->arg);
    if (r != 0) {
        function_failed(t, r);
    }
    struct mesh_session *s = session_current(); /* NULL: the function has left the job itself */
    if (s != NULL) {
        comm_of(s)->n_inits = 0;
        r = session_end(s);
        if (r < 0) {
            keep_first_failure(t->world, r, err_last());
        }
    }
    return NULL;
}

static void run_threads(struct world *w, struct rank_thread *threads, int n)
{
    for (int i = 0; i < n; i++) {
        threads[i] = (struct rank_thread){ .world = w, .rank = i };
        int error = pthread_create(&threads[i].thread, NULL, rank_main, &threads[i]);
        threads[i].has_thread = error == 0;
        if (error != 0) { /* the others give up joining at their deadline */
            (void)err_set(MESH_ENOMEM, "cannot start the thread of rank %d: %s", i, strerror(error));
            keep_first_failure(w, MESH_ENOMEM, err_last());
        }
    }
    for (int i = 0; i < n; i++) {
        if (threads[i].has_thread) {
            pthread_join(threads[i].thread, NULL);
        }
    }
}

int world_run_linked(int n_ranks, enum link_kind kind, int64_t timeout_ms, mesh_world_fn fn, void *arg)
{
    struct world w = { .kind = kind, .timeout_ms = timeout_ms, .fn = fn, .arg = arg };
    if (n_ranks < 1 || n_ranks > MAX_THREADS) {
        return err_set(MESH_EINVAL, "a world of threads has 1 to %d ranks, not %d", MAX_THREADS, n_ranks);
    }
    if (fn == NULL) {
        return err_set(MESH_EINVAL, "a world of threads needs a function for its ranks, not NULL");
    }
    struct rank_thread *threads = mem_new_array(struct rank_thread, (size_t)n_ranks);
    w.local = local_world_new(n_ranks);
    w.net = kind == LINK_SIM ? sim_net_new() : NULL;
    CHECK(pthread_mutex_init(&w.lock, NULL) == 0);
    if (threads == NULL || w.local == NULL || (kind == LINK_SIM && w.net == NULL)) {
        w.status = err_no_memory((size_t)n_ranks * sizeof *threads, "a world of threads");
        w.error = *err_last();
    } else {
        run_threads(&w, threads, n_ranks);
    }
    sim_net_free(w.net);
    local_world_free(w.local);
    pthread_mutex_destroy(&w.lock);
    (void)mem_free(threads);
    if (w.status != 0) {
        (void)err_restore(&w.error);
    }
    return w.status;
}

int mesh_world_run(int n_ranks, mesh_world_fn fn, void *arg)
{
    err_enter(__func__);
    return world_run_linked(n_ranks, LINK_SIM, 0, fn, arg);
}
