/* proto/wire/loop.c - running a uv loop, stopping it, posting to it from other threads.
 *
 * Happy path   loop_run() runs; loop_stop() from anywhere; the loop goes on until every handle is closed and nothing is
 *              posted any more, and ends.
 * Failures     A handle that its owner does not close within LINGER_MS after loop_stop(): loop_run() ends with MESH_ESTATE.
 *              A post after the end: MESH_ESTATE to the poster.
 *
 *      IDLE --run--> RUNNING --stop, all closed, no posts--> ENDED
 *
 * The wake handle is what other threads touch.  It is closed after ENDED was set under the lock, and used only under the
 * lock while it is not ENDED.  It stops holding the loop (uv_unref) once loop_stop() was seen.
 *
 * SIGPIPE is blocked while a loop runs: libuv 1.44 writes without MSG_NOSIGNAL, and a library has no business changing
 * the process's handlers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "wire/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/util.h"
#include "base/vec.h"
#include "wire/uv_glue.h"

#define LINGER_MS   5000
#define DESCRIPTORS 8 /* of a loop: epoll, an eventfd, pipes for signals */

enum phase { IDLE, RUNNING, ENDED };

struct post {
    loop_fn fn;
    void *arg;
};

struct loop {
    uv_loop_t uv;
    uv_timer_t linger; /* runs after loop_stop(); does not hold the loop */
    bool is_lingering, is_late;
    VEC(struct post) running; /* taken from posts, being called */

    pthread_mutex_t lock; /* guards what follows */
    uv_async_t wake;
    enum phase phase;
    bool is_stopping;
    bool has_thread; /* to be joined by whoever sets it to false */
    pthread_t thread;
    char thread_name[16];
    VEC(struct post) posts;
};

static _Thread_local const struct loop *current_loop;

uv_loop_t *loop_uv(struct loop *l)
{
    return &l->uv;
}

bool loop_is_current(const struct loop *l)
{
    return current_loop == l;
}

static void linger_cb(uv_timer_t *timer)
{
    struct loop *l = container_of(timer, struct loop, linger);
    l->is_late = true;
    uv_stop(&l->uv);
}

/* Calls what was posted so far, in order; what these calls post comes in the next round. */
static void run_posts(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    struct post *at = l->posts.at;
    size_t n = l->posts.n, cap = l->posts.cap;
    l->posts.at = l->running.at;
    l->posts.n = 0;
    l->posts.cap = l->running.cap;
    bool is_stopping = l->is_stopping;
    pthread_mutex_unlock(&l->lock);

    l->running.at = at;
    l->running.cap = cap;
    for (size_t i = 0; i < n; i++) {
        at[i].fn(at[i].arg);
    }
    if (is_stopping && !l->is_lingering) {
        l->is_lingering = true;
        uv_unref((uv_handle_t *)&l->wake);
        uv_timer_start(&l->linger, linger_cb, LINGER_MS, 0);
        uv_unref((uv_handle_t *)&l->linger);
    }
}

static void wake_cb(uv_async_t *wake)
{
    run_posts(container_of(wake, struct loop, wake));
}

/* When standard input or output is closed, the next descriptor gets its number: printf() would write into our sockets, and
 * uv_close() aborts.  So something is put there on which they fail as on nothing at all. */
static void occupy_stdio(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            int lowest = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
            (void)lowest; /* is fd */
        }
    }
}

/* libuv aborts when it cannot make its pipes, so it is asked for nothing that cannot be had. */
static int check_descriptors(void)
{
    int fds[DESCRIPTORS], n = 0;
    while (n < DESCRIPTORS && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        n++;
    }
    int error = errno, missing = DESCRIPTORS - n;
    while (n > 0) {
        (void)close(fds[--n]);
    }
    return missing == 0
               ? 0
               : err_set_local(MESH_EIO, "cannot make an event loop, which needs %d open files: %s; see ulimit -n",
                               DESCRIPTORS, strerror(error));
}

struct loop *loop_new(void)
{
    occupy_stdio();
    if (check_descriptors() < 0) {
        return NULL;
    }
    struct loop *l = mem_new(struct loop);
    if (!l) {
        err_no_memory(sizeof *l, "an event loop");
        return NULL;
    }
    int uv_status = uv_loop_init(&l->uv);
    if (uv_status < 0) {
        goto free_loop;
    }
    uv_status = uv_async_init(&l->uv, &l->wake, wake_cb);
    if (uv_status < 0) {
        goto close_uv;
    }
    uv_timer_init(&l->uv, &l->linger);
    pthread_mutex_init(&l->lock, NULL);
    return l;

close_uv:
    uv_loop_close(&l->uv);
free_loop:
    err_set_local(status_from_uv(uv_status), "cannot make an event loop: %s", text_from_uv(uv_status));
    return mem_free(l);
}

int loop_post(struct loop *l, loop_fn fn, void *arg)
{
    int r = 0;
    pthread_mutex_lock(&l->lock);
    if (l->phase == ENDED) {
        r = err_set(MESH_ESTATE, "the event loop has ended");
    } else {
        struct post *p = VEC_PUSH(&l->posts);
        if (p) {
            *p = (struct post){ .fn = fn, .arg = arg };
            uv_async_send(&l->wake);
        } else {
            r = err_no_memory(sizeof *p, "a post to the event loop");
        }
    }
    pthread_mutex_unlock(&l->lock);
    return r;
}

/* True when nothing was posted since the last round: from here on nothing can be. */
static bool may_end(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    bool is_end = l->is_stopping && (l->posts.n == 0 || l->is_late);
    if (is_end) {
        l->phase = ENDED;
    }
    pthread_mutex_unlock(&l->lock);
    return is_end;
}

/* Timers, watches and signals that nobody stopped; streams belong to conns and listeners and cannot be taken from them. */
static void sweep_cb(uv_handle_t *handle, void *arg)
{
    struct loop *l = arg;
    if (uv_is_closing(handle)) {
        return;
    }
    if (handle == (uv_handle_t *)&l->wake || handle == (uv_handle_t *)&l->linger) {
        uv_close(handle, NULL);
    } else if (handle->type == UV_TIMER || handle->type == UV_POLL || handle->type == UV_SIGNAL) {
        loop_source_close(handle);
    }
}

static void block_sigpipe(sigset_t *ret_old)
{
    sigset_t sigpipe;
    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, ret_old);
}

static void restore_sigpipe(const sigset_t *old)
{
    if (!sigismember(old, SIGPIPE)) {
        /* One that is pending is ours; unblocking would deliver it. */
        sigset_t sigpipe;
        struct timespec now = { 0 };
        sigemptyset(&sigpipe);
        sigaddset(&sigpipe, SIGPIPE);
        sigtimedwait(&sigpipe, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

int loop_run(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    bool is_fresh = l->phase == IDLE;
    l->phase = is_fresh ? RUNNING : l->phase;
    pthread_mutex_unlock(&l->lock);
    if (!is_fresh) {
        return err_set(MESH_ESTATE, "an event loop runs once");
    }
    const struct loop *outer = current_loop;
    sigset_t old;
    current_loop = l;
    block_sigpipe(&old);

    do {
        run_posts(l);
        uv_run(&l->uv, UV_RUN_DEFAULT);
    } while (!may_end(l));
    run_posts(l);
    uv_walk(&l->uv, sweep_cb, l);
    uv_run(&l->uv, UV_RUN_NOWAIT);

    restore_sigpipe(&old);
    current_loop = outer;
    if (l->is_late) {
        log_error("wire", "an event loop ends with handles that nobody closed within %d ms, giving them up", LINGER_MS);
        return err_set(MESH_ESTATE, "handles were still open %d ms after the event loop was stopped", LINGER_MS);
    }
    return 0;
}

static void *thread_main(void *arg)
{
    struct loop *l = arg;
    pthread_setname_np(pthread_self(), l->thread_name);
    loop_run(l);
    return NULL;
}

int loop_run_thread(struct loop *l, const char *thread_name)
{
    sigset_t all, old;
    PRE(!l->has_thread);
    snprintf(l->thread_name, sizeof l->thread_name, "%.15s", thread_name);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited: signals are for the program's own threads */
    int error = pthread_create(&l->thread, NULL, thread_main, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error != 0) {
        return err_set_local(MESH_ENOMEM, "cannot start the thread %s: %s", l->thread_name, strerror(error));
    }
    l->has_thread = true;
    return 0;
}

void loop_stop(struct loop *l)
{
    bool do_join = false;
    pthread_mutex_lock(&l->lock);
    if (l->phase != ENDED) {
        l->is_stopping = true;
        uv_async_send(&l->wake);
    }
    if (!loop_is_current(l)) {
        do_join = l->has_thread;
        l->has_thread = false;
    }
    pthread_mutex_unlock(&l->lock);
    if (do_join) {
        pthread_join(l->thread, NULL);
    }
}

struct loop *loop_free(struct loop *l)
{
    if (!l) {
        return NULL;
    }
    PRE(!loop_is_current(l));
    loop_stop(l);
    if (l->phase == IDLE) {
        loop_run(l); /* never ran: what was posted and what is closing still gets its calls */
    }
    if (uv_loop_close(&l->uv) < 0) {
        return NULL; /* somebody's handle is in there; loop_run() has said so */
    }
    pthread_mutex_destroy(&l->lock);
    VEC_FINI(&l->posts);
    VEC_FINI(&l->running);
    return mem_free(l);
}
