/* proto/wire/loop_sources.c - timers, watched descriptors and signals of a loop.
 *
 * To their owner they are gone when stopped; to libuv they live until its close callback, which frees them.  Each struct
 * begins with its uv handle, so that one callback frees all kinds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/loop.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"
#include "wire/uv_glue.h"

struct loop_timer {
    uv_timer_t uv;
    loop_fn fn;
    void *arg;
};

struct loop_watch {
    uv_poll_t uv;
    loop_watch_fn fn;
    void *arg;
};

struct loop_signal {
    uv_signal_t uv;
    loop_fn fn;
    void *arg;
};

static_assert(offsetof(struct loop_timer, uv) == 0 && offsetof(struct loop_watch, uv) == 0 &&
                  offsetof(struct loop_signal, uv) == 0,
              "closed_cb frees the struct by the address of its handle");

static void closed_cb(uv_handle_t *source)
{
    mem_free(source);
}

void loop_source_close(uv_handle_t *source)
{
    uv_close(source, closed_cb);
}

static void *fail(int uv_status, const char *what)
{
    err_set_local(status_from_uv(uv_status), "cannot %s: %s", what, text_from_uv(uv_status));
    return NULL;
}

static void timer_cb(uv_timer_t *uv)
{
    struct loop_timer *t = (struct loop_timer *)uv;
    t->fn(t->arg);
}

struct loop_timer *loop_timer_new(struct loop *l, loop_fn fn, void *arg)
{
    struct loop_timer *t = mem_new(struct loop_timer);
    if (!t) {
        err_no_memory(sizeof *t, "a timer");
        return NULL;
    }
    t->fn = fn;
    t->arg = arg;
    uv_timer_init(loop_uv(l), &t->uv);
    return t;
}

void loop_timer_set(struct loop_timer *t, int64_t delay_ms, int64_t repeat_ms)
{
    uv_update_time(t->uv.loop); /* the loop's clock stands still during a callback */
    uv_timer_start(&t->uv, timer_cb, delay_ms > 0 ? (uint64_t)delay_ms : 0, repeat_ms > 0 ? (uint64_t)repeat_ms : 0);
}

void loop_timer_unset(struct loop_timer *t)
{
    uv_timer_stop(&t->uv);
}

struct loop_timer *loop_timer_start(struct loop *l, int64_t delay_ms, int64_t repeat_ms, loop_fn fn, void *arg)
{
    struct loop_timer *t = loop_timer_new(l, fn, arg);
    if (t) {
        loop_timer_set(t, delay_ms, repeat_ms);
    }
    return t;
}

struct loop_timer *loop_timer_stop(struct loop_timer *t)
{
    if (t) {
        loop_source_close((uv_handle_t *)&t->uv);
    }
    return NULL;
}

static void watch_cb(uv_poll_t *uv, int uv_status, int events)
{
    struct loop_watch *w = (struct loop_watch *)uv;
    bool is_broken = uv_status < 0; /* the owner finds out what it is by reading or writing */
    w->fn(is_broken || (events & UV_READABLE), is_broken || (events & UV_WRITABLE), w->arg);
}

int loop_watch_change(struct loop_watch *w, bool want_read, bool want_write)
{
    int uv_status = uv_poll_start(&w->uv, (want_read ? UV_READABLE : 0) | (want_write ? UV_WRITABLE : 0), watch_cb);
    if (uv_status < 0) {
        fail(uv_status, "watch a descriptor");
        return status_from_uv(uv_status);
    }
    return 0;
}

struct loop_watch *loop_watch_start(struct loop *l, int fd, bool want_read, bool want_write, loop_watch_fn fn,
                                    void *arg)
{
    struct loop_watch *w = mem_new(struct loop_watch);
    if (!w) {
        err_no_memory(sizeof *w, "a watched descriptor");
        return NULL;
    }
    w->fn = fn;
    w->arg = arg;
    int uv_status = uv_poll_init(loop_uv(l), &w->uv, fd);
    if (uv_status < 0) {
        mem_free(w); /* libuv did not take the handle */
        return fail(uv_status, "watch a descriptor");
    }
    if (loop_watch_change(w, want_read, want_write) < 0) {
        return loop_watch_stop(w);
    }
    return w;
}

struct loop_watch *loop_watch_stop(struct loop_watch *w)
{
    if (w) {
        loop_source_close((uv_handle_t *)&w->uv);
    }
    return NULL;
}

static void signal_cb(uv_signal_t *uv, int signal_number)
{
    struct loop_signal *s = (struct loop_signal *)uv;
    (void)signal_number;
    s->fn(s->arg);
}

struct loop_signal *loop_signal_start(struct loop *l, int signal_number, loop_fn fn, void *arg)
{
    struct loop_signal *s = mem_new(struct loop_signal);
    if (!s) {
        err_no_memory(sizeof *s, "a signal");
        return NULL;
    }
    s->fn = fn;
    s->arg = arg;
    int uv_status = uv_signal_init(loop_uv(l), &s->uv);
    if (uv_status < 0) {
        mem_free(s);
        return fail(uv_status, "wait for a signal");
    }
    uv_status = uv_signal_start(&s->uv, signal_cb, signal_number);
    if (uv_status < 0) {
        loop_signal_stop(s);
        return fail(uv_status, "wait for a signal");
    }
    return s;
}

struct loop_signal *loop_signal_stop(struct loop_signal *s)
{
    if (s) {
        loop_source_close((uv_handle_t *)&s->uv);
    }
    return NULL;
}
