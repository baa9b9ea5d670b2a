/* client/comm/handle.c - handles of asynchronous calls: made in the innermost scope, waited for, or dropped.
 *
 * A scope that ends waits for the works begun in it, each at most until its own deadline; what is not over then is given up
 * (its group fails), so that no work outlives its buffers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/coalesced.h"
#include "comm/collective.h"
#include "comm/group_state.h"
#include "comm/p2p.h"
#include "comm/progress.h"
#include "core/scope.h"

static struct mesh_work *work_of(struct object *o)
{
    return container_of(o, struct mesh_work, object);
}

/* Of a work that is done: its result goes where it belongs, once. */
static void hand_over(struct mesh_work *w)
{
    parcel_open(w->parcel, w->error.status == MESH_OK);
    w->parcel = NULL;
}

static int settle(struct object *o)
{
    struct mesh_work *w = work_of(o);
    int r = work_is_done(w) ? 0 : work_wait(w, DEADLINE_NEVER, NULL); /* ends by the work's own deadline */
    hand_over(w);
    return r;
}

static void free_work(struct object *o)
{
    struct mesh_work *w = work_of(o);
    parcel_open(w->parcel, false);
    group_unref(w->group);
    (void)mem_free(w);
}

static const struct object_class work_class = { .name = "work handle", .free = free_work, .settle = settle };

void work_object_init(struct mesh_work *w)
{
    object_init(&w->object, &work_class);
}

/* Moves what can be moved now, so that the data is on its way while the caller computes. */
static void push(mesh_group *g)
{
    pthread_mutex_lock(&g->lock);
    bool is_mine = g->owner == OWNER_NOBODY;
    g->owner = is_mine ? OWNER_CALLER : g->owner;
    pthread_mutex_unlock(&g->lock);
    if (!is_mine) {
        return; /* whoever drives the group comes to it */
    }
    for (int i = 0; i < 2 && progress_pass(g) == PASS_PROGRESSED; i++) {
    }
    pthread_mutex_lock(&g->lock);
    g->owner = OWNER_NOBODY;
    bool has_waiters = g->n_waiters > 0, leaves_works = g->head != NULL && !has_waiters;
    if (has_waiters || atomic_load(&g->is_closed)) {
        pthread_cond_broadcast(&g->changed);
    }
    pthread_mutex_unlock(&g->lock);
    if (leaves_works) {
        control_request(g);
    }
}

static _Thread_local collective_observer observer;

collective_observer collective_observe(collective_observer now)
{
    collective_observer before = observer;
    observer = now;
    return before;
}

static int begin(struct mesh_work *w, mesh_group *g, const struct collective_call *call)
{
    int r = work_start(w, g, call);
    if (r == 0 && observer != NULL) {
        observer(g, call);
    }
    return r;
}

mesh_work *collective_start(mesh_group *g, const struct collective_call *call)
{
    if (scope_current() == NULL) {
        (void)err_set(MESH_ESTATE, "no scope is open on this thread to own the work handle: call mesh_init() first, or "
                                   "mesh_attach() on a further thread");
        return NULL;
    }
    struct mesh_work *w = mem_new(struct mesh_work);
    if (w == NULL) {
        (void)err_no_memory(sizeof *w, "a work handle");
        return NULL;
    }
    int r = begin(w, g, call);
    if (r < 0) {
        (void)mem_free(w);
        return NULL;
    }
    (void)group_ref(g);
    work_object_init(w);
    push(g);
    return w;
}

int collective_run(mesh_group *g, const struct collective_call *call)
{
    struct mesh_work w;
    int r = begin(&w, g, call);
    return r < 0 ? r : work_wait(&w, DEADLINE_NEVER, NULL); /* the work's own deadline bounds it */
}

bool mesh_done(const mesh_work *w)
{
    return w == NULL || work_is_done(w);
}

int mesh_wait(mesh_work *w, int64_t timeout_ms)
{
    if (w == NULL) {
        int r = (int)err_last()->status;
        return r < 0 ? r : err_set(MESH_EINVAL, "there is no work to wait for: the handle is NULL");
    }
    err_enter(__func__);
    int64_t deadline_ms = timeout_ms == 0 ? DEADLINE_NEVER : deadline_in(MAX(timeout_ms, 0));
    if (timeout_ms < 0 && w->is_message) {
        p2p_push(w->group->p2p);
    } else if (timeout_ms < 0) {
        push(w->group);
    }
    bool is_done;
    int r = work_wait(w, deadline_ms, &is_done);
    if (is_done) {
        hand_over(w);
        object_release(&w->object);
    }
    return r;
}
