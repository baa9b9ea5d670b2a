/* client/comm/accept.c - where other ranks connect to: the data listener of this rank.
 *
 *      accepting_new()     sockets bound and listening (their addresses go into the join request)
 *      accepting_start()   after joining: the control thread accepts; each stream proves itself (handshake.c)
 *      accepting_free()    the control thread lets go of everything, then it is gone
 *
 * The unix socket stands in a directory of its own that only this user may enter.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/accept.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/util.h"
#include "comm/group_state.h"
#include "comm/handshake.h"
#include "comm/peer_address.h"
#include "session/waiting.h"
#include "wire/private_folder.h"

#define END_MS 5000

struct listening {
    struct accepting *all;
    int fd;
    enum link_kind kind;
    struct loop_watch *watch;
    char address[128];
};

struct accepting {
    struct comm *comm;
    struct private_folder folder; /* of the unix socket */
    struct listening at[2];
    int n;
    const char *addresses[3];
    struct handshakes handshakes;
    bool is_started, is_ended; /* is_ended: on the control thread */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_let_go;
};

/* Listening ---------------------------------------------------------------------------------------------------------- */

static int cannot(const char *what)
{
    return err_set_local(MESH_EIO, "cannot %s for the streams of this rank: %s", what, strerror(errno));
}

static int listen_tcp(struct listening *l)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    l->kind = LINK_TCP;
    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0) {
        return cannot("make a tcp socket");
    }
    peer_address_tune(l->fd);
    if (bind(l->fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(l->fd, SOMAXCONN) < 0 ||
        getsockname(l->fd, (struct sockaddr *)&a, &len) < 0) {
        return cannot("listen on loopback tcp");
    }
    snprintf(l->address, sizeof l->address, "tcp:127.0.0.1:%u", (unsigned)ntohs(a.sin_port));
    return 0;
}

/* In the folder of the job, which its launcher removes; else where the user's, or all, sockets are. */
static int make_folder(struct accepting *a)
{
    const struct folder_base bases[] = { { getenv("MESH_RUN_DIR"), false },
                                         { getenv("XDG_RUNTIME_DIR"), true },
                                         { getenv("TMPDIR"), true },
                                         { "/tmp", true } };
    return private_folder_make(&a->folder, "mesh-rank", sizeof a->folder.path - 1, bases, ARRAY_SIZE(bases));
}

static int listen_unix(struct accepting *a, struct listening *l)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int r = make_folder(a);
    if (r < 0) {
        return r;
    }
    l->kind = LINK_UNIX;
    snprintf(to.sun_path, sizeof to.sun_path, "%s/data.sock", a->folder.path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0) {
        return cannot("make a unix socket");
    }
    if (bind(l->fd, (struct sockaddr *)&to, sizeof to) < 0 || listen(l->fd, SOMAXCONN) < 0) {
        return cannot("listen on a unix socket");
    }
    snprintf(l->address, sizeof l->address, "unix:%s", to.sun_path);
    return 0;
}

static int listen_all(struct accepting *a, enum link_kind policy)
{
    int r = 0;
    if (policy != LINK_TCP) {
        r = listen_unix(a, &a->at[a->n++]);
    }
    if (r == 0 && policy != LINK_UNIX) {
        r = listen_tcp(&a->at[a->n++]);
    }
    for (int i = 0; i < a->n; i++) {
        a->addresses[i] = a->at[i].address;
    }
    return r;
}

static void accepted_over(void *accepting);

struct accepting *accepting_new(struct comm *c, enum link_kind policy)
{
    struct accepting *a = mem_new(struct accepting);
    if (a == NULL) {
        (void)err_no_memory(sizeof *a, "the listener of a rank");
        return NULL;
    }
    a->comm = c;
    a->folder = PRIVATE_FOLDER_NONE;
    a->handshakes = (struct handshakes){ .comm = c, .accepted_fn = accepted_over, .arg = a };
    for (size_t i = 0; i < ARRAY_SIZE(a->at); i++) {
        a->at[i] = (struct listening){ .all = a, .fd = -1 };
    }
    CHECK(pthread_mutex_init(&a->lock, NULL) == 0);
    condition_init(&a->changed);
    return listen_all(a, policy) == 0 ? a : accepting_free(a);
}

const char *const *accepting_addresses(const struct accepting *a)
{
    return a->addresses;
}

/* Accepting, on the control thread ------------------------------------------------------------------------------------ */

static bool is_full(const struct accepting *a)
{
    return a->handshakes.n_accepted >= HANDSHAKE_MAX_ACCEPTED;
}

static void readable_cb(bool readable, bool writable, void *listening)
{
    struct listening *l = listening;
    (void)readable, (void)writable;
    while (!is_full(l->all)) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) {
                log_warn("comm", "no descriptor left for the stream of another rank, its call waits for one");
            }
            return;
        }
        handshake_accept(&l->all->handshakes, fd, l->kind);
    }
    l->watch = loop_watch_stop(l->watch); /* the others wait in the backlog */
}

static void watch_all(struct accepting *a)
{
    for (int i = 0; i < a->n && !a->is_ended; i++) {
        struct listening *l = &a->at[i];
        if (l->watch == NULL) {
            l->watch = loop_watch_start(a->comm->session->loop, l->fd, true, false, readable_cb, l);
        }
    }
}

static void accepted_over(void *accepting)
{
    struct accepting *a = accepting;
    if (a->is_started && !is_full(a)) {
        watch_all(a);
    }
}

static void start_cb(void *accepting)
{
    watch_all(accepting);
}

int accepting_start(struct accepting *a)
{
    struct loop *l = session_loop(a->comm->session);
    if (l == NULL) {
        return err_last()->status;
    }
    a->is_started = true;
    return loop_post(l, start_cb, a);
}

static void end_cb(void *accepting)
{
    struct accepting *a = accepting;
    a->is_ended = true;
    for (int i = 0; i < a->n; i++) {
        a->at[i].watch = loop_watch_stop(a->at[i].watch);
    }
    handshakes_end(&a->handshakes);
    pthread_mutex_lock(&a->lock);
    a->has_let_go = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

struct accepting *accepting_free(struct accepting *a)
{
    if (a == NULL) {
        return NULL;
    }
    if (a->is_started && loop_post(a->comm->session->loop, end_cb, a) == 0) {
        int64_t deadline_ms = deadline_in(END_MS);
        pthread_mutex_lock(&a->lock);
        while (!a->has_let_go && condition_wait(&a->changed, &a->lock, deadline_ms)) {
        }
        bool has_let_go = a->has_let_go;
        pthread_mutex_unlock(&a->lock);
        if (!has_let_go) {
            log_error("comm", "the control thread did not answer within %d ms, leaving its listener behind", END_MS);
            return NULL;
        }
    }
    for (int i = 0; i < a->n; i++) {
        if (a->at[i].fd >= 0) {
            close(a->at[i].fd);
        }
    }
    private_folder_remove(&a->folder);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    return mem_free(a);
}

/* Dialing ------------------------------------------------------------------------------------------------------------ */

struct dial_request {
    struct accepting *all;
    mesh_group *group; /* a reference */
    int peer;
};

static void dial_cb(void *request)
{
    struct dial_request *q = request;
    if (!q->all->is_ended) {
        handshake_dial(&q->all->handshakes, q->group, q->peer);
    }
    group_unref(q->group);
    (void)mem_free(q);
}

void dial_peer(struct comm *c, mesh_group *g, int peer)
{
    struct dial_request *q = mem_new(struct dial_request);
    int r = q != NULL ? 0 : err_no_memory(sizeof *q, "a stream to another rank");
    if (r == 0) {
        *q = (struct dial_request){ .all = c->accepting, .group = group_ref(g), .peer = peer };
        r = loop_post(c->session->loop, dial_cb, q);
    }
    if (r < 0) {
        (void)group_attach(g, peer, link_broken_new(r, err_last()->message));
        group_unref(q != NULL ? g : NULL);
        (void)mem_free(q);
    }
}
