/* client/comm/comm.c - what comm keeps for a session: made before joining, started after, freed with the session.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

#include <sched.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/accept.h"
#include "comm/group_state.h"
#include "comm/record.h"
#include "session/waiting.h"

#define END_MS 5000

struct comm *comm_of(struct mesh_session *s)
{
    return s->slot[SESSION_SLOT_COMM].state;
}

void comm_count(struct comm *c, mesh_comm_kind kind)
{
    atomic_fetch_add_explicit(&c->count[kind], 1, memory_order_relaxed);
}

/* The control thread may hold a group that was freed, for one more turn. */
static bool wait_for_groups(struct comm *c)
{
    int64_t deadline_ms = deadline_in(END_MS);
    pthread_mutex_lock(&c->lock);
    while (c->n_alive > 0 && condition_wait(&c->ended, &c->lock, deadline_ms)) {
    }
    bool are_gone = c->n_alive == 0;
    pthread_mutex_unlock(&c->lock);
    return are_gone;
}

static void comm_free(void *state)
{
    struct comm *c = state;
    while (c->groups != NULL) {
        (void)group_free(c->groups);
    }
    c->accepting = accepting_free(c->accepting); /* after the groups, which dial through it */
    if (!wait_for_groups(c)) {
        log_error("comm", "%d groups are still in use %d ms after the session ended, leaving them behind", c->n_alive,
                  END_MS);
        return;
    }
    for (size_t i = 0; i < c->n_arrived; i++) {
        (void)link_close(c->arrived[i].link);
    }
    c->recorder = recorder_free(c->recorder);
    map_fini(&c->n_made);
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    (void)mem_free(c);
}

int comm_new(struct mesh_session *s, struct sim_net *net, enum link_kind policy)
{
    struct comm *c = mem_new(struct comm);
    if (c == NULL) {
        return err_no_memory(sizeof *c, "the groups of a session");
    }
    c->session = s;
    c->net = net;
    c->policy = policy;
    c->n_made = MAP_INIT;
    CHECK(pthread_mutex_init(&c->lock, NULL) == 0);
    condition_init(&c->ended);
    s->slot[SESSION_SLOT_COMM].state = c;
    s->slot[SESSION_SLOT_COMM].free = comm_free;
    if (net == NULL && policy != LINK_SIM) {
        c->accepting = accepting_new(c, policy);
        return c->accepting != NULL ? 0 : err_last()->status;
    }
    return 0;
}

static int n_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static mesh_group *world_group(struct mesh_session *s)
{
    int *ranks = mem_new_array(int, (size_t)s->world_size);
    if (ranks == NULL) {
        (void)err_no_memory((size_t)s->world_size * sizeof *ranks, "the world group");
        return NULL;
    }
    for (int i = 0; i < s->world_size; i++) {
        ranks[i] = i;
    }
    mesh_group *g = group_new(s, ranks, s->world_size, "world");
    (void)mem_free(ranks);
    return g;
}

int comm_start(struct mesh_session *s)
{
    struct comm *c = comm_of(s);
    c->is_crowded = s->local_world_size > n_cores();
    c->recorder = recorder_new(&(struct recorder_owner){
        .path = s->recorder, .rank = s->rank, .world_size = s->world_size, .generation = s->generation });
    c->world = world_group(s);
    if (c->world == NULL) {
        return err_last()->status;
    }
    return c->accepting != NULL ? accepting_start(c->accepting) : 0;
}

/* The lock is held. */
static mesh_group *find_group(struct comm *c, uint64_t id)
{
    mesh_group *g = c->groups;
    while (g != NULL && (g->id != id || g->rank < 0)) {
        g = g->next;
    }
    return g;
}

/* The lock is held.  The oldest gives way: its group was most likely freed here. */
static void keep_for_later(struct comm *c, uint64_t group, int from, struct link *link)
{
    if (c->n_arrived == COMM_MAX_ARRIVED) {
        (void)link_close(c->arrived[0].link);
        c->n_arrived--;
        for (size_t i = 0; i < c->n_arrived; i++) {
            c->arrived[i] = c->arrived[i + 1];
        }
    }
    c->arrived[c->n_arrived++] = (struct arrived){ .group = group, .from = from, .link = link };
}

void comm_deliver(struct comm *c, uint64_t group, int from, struct link *link)
{
    pthread_mutex_lock(&c->lock);
    mesh_group *g = find_group(c, group);
    if (g != NULL) {
        (void)group_ref(g);
    } else {
        keep_for_later(c, group, from, link);
    }
    pthread_mutex_unlock(&c->lock);
    if (g == NULL) {
        return;
    }
    group_take_stream(g, group_index_of(g, from), link);
    group_wake(g);
    group_unref(g);
}
