/* tests/bench/floor_exchange.c - bytes through several sockets at once, by non-blocking calls of up to a chunk.
 * SPDX-License-Identifier: Apache-2.0 */
#include "floor.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/util.h"

static void add(float *restrict to, const float *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] += from[i];
    }
}

static bool send_some(struct transfer *t)
{
    ssize_t n = send(floor_here.fd[t->peer], t->out, MIN(t->to_send, FLOOR_CHUNK_BYTES), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) {
        floor_die("send");
    }
    if (n < 0) {
        return false;
    }
    t->out += n;
    t->to_send -= (size_t)n;
    return true;
}

/* Whole elements of what has come are added; the rest moves to the front. */
static void add_held(struct transfer *t, char *held)
{
    size_t n = t->held / sizeof(float);
    add(t->sum, (const float *)(const void *)held, n);
    t->sum += n;
    t->held -= n * sizeof(float);
    memmove(held, held + n * sizeof(float), t->held);
}

static bool receive_some(struct transfer *t)
{
    char *held = floor_here.scratch + (size_t)t->peer * FLOOR_CHUNK_BYTES;
    size_t most =
        t->sum != NULL ? MIN(t->to_receive, FLOOR_CHUNK_BYTES - t->held) : MIN(t->to_receive, FLOOR_CHUNK_BYTES);
    ssize_t n = recv(floor_here.fd[t->peer], t->sum != NULL ? held + t->held : t->in, most, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        floor_die("receive");
    }
    if (n < 0) {
        return false;
    }
    t->to_receive -= (size_t)n;
    if (t->sum != NULL) {
        t->held += (size_t)n;
        add_held(t, held);
    } else {
        t->in += n;
    }
    return true;
}

static void give_way(void)
{
    if (floor_here.is_crowded) {
        (void)sched_yield();
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void floor_exchange(struct transfer *transfers, int n)
{
    for (bool is_left = true; is_left;) {
        bool has_moved = false;
        is_left = false;
        for (struct transfer *t = transfers; t < transfers + n; t++) {
            has_moved = (t->to_send > 0 && send_some(t)) || has_moved;
            has_moved = (t->to_receive > 0 && receive_some(t)) || has_moved;
            is_left = is_left || t->to_send > 0 || t->to_receive > 0;
        }
        if (is_left && !has_moved) {
            give_way();
        }
    }
}
