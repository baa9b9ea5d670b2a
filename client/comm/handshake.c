/* client/comm/handshake.c - a new stream until both sides have proved who they are; on the control thread.
 *
 * Happy path   dialer: connect, send hello, read hello and proof, send proof; acceptor: the mirror image (hello.h).  Then
 *              the stream goes to its group.
 * Failures     accepting side: whatever is not right closes the connection and nothing else.
 *              dialing side: an address that refuses: the next one; none left: a broken link with the reason.  No answer in
 *              time (the peer is stopped, or its backlog is full): again, until the group's own deadline ends it.
 *              The peer does not prove itself, or is of another generation: a broken link that says so.
 *
 *      CONNECTING --> step 0 --> step 1 --> step 2 --> delivered
 *           ^             |
 *           '-- retry ----'         each step is a row of the tables below: so many bytes in or out
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/handshake.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "comm/group_state.h"
#include "comm/hello.h"
#include "comm/peer_address.h"

#define RETRY_MS 10

struct step;

struct handshake {
    struct handshakes *all;
    struct handshake *next, **link_in_list;
    mesh_group *group; /* a reference; NULL: accepting */
    int peer;          /* dialing: group rank */
    int fd;            /* -1: none now */
    enum link_kind kind;
    int n_tried; /* addresses of the peer that did not work */
    bool is_connecting;
    const struct step *step; /* a row of the tables below */
    uint8_t bytes[HELLO_BYTES + HELLO_PROOF_BYTES];
    size_t done; /* of the step's bytes */
    struct hello mine, theirs;
    struct loop_watch *watch;
    struct loop_timer *timer;
    char why[200]; /* the last address did not work */
};

struct step {
    bool is_send;
    size_t n_bytes;                   /* 0: the end */
    int (*work)(struct handshake *h); /* before sending: fill h->bytes; after receiving: check them */
};

static void run(void *handshake);

static struct mesh_session *session_of(const struct handshake *h)
{
    return h->all->comm->session;
}

/* The steps -------------------------------------------------------------------------------------------------------- */

static struct hello_secret secret_of(const struct handshake *h)
{
    const struct mesh_session *s = session_of(h);
    return (struct hello_secret){ .key = s->secret, .key_len = sizeof s->secret, .job = s->job };
}

static int write_hello(struct handshake *h)
{
    struct mesh_session *s = session_of(h);
    h->mine = (struct hello){
        .generation = s->generation, .group = h->group->id, .from = s->rank, .to = h->group->world_ranks[h->peer]
    };
    int r = rng_secret(h->mine.nonce, sizeof h->mine.nonce);
    hello_encode(h->bytes, &h->mine);
    return r;
}

static int read_hello(struct handshake *h)
{
    const struct mesh_session *s = session_of(h);
    int r = hello_decode(h->bytes, &h->theirs);
    if (r < 0) {
        return r;
    }
    if (h->theirs.to != s->rank || h->theirs.from < 0 || h->theirs.from >= s->world_size || h->theirs.from == s->rank) {
        return err_set(MESH_EPROTO, "a hello from rank %d to rank %d does not belong here", h->theirs.from,
                       h->theirs.to);
    }
    return 0;
}

static int write_reply(struct handshake *h)
{
    const struct mesh_session *s = session_of(h);
    struct hello_secret secret = secret_of(h);
    h->mine =
        (struct hello){ .generation = s->generation, .group = h->theirs.group, .from = s->rank, .to = h->theirs.from };
    int r = rng_secret(h->mine.nonce, sizeof h->mine.nonce);
    hello_encode(h->bytes, &h->mine);
    return r < 0 ? r : hello_prove(h->bytes + HELLO_BYTES, &secret, &h->theirs, &h->mine, false);
}

static int read_reply(struct handshake *h)
{
    struct hello_secret secret = secret_of(h);
    int r = hello_decode(h->bytes, &h->theirs);
    if (r < 0) {
        return r;
    }
    if (h->theirs.generation != h->mine.generation) {
        return err_set_about(MESH_ESTALE, h->mine.to, "rank %d is in generation %u of the job, this rank in %u",
                             h->mine.to, (unsigned)h->theirs.generation, (unsigned)h->mine.generation);
    }
    bool is_answer = h->theirs.from == h->mine.to && h->theirs.to == h->mine.from && h->theirs.group == h->mine.group;
    if (!is_answer || !hello_is_proof(h->bytes + HELLO_BYTES, &secret, &h->mine, &h->theirs, false)) {
        return err_set_about(MESH_EAUTH, h->mine.to,
                             "what answers at the address of rank %d does not know this job's secret", h->mine.to);
    }
    return 0;
}

static int write_proof(struct handshake *h)
{
    struct hello_secret secret = secret_of(h);
    return hello_prove(h->bytes, &secret, &h->mine, &h->theirs, true);
}

static int read_proof(struct handshake *h)
{
    struct hello_secret secret = secret_of(h);
    if (h->theirs.generation != h->mine.generation) {
        return err_set(MESH_ESTALE, "a stream of generation %u of the job", (unsigned)h->theirs.generation);
    }
    return hello_is_proof(h->bytes, &secret, &h->theirs, &h->mine, true)
               ? 0
               : err_set(MESH_EAUTH, "a stream that claims to be from rank %d has no proof", h->theirs.from);
}

static const struct step dialer_steps[] = {
    { true, HELLO_BYTES, write_hello },
    { false, HELLO_BYTES + HELLO_PROOF_BYTES, read_reply },
    { true, HELLO_PROOF_BYTES, write_proof },
    { .n_bytes = 0 },
};

static const struct step acceptor_steps[] = {
    { false, HELLO_BYTES, read_hello },
    { true, HELLO_BYTES + HELLO_PROOF_BYTES, write_reply },
    { false, HELLO_PROOF_BYTES, read_proof },
    { .n_bytes = 0 },
};

/* Ending ------------------------------------------------------------------------------------------------------------ */

static void drop_socket(struct handshake *h)
{
    h->watch = loop_watch_stop(h->watch);
    h->timer = loop_timer_stop(h->timer);
    if (h->fd >= 0) {
        close(h->fd);
        h->fd = -1;
    }
}

static void end(struct handshake *h)
{
    struct handshakes *all = h->all;
    bool was_accepted = h->group == NULL;
    drop_socket(h);
    *h->link_in_list = h->next;
    if (h->next != NULL) {
        h->next->link_in_list = h->link_in_list;
    }
    group_unref(h->group);
    (void)mem_free(h);
    if (was_accepted) {
        all->n_accepted--;
        all->accepted_fn(all->arg);
    }
}

/* The stream is proved, or (link broken) will never be. */
static void deliver(struct handshake *h, struct link *link)
{
    if (link == NULL) {
        return; /* no memory even for the reason: the call's deadline ends it */
    }
    if (h->group == NULL) {
        comm_deliver(h->all->comm, h->theirs.group, h->theirs.from, link);
    } else if (group_attach(h->group, h->peer, link)) {
        group_wake(h->group);
    } else {
        (void)link_close(link);
    }
}

/* Dialing a rank that stands later in the group only asks it to dial: group_knock(). */
static bool is_knock(const struct handshake *h)
{
    return h->group != NULL && h->group->rank < h->peer;
}

static void fail(struct handshake *h)
{
    log_debug("comm", "handshake failed, closing the stream: %s", err_last()->message);
    if (h->group != NULL && !is_knock(h)) {
        deliver(h, link_broken_new((int)err_last()->status, err_last()->message));
    }
    end(h);
}

static void succeed(struct handshake *h)
{
    if (!is_knock(h)) {
        int fd = h->fd;
        h->watch = loop_watch_stop(h->watch);
        h->fd = -1;
        deliver(h, link_socket_new(fd, h->kind));
    }
    end(h);
}

/* Dialing ----------------------------------------------------------------------------------------------------------- */

static void timed_out(void *handshake)
{
    struct handshake *h = handshake;
    h->timer = loop_timer_stop(h->timer);
    if (h->group == NULL) {
        (void)err_set(MESH_ETIMEDOUT, "a stream did not prove itself within %d ms", HANDSHAKE_TIMEOUT_MS);
        fail(h);
        return;
    }
    drop_socket(h);
    h->n_tried = 0;
    h->step = dialer_steps;
    run(h);
}

static void retry_cb(void *handshake)
{
    struct handshake *h = handshake;
    h->timer = loop_timer_stop(h->timer);
    run(h);
}

static void retry_after(struct handshake *h, int64_t delay_ms)
{
    drop_socket(h);
    h->step = dialer_steps;
    h->timer = loop_timer_start(session_of(h)->loop, delay_ms, 0, retry_cb, h);
}

/* Opens a socket to the next address of the peer.  0: connecting or connected; MESH_EPEER: no address is left. */
static int try_next(struct handshake *h)
{
    struct comm *c = h->all->comm;
    struct peer_address a;
    int rank = h->group->world_ranks[h->peer];
    for (; peer_address_at(c->session, rank, c->policy, h->n_tried, &a); h->n_tried++) {
        h->fd = peer_address_connect(&a);
        h->kind = a.kind;
        if (h->fd >= 0) {
            h->is_connecting = true;
            h->done = 0;
            return 0;
        }
        if (errno == EAGAIN) {
            return MESH_ETIMEDOUT; /* the peer's backlog is full */
        }
        snprintf(h->why, sizeof h->why, "%.100s: %s", a.text, strerror(errno));
    }
    if (h->n_tried == 0) {
        (void)err_set_about(MESH_EPEER, rank, "rank %d has no address that this rank may use (MESH_LINK)", rank);
    } else {
        (void)err_set_about(MESH_EPEER, rank, "no stream to rank %d: %s", rank, h->why);
    }
    return MESH_EPEER;
}

/* True once connected; otherwise all is arranged. */
static bool connected(struct handshake *h)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(h->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0) {
        h->is_connecting = false;
        return true;
    }
    snprintf(h->why, sizeof h->why, "%s", strerror(error));
    h->n_tried++;
    retry_after(h, 0);
    return false;
}

/* The machine -------------------------------------------------------------------------------------------------------- */

/* Moves bytes of the step.  1: all moved; 0: would block; negative: the stream is over. */
static int move_bytes(struct handshake *h)
{
    while (h->done < h->step->n_bytes) {
        size_t left = h->step->n_bytes - h->done;
        ssize_t n = h->step->is_send ? send(h->fd, h->bytes + h->done, left, MSG_NOSIGNAL | MSG_DONTWAIT)
                                     : recv(h->fd, h->bytes + h->done, left, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return 0;
        }
        if (n <= 0) {
            return err_set(MESH_EPEER, "a stream ended before it had proved itself");
        }
        h->done += (size_t)n;
    }
    return 1;
}

static void ready_cb(bool readable, bool writable, void *handshake)
{
    (void)readable, (void)writable;
    struct handshake *h = handshake;
    if (!h->is_connecting || connected(h)) {
        run(h);
    }
}

static void wait_for(struct handshake *h, bool want_write)
{
    struct loop *l = session_of(h)->loop;
    if (h->timer == NULL) {
        h->timer = loop_timer_start(l, HANDSHAKE_TIMEOUT_MS, 0, timed_out, h);
    }
    if (h->watch != NULL) {
        (void)loop_watch_change(h->watch, !want_write, want_write);
        return;
    }
    h->watch = loop_watch_start(l, h->fd, !want_write, want_write, ready_cb, h);
    if (h->watch == NULL) {
        fail(h);
    }
}

/* Steps while bytes move.  0: waits; 1: proved; negative: failed. */
static int run_steps(struct handshake *h)
{
    while (h->step->n_bytes > 0) {
        int r = h->step->is_send && h->done == 0 ? h->step->work(h) : 0;
        r = r < 0 ? r : move_bytes(h);
        if (r <= 0) {
            return r;
        }
        r = h->step->is_send ? 0 : h->step->work(h);
        if (r < 0) {
            return r;
        }
        h->step++;
        h->done = 0;
    }
    return 1;
}

static void run(void *handshake)
{
    struct handshake *h = handshake;
    if (h->group != NULL && atomic_load(&h->group->is_closed)) {
        end(h);
        return;
    }
    if (h->fd < 0) {
        int r = try_next(h);
        if (r == MESH_ETIMEDOUT) {
            retry_after(h, RETRY_MS);
        } else if (r < 0) {
            fail(h);
        } else {
            wait_for(h, true);
        }
        return;
    }
    int r = run_steps(h);
    if (r > 0) {
        succeed(h);
    } else if (r == 0) {
        wait_for(h, h->step->is_send);
    } else if (r == MESH_EPEER && h->group != NULL) {
        snprintf(h->why, sizeof h->why, "%.199s", err_last()->message);
        h->n_tried++;
        retry_after(h, RETRY_MS);
    } else {
        fail(h);
    }
}

static struct handshake *add(struct handshakes *all)
{
    struct handshake *h = mem_new(struct handshake);
    if (h == NULL) {
        (void)err_no_memory(sizeof *h, "a handshake");
        return NULL;
    }
    h->all = all;
    h->fd = -1;
    h->next = all->first;
    h->link_in_list = &all->first;
    if (h->next != NULL) {
        h->next->link_in_list = &h->next;
    }
    all->first = h;
    return h;
}

void handshake_accept(struct handshakes *all, int fd, enum link_kind kind)
{
    struct handshake *h = add(all);
    if (h == NULL) {
        close(fd);
        return;
    }
    all->n_accepted++;
    h->fd = fd;
    h->kind = kind;
    h->step = acceptor_steps;
    run(h);
}

void handshake_dial(struct handshakes *all, mesh_group *g, int peer)
{
    struct handshake *h = add(all);
    if (h == NULL) {
        (void)(group_attach(g, peer, link_broken_new(MESH_ENOMEM, err_last()->message)));
        return;
    }
    h->group = group_ref(g);
    h->peer = peer;
    h->step = dialer_steps;
    run(h);
}

void handshakes_end(struct handshakes *all)
{
    while (all->first != NULL) {
        end(all->first);
    }
}
