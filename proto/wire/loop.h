/* proto/wire/loop.h - one event loop: its thread, posts from other threads, timers, watched descriptors, signals.
 *
 * Everything of a loop happens on the one thread that runs it; other threads may only loop_post().  libuv and its rule that
 * a handle's memory lives until its close callback stay inside proto/wire: to everyone else a timer or watch that was
 * stopped is gone at once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIRE_LOOP_H
#define WIRE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_timer;
struct loop_watch;
struct loop_signal;

typedef void (*loop_fn)(void *arg);
typedef void (*loop_watch_fn)(bool readable, bool writable, void *arg);

struct loop *loop_new(void);  /* NULL with the error set */
int loop_run(struct loop *l); /* on this thread, until loop_stop() and every handle is closed (5 s at most) */
int loop_run_thread(struct loop *l, const char *thread_name); /* on a thread of its own, signals blocked */
void loop_stop(struct loop *l);             /* any thread; a thread started above is joined, unless called on it */
struct loop *loop_free(struct loop *l);     /* after it stopped; returns NULL */
bool loop_is_current(const struct loop *l); /* called on the loop's thread? */

/* Any thread: fn(arg) runs soon on the loop's thread, in order of posting; after loop_stop() it runs before
 * the loop ends; after that: MESH_ESTATE, and fn is not called. */
int loop_post(struct loop *l, loop_fn fn, void *arg);

/* The rest only on the loop's thread (or before it runs).  A timer that fired once is still its owner's to stop; what is
 * left over when the loop ends is freed with it. */
struct loop_timer *loop_timer_start(struct loop *l, int64_t delay_ms, int64_t repeat_ms, loop_fn fn, void *arg);
struct loop_timer *loop_timer_stop(struct loop_timer *t); /* NULL is fine; returns NULL */
/* A timer that is not running yet, to be set later without a way to fail. */
struct loop_timer *loop_timer_new(struct loop *l, loop_fn fn, void *arg);
void loop_timer_set(struct loop_timer *t, int64_t delay_ms, int64_t repeat_ms); /* from now, whatever it did before */
void loop_timer_unset(struct loop_timer *t);
/* fn(true, true) once when the descriptor is broken: reading or writing it says how. */
struct loop_watch *loop_watch_start(struct loop *l, int fd, bool want_read, bool want_write, loop_watch_fn fn,
                                    void *arg);
int loop_watch_change(struct loop_watch *w, bool want_read, bool want_write);
struct loop_watch *loop_watch_stop(
    struct loop_watch *w); /* the descriptor stays the caller's, and may be closed at once */
struct loop_signal *loop_signal_start(struct loop *l, int signal_number, loop_fn fn, void *arg);
struct loop_signal *loop_signal_stop(struct loop_signal *s);

#endif
