/* client/comm/group.c - making and freeing process groups; their streams as they arrive.
 *
 * Making a group is arithmetic: its id is a hash of its ranks in their order and of how many groups of just these ranks
 * were made before.  All its members make the same groups of these ranks in the same order, so they find the same id; what
 * other groups they make in between does not matter.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/group.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "comm/accept.h"
#include "comm/group_state.h"
#include "comm/p2p.h"
#include "comm/progress.h"
#include "comm/record.h"
#include "session/waiting.h"

/* How long freeing a group waits for another thread to leave its call on it. */
#define LET_GO_MS 5000

mesh_group *group_ref(mesh_group *g)
{
    atomic_fetch_add_explicit(&g->references, 1, memory_order_relaxed);
    return g;
}

static void destroy(mesh_group *g)
{
    struct comm *c = g->comm;
    if (g->wake_fd >= 0) {
        session_remove_wake_fd(g->session, g->wake_fd);
        close(g->wake_fd);
    }
    for (int i = 0; g->links != NULL && i < g->size; i++) {
        (void)link_close(atomic_load_explicit(&g->links[i], memory_order_acquire));
    }
    recorder_remove_group(c->recorder, g->place);
    p2p_free(g->p2p);
    group_free_plans(g);
    exec_fini(&g->exec);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    (void)mem_free(g->world_ranks);
    (void)mem_free((void *)g->links);
    (void)mem_free((void *)g->is_requested);
    (void)mem_free(g->has_knocked);
    (void)mem_free(g->polls);
    (void)mem_free(g);
    pthread_mutex_lock(&c->lock);
    c->n_alive--;
    pthread_cond_broadcast(&c->ended);
    pthread_mutex_unlock(&c->lock); /* c may be gone from here on */
}

void group_unref(mesh_group *g)
{
    if (g != NULL && atomic_fetch_sub_explicit(&g->references, 1, memory_order_acq_rel) == 1) {
        destroy(g);
    }
}

/* Checks, ids ------------------------------------------------------------------------------------------------------ */

static int check_ranks(const struct mesh_session *s, const int *ranks, int n)
{
    if (n < 1 || ranks == NULL) {
        return err_set(MESH_EINVAL, "a group needs at least one rank");
    }
    bool *seen = mem_zalloc((size_t)s->world_size);
    if (seen == NULL) {
        return err_no_memory((size_t)s->world_size, "a group");
    }
    int r = 0;
    for (int i = 0; i < n && r == 0; i++) {
        if (ranks[i] < 0 || ranks[i] >= s->world_size) {
            r = err_set(MESH_EINVAL, "rank %d (number %d of the list) is not in the job, which has %d ranks", ranks[i],
                        i, s->world_size);
        } else if (seen[ranks[i]]) {
            r = err_set(MESH_EINVAL, "rank %d stands twice in the list of ranks", ranks[i]);
        } else {
            seen[ranks[i]] = true;
        }
    }
    (void)mem_free(seen);
    return r;
}

/* The lock of comm is held. */
static int number_of_group(struct comm *c, const int *ranks, int n, uintptr_t *ret_number)
{
    size_t len = (size_t)n * sizeof *ranks;
    uintptr_t number = (uintptr_t)map_get(&c->n_made, ranks, len) + 1;
    int r = map_set(&c->n_made, ranks, len, (void *)number, NULL);
    if (r == 0) {
        *ret_number = number;
    }
    return r;
}

static uint64_t group_id(const struct mesh_session *s, const int *ranks, int n, uint64_t number)
{
    uint64_t h = hash_bytes(&s->generation, sizeof s->generation, number);
    for (int i = 0; i < n; i++) {
        uint32_t rank = (uint32_t)ranks[i];
        h = hash_bytes(&rank, sizeof rank, h);
    }
    return h != 0 ? h : 1;
}

/* Making one -------------------------------------------------------------------------------------------------------- */

static int fill(mesh_group *g, const int *world_ranks, int n)
{
    size_t size = (size_t)n;
    g->world_ranks = mem_new_array(int, size);
    g->links = mem_zalloc(size * sizeof *g->links);
    g->is_requested = mem_zalloc(size * sizeof *g->is_requested);
    g->has_knocked = mem_zalloc(size * sizeof *g->has_knocked);
    g->polls = mem_new_array(struct pollfd, size + 1);
    if (g->has_knocked == NULL || g->world_ranks == NULL || g->links == NULL || g->is_requested == NULL ||
        g->polls == NULL) {
        return err_no_memory(size * 64, "a group");
    }
    memcpy(g->world_ranks, world_ranks, size * sizeof *world_ranks);
    g->size = n;
    g->rank = group_index_of(g, g->session->rank);
    g->exec = (struct exec){ .find_link = group_find_link,
                             .arg = g,
                             .session = g->session,
                             .group_name = g->name,
                             .world_ranks = g->world_ranks,
                             .rank = g->rank,
                             .size = n };
    return 0;
}

static void link_into_list(struct comm *c, mesh_group *g)
{
    g->next = c->groups;
    g->link_in_list = &c->groups;
    if (g->next != NULL) {
        g->next->link_in_list = &g->next;
    }
    c->groups = g;
}

/* The streams that came before the group. */
static void take_arrived(struct comm *c, mesh_group *g)
{
    for (size_t i = 0; i < c->n_arrived;) {
        struct arrived *a = &c->arrived[i];
        if (g->rank < 0 || a->group != g->id) {
            i++;
            continue;
        }
        int peer = group_index_of(g, a->from);
        group_take_stream(g, peer, a->link);
        *a = c->arrived[--c->n_arrived];
    }
}

/* The lock of comm is held: gives the group its number, and the streams that came before it. */
static int enter(struct comm *c, mesh_group *g)
{
    uintptr_t number = 0;
    int r = g->rank < 0 ? 0 : number_of_group(c, g->world_ranks, g->size, &number);
    if (r < 0) {
        return r;
    }
    g->id = g->rank < 0 ? 0 : group_id(g->session, g->world_ranks, g->size, number);
    if (g->name[0] == 0) {
        char list[40];
        session_rank_list(g->world_ranks, g->size, list, sizeof list);
        snprintf(g->name, sizeof g->name, "%s/%u", list, (unsigned)number);
    }
    if (g->p2p != NULL) { /* before g, so that whoever frees the list from its head frees g first */
        g->p2p->streams->id = hash_bytes(&g->id, sizeof g->id, UINT64_C(0x703270));
        take_arrived(c, g->p2p->streams);
        link_into_list(c, g->p2p->streams);
    }
    take_arrived(c, g);
    link_into_list(c, g);
    return 0;
}

/* One that nobody knows of yet. */
static mesh_group *make(struct mesh_session *s, const int *world_ranks, int n, const char *name)
{
    struct comm *c = comm_of(s);
    mesh_group *g = mem_new(mesh_group);
    if (g == NULL) {
        (void)err_no_memory(sizeof *g, "a group");
        return NULL;
    }
    atomic_init(&g->references, 1);
    g->session = s;
    g->comm = c;
    g->wake_fd = -1;
    g->place = -1;
    g->lost.peer = -1;
    CHECK(pthread_mutex_init(&g->lock, NULL) == 0);
    condition_init(&g->changed);
    snprintf(g->name, sizeof g->name, "%s", name != NULL ? name : "");
    g->is_lent = name != NULL;
    pthread_mutex_lock(&c->lock);
    c->n_alive++;
    pthread_mutex_unlock(&c->lock);
    if (fill(g, world_ranks, n) < 0) {
        group_unref(g);
        return NULL;
    }
    return g;
}

/* The streams of its messages are a group of their own, with the same ranks and name. */
static int add_p2p(mesh_group *g)
{
    mesh_group *streams = g->rank >= 0 ? make(g->session, g->world_ranks, g->size, g->name) : NULL;
    if (streams == NULL) {
        return g->rank >= 0 ? (int)err_last()->status : 0;
    }
    g->p2p = p2p_new(g, streams);
    if (g->p2p == NULL) {
        int r = err_last()->status;
        group_unref(streams);
        return r;
    }
    return 0;
}

mesh_group *group_new(struct mesh_session *s, const int *world_ranks, int n, const char *name)
{
    struct comm *c = comm_of(s);
    if (check_ranks(s, world_ranks, n) < 0) {
        return NULL;
    }
    mesh_group *g = make(s, world_ranks, n, name);
    if (g == NULL) {
        return NULL;
    }
    if (add_p2p(g) < 0) {
        group_unref(g);
        return NULL;
    }
    pthread_mutex_lock(&c->lock);
    int r = enter(c, g);
    pthread_mutex_unlock(&c->lock);
    if (r < 0) {
        group_unref(g->p2p != NULL ? g->p2p->streams : NULL);
        group_unref(g);
        return NULL;
    }
    if (g->rank >= 0) {
        g->place = recorder_add_group(c->recorder, g->id, g->name, n, g->rank);
    }
    if (g->rank == 0 && n > 1) { /* one member tells meshd for all */
        s->control->ops->record_group(s->control, g->id, g->name, g->world_ranks, n);
    }
    return g;
}

/* Ending one -------------------------------------------------------------------------------------------------------- */

/* Becomes the owner, once whoever is has noticed that the group is closed. */
static bool take_over(mesh_group *g)
{
    int64_t deadline_ms = deadline_in(LET_GO_MS);
    while (g->owner != OWNER_NOBODY && deadline_left(deadline_ms) > 0) {
        (void)condition_wait(&g->changed, &g->lock, deadline_ms);
    }
    if (g->owner != OWNER_NOBODY) {
        return false;
    }
    g->owner = OWNER_CALLER;
    return true;
}

static void end_works(mesh_group *g)
{
    pthread_mutex_lock(&g->lock);
    atomic_store(&g->is_closed, true);
    bool is_mine = take_over(g);
    bool has_works = g->head != NULL;
    pthread_mutex_unlock(&g->lock);
    if (!is_mine) {
        return;
    }
    if (has_works) {
        (void)err_set(MESH_EABORTED, "group %s was freed with calls in flight", g->name);
        fail_all(g);
    }
    pthread_mutex_lock(&g->lock);
    g->owner = OWNER_NOBODY;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

mesh_group *group_free(mesh_group *g)
{
    if (g == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&g->comm->lock);
    *g->link_in_list = g->next;
    if (g->next != NULL) {
        g->next->link_in_list = g->link_in_list;
    }
    pthread_mutex_unlock(&g->comm->lock);
    if (g->p2p != NULL) {
        p2p_close(g->p2p);
        (void)group_free(g->p2p->streams); /* whose memory stays while somebody is still in it */
    }
    end_works(g);
    control_nudge(g);
    group_unref(g);
    return NULL;
}

/* Looking at one ---------------------------------------------------------------------------------------------------- */

int group_size(const mesh_group *g)
{
    return g->size;
}

int group_rank(const mesh_group *g)
{
    return g->rank;
}

bool group_is_lent(const mesh_group *g)
{
    return g->is_lent;
}

const int *group_world_ranks(const mesh_group *g)
{
    return g->world_ranks;
}

struct mesh_session *group_session(const mesh_group *g)
{
    return g->session;
}

int group_index_of(const mesh_group *g, int world_rank)
{
    for (int i = 0; i < g->size; i++) {
        if (g->world_ranks[i] == world_rank) {
            return i;
        }
    }
    return -1;
}

/* Streams ----------------------------------------------------------------------------------------------------------- */

void group_wake(mesh_group *g)
{
    uint64_t one = 1;
    pthread_mutex_lock(&g->lock);
    if (g->wake_fd >= 0) {
        ssize_t written = write(g->wake_fd, &one, sizeof one);
        (void)written;
    }
    pthread_mutex_unlock(&g->lock);
}

bool group_attach(mesh_group *g, int peer, struct link *link)
{
    struct link *none = NULL;
    return atomic_compare_exchange_strong(&g->links[peer], &none, link);
}

void group_take_stream(mesh_group *g, int peer, struct link *link)
{
    if (peer < 0 || peer > g->rank) {
        if (peer < 0 || !group_attach(g, peer, link)) {
            (void)link_close(link);
        }
        return;
    }
    (void)link_close(link);
    if (!atomic_exchange(&g->is_requested[peer], true)) {
        dial_peer(g->comm, g, peer);
    }
}

void group_knock(mesh_group *g, int peer)
{
    if (g->comm->net == NULL && g->rank < peer && !g->has_knocked[peer]) {
        g->has_knocked[peer] = true;
        dial_peer(g->comm, g, peer);
    }
}

static struct link *sim_link(mesh_group *g, int peer)
{
    struct link *l = sim_net_link(g->comm->net, g->id, g->world_ranks[g->rank], g->world_ranks[peer]);
    if (l == NULL) {
        l = link_broken_new(MESH_ENOMEM, err_last()->message);
    }
    atomic_store_explicit(&g->links[peer], l, memory_order_release);
    return l;
}

struct link *group_find_link(void *group, int peer)
{
    mesh_group *g = group;
    struct link *l = atomic_load_explicit(&g->links[peer], memory_order_acquire);
    if (l != NULL) {
        return l;
    }
    if (g->comm->net != NULL) {
        return sim_link(g, peer);
    }
    /* Of two ranks the one that stands later in the group opens the stream. */
    if (!atomic_exchange(&g->is_requested[peer], true) && g->rank > peer) {
        dial_peer(g->comm, g, peer);
    }
    return NULL;
}
