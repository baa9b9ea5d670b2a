/* client/session/session.c - makes, joins and ends a session, and keeps which one this thread is in.
 *
 *      session_new()   control_..._new()   session_join()   ...   control->ops->leave()   session_free()
 *
 * News may come while the join reply is on its way to the thread that waits for it; it is kept aside until the table of
 * peers stands (news.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "session/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "session/news.h"

static _Thread_local struct mesh_session *current;

struct mesh_session *session_current(void)
{
    return current;
}

struct mesh_session *session_require(void)
{
    if (current == NULL) {
        err_set(MESH_ESTATE, "mesh_init() has not been called on this thread (a further thread calls mesh_attach())");
    }
    return current;
}

void session_set_current(struct mesh_session *s)
{
    current = s;
    err_set_rank(s != NULL ? s->rank : -1);
}

int64_t session_timeout(const struct mesh_session *s, int64_t timeout_ms)
{
    return timeout_ms == 0 ? s->timeout_ms : timeout_ms;
}

struct mesh_session *session_new(int64_t timeout_ms)
{
    struct mesh_session *s = mem_new(struct mesh_session);
    if (s == NULL) {
        err_no_memory(sizeof *s, "a session");
        return NULL;
    }
    s->rank = -1;
    s->timeout_ms = timeout_ms == 0 ? SESSION_TIMEOUT_MS : timeout_ms;
    CHECK(pthread_mutex_init(&s->lock, NULL) == 0);
    return s;
}

static void peers_free(struct peer *peers, int n)
{
    for (int i = 0; peers != NULL && i < n; i++) {
        for (int k = 0; k < peers[i].n_addresses; k++) {
            mem_free(peers[i].address[k]);
        }
    }
    mem_free(peers);
}

static void adopt(struct mesh_session *s, const struct join_reply *reply)
{
    memcpy(s->job, reply->job, sizeof s->job);
    memcpy(s->secret, reply->secret, sizeof s->secret);
    memcpy(s->recorder, reply->recorder, sizeof s->recorder);
    s->rank = reply->rank;
    s->world_size = reply->world_size;
    s->local_rank = reply->local_rank;
    s->local_world_size = reply->local_world_size;
    s->generation = reply->generation;
    s->peers = reply->peers;
}

int session_join(struct mesh_session *s, const struct join_request *request)
{
    PRE(s->control != NULL && s->peers == NULL);
    struct join_reply reply;
    int r = s->control->ops->join(s->control, request, &reply);
    if (r < 0) {
        return r;
    }
    CHECK(reply.world_size > 0 && reply.rank >= 0 && reply.rank < reply.world_size);
    struct peer_news *news = mem_zalloc((size_t)reply.world_size * sizeof *news);
    if (news == NULL) {
        peers_free(reply.peers, reply.world_size);
        return err_no_memory((size_t)reply.world_size * sizeof *news, "news about the peers");
    }
    pthread_mutex_lock(&s->lock);
    adopt(s, &reply);
    s->news = news;
    pthread_mutex_unlock(&s->lock);
    news_replay(s);
    if (current == s) {
        err_set_rank(s->rank);
    }
    return 0;
}

static void free_slots(struct mesh_session *s)
{
    for (int i = N_SESSION_SLOTS; i-- > 0;) {
        if (s->slot[i].state != NULL) {
            s->slot[i].free(s->slot[i].state);
            s->slot[i].state = NULL;
        }
    }
}

void session_free(struct mesh_session *s)
{
    if (s == NULL) {
        return;
    }
    free_slots(s);
    if (s->control != NULL) {
        s->control->ops->free(s->control);
    }
    if (s->loop != NULL) {
        PRE(!loop_is_current(s->loop));
        loop_stop(s->loop);
        loop_free(s->loop);
    }
    if (current == s) {
        session_set_current(NULL);
    }
    news_fini(s);
    peers_free(s->peers, s->world_size);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static struct loop *start_loop(void)
{
    struct loop *l = loop_new();
    if (l != NULL && loop_run_thread(l, "mesh-control") < 0) {
        l = loop_free(l);
    }
    return l;
}

struct loop *session_loop(struct mesh_session *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->loop == NULL) {
        s->loop = start_loop();
    }
    struct loop *l = s->loop;
    pthread_mutex_unlock(&s->lock);
    return l;
}
