/* tests/unit/wire/test_loop.c - timers, posts from threads, watches, signals, and how a loop ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/check_main.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mesh/base.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fault.h"
#include "wire/loop.h"

#define GUARD_MS 10000

static struct loop *loop;
static struct loop_timer *guard;

static void guard_fired(void *arg)
{
    (void)arg;
    ck_abort_msg("the loop did not end within %d ms", GUARD_MS);
}

static void set_up(void)
{
    loop = loop_new();
    ck_assert_ptr_nonnull(loop);
    guard = loop_timer_start(loop, GUARD_MS, 0, guard_fired, NULL);
}

static void tear_down(void)
{
    fault_disarm(FAULT_ALLOC);
    loop = loop_free(loop);
}

static void stop(void *arg)
{
    (void)arg;
    guard = loop_timer_stop(guard);
    loop_stop(loop);
}

/* Timers ------------------------------------------------------------------------------------------------------------ */

static int fired[16], n_fired;
static struct loop_timer *repeating;

static void note_1(void *arg)
{
    (void)arg;
    fired[n_fired++] = 1;
}

static void note_2_and_stop(void *arg)
{
    fired[n_fired++] = 2;
    stop(arg);
}

static void note_third(void *arg)
{
    (void)arg;
    if (++n_fired == 3) {
        repeating = loop_timer_stop(repeating);
        stop(NULL);
    }
}

START_TEST(timers_fire_by_their_time)
{
    int64_t begin = clock_now_ms();
    loop_timer_start(loop, 30, 0, note_2_and_stop, NULL);
    loop_timer_start(loop, 5, 0, note_1, NULL); /* both are left to the loop's end */
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(n_fired, 2);
    ck_assert_int_eq(fired[0], 1);
    ck_assert_int_eq(fired[1], 2);
    ck_assert_int_ge(clock_now_ms() - begin, 29); /* uv rounds to whole ms */
}
END_TEST

START_TEST(a_repeating_timer_stops_in_its_own_callback)
{
    repeating = loop_timer_start(loop, 1, 1, note_third, NULL);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(n_fired, 3);
}
END_TEST

START_TEST(a_stopped_timer_never_fires)
{
    struct loop_timer *t = loop_timer_start(loop, 0, 0, guard_fired, NULL);
    ck_assert_ptr_null(loop_timer_stop(t));
    ck_assert_ptr_null(loop_timer_stop(NULL));
    struct loop_timer *set = loop_timer_new(loop, guard_fired, NULL);
    loop_timer_set(set, 0, 0);
    loop_timer_unset(set);
    loop_timer_start(loop, 3, 0, stop, NULL);
    ck_assert_int_eq(loop_run(loop), 0);
}
END_TEST

/* Posts ------------------------------------------------------------------------------------------------------------- */

enum { N_POSTERS = 4, N_POSTS = 5000 };

struct poster {
    pthread_t thread;
    int n_run;
    struct poster_post {
        struct poster *poster;
        int number;
    } posts[N_POSTS];
};

static struct poster posters[N_POSTERS];
static int n_posts_run;

static void run_post(void *arg)
{
    struct poster_post *p = arg;
    ck_assert(loop_is_current(loop));
    ck_assert_int_eq(p->number, p->poster->n_run); /* in order of posting */
    p->poster->n_run++;
    if (++n_posts_run == N_POSTERS * N_POSTS) {
        stop(NULL);
    }
}

static void *post_all(void *arg)
{
    struct poster *p = arg;
    for (int i = 0; i < N_POSTS; i++) {
        p->posts[i] = (struct poster_post){ .poster = p, .number = i };
        ck_assert_int_eq(loop_post(loop, run_post, &p->posts[i]), 0);
    }
    return NULL;
}

START_TEST(posts_of_four_threads_run_in_order)
{
    for (int i = 0; i < N_POSTERS; i++) {
        pthread_create(&posters[i].thread, NULL, post_all, &posters[i]);
    }
    ck_assert(!loop_is_current(loop));
    ck_assert_int_eq(loop_run(loop), 0);
    for (int i = 0; i < N_POSTERS; i++) {
        pthread_join(posters[i].thread, NULL);
        ck_assert_int_eq(posters[i].n_run, N_POSTS);
    }
}
END_TEST

static void post_after_stop(void *arg)
{
    stop(NULL);
    ck_assert_int_eq(loop_post(loop, note_1, arg), 0);
}

START_TEST(a_post_after_stop_still_runs_and_one_after_the_end_is_refused)
{
    ck_assert_int_eq(loop_post(loop, post_after_stop, NULL), 0);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(n_fired, 1);
    ck_assert_int_eq(loop_post(loop, note_1, NULL), MESH_ESTATE);
    ck_assert_int_eq(loop_run(loop), MESH_ESTATE);
}
END_TEST

START_TEST(a_loop_that_never_ran_runs_its_posts_when_freed)
{
    struct loop *other = loop_new();
    ck_assert_int_eq(loop_post(other, note_1, NULL), 0);
    ck_assert_ptr_null(loop_free(other));
    ck_assert_int_eq(n_fired, 1);
    guard = loop_timer_stop(guard);
}
END_TEST

/* A thread of its own ----------------------------------------------------------------------------------------------- */

static sigset_t seen_mask;
static _Atomic int is_seen;

static void look_at_mask(void *arg)
{
    (void)arg;
    pthread_sigmask(SIG_SETMASK, NULL, &seen_mask);
    is_seen = 1;
}

START_TEST(the_loops_own_thread_takes_no_signals)
{
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    guard = loop_timer_stop(guard);
    ck_assert_int_eq(loop_run_thread(loop, "a-name-that-is-too-long-for-linux"), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    ck_assert_int_eq(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
    ck_assert_int_eq(loop_post(loop, look_at_mask, NULL), 0);
    loop_stop(loop);
    loop_stop(loop);
    ck_assert_int_eq(is_seen, 1);
    const int signals[] = { SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGPIPE, SIGHUP };
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        ck_assert_int_eq(sigismember(&seen_mask, signals[i]), 1);
    }
}
END_TEST

static void stop_from_within(void *arg)
{
    (void)arg;
    guard = loop_timer_stop(guard);
    loop_stop(loop); /* must not join itself; loop_free() does */
}

START_TEST(a_thread_that_stops_its_own_loop_is_joined_by_free)
{
    loop_post(loop, stop_from_within, NULL);
    ck_assert_int_eq(loop_run_thread(loop, "loop"), 0);
}
END_TEST

START_TEST(the_callers_signal_mask_is_as_before)
{
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    loop_post(loop, stop, NULL);
    ck_assert_int_eq(loop_run(loop), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    ck_assert_int_eq(sigismember(&before, SIGPIPE), sigismember(&after, SIGPIPE));
}
END_TEST

/* Watches and signals ----------------------------------------------------------------------------------------------- */

static struct loop_watch *watch;
static int pair[2];
static bool saw_readable, saw_writable;

static void watched(bool readable, bool writable, void *arg)
{
    char c;
    (void)arg;
    saw_readable |= readable;
    saw_writable |= writable;
    if (!readable) {
        ck_assert_int_eq(loop_watch_change(watch, true, false), 0);
        ck_assert_int_eq(write(pair[1], "x", 1), 1);
        return;
    }
    ck_assert_int_eq(read(pair[0], &c, 1), 1);
    watch = loop_watch_stop(watch);
    close(pair[0]); /* at once */
    close(pair[1]);
    stop(NULL);
}

START_TEST(a_descriptor_is_watched_for_what_was_asked)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    watch = loop_watch_start(loop, pair[0], false, true, watched, NULL);
    ck_assert_ptr_nonnull(watch);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert(saw_readable);
    ck_assert(saw_writable);
}
END_TEST

static void other_end_closed(bool readable, bool writable, void *arg)
{
    (void)writable;
    (void)arg;
    ck_assert(readable);
    watch = loop_watch_stop(watch);
    stop(NULL);
}

START_TEST(the_other_ends_close_makes_a_descriptor_readable)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    watch = loop_watch_start(loop, pair[0], true, false, other_end_closed, NULL);
    close(pair[1]);
    ck_assert_int_eq(loop_run(loop), 0);
    close(pair[0]);
}
END_TEST

START_TEST(a_descriptor_that_is_none_is_refused)
{
    ck_assert_ptr_null(loop_watch_start(loop, 9999, true, false, watched, NULL));
    ck_assert_int_lt((int)err_last()->status, 0);
    guard = loop_timer_stop(guard);
}
END_TEST

static struct loop_signal *usr1;

static void usr1_came(void *arg)
{
    usr1 = loop_signal_stop(usr1);
    stop(arg);
}

static void raise_usr1(void *arg)
{
    (void)arg;
    kill(getpid(), SIGUSR1);
}

START_TEST(a_signal_becomes_a_call)
{
    usr1 = loop_signal_start(loop, SIGUSR1, usr1_came, NULL);
    ck_assert_ptr_nonnull(usr1);
    loop_post(loop, raise_usr1, NULL);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_ptr_null(usr1);
}
END_TEST

/* In a child, for the limit stays: 0 it ran, 1 it was refused with a sentence, 2 without one. */
static int run_with_descriptors(rlim_t n)
{
    struct rlimit limit = { .rlim_cur = n, .rlim_max = n };
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    struct loop *l = loop_new();
    if (l == NULL) {
        return strstr(mesh_last_error()->message, "ulimit -n") != NULL ? 1 : 2;
    }
    struct loop_signal *s = loop_signal_start(l, SIGUSR1, stop, NULL);
    (void)loop_signal_stop(s);
    loop_stop(l);
    int r = loop_run(l);
    (void)loop_free(l);
    return s != NULL && r == 0 ? 0 : 2;
}

START_TEST(without_descriptors_there_is_a_sentence_not_an_abort)
{
    int n_refused = 0, code = 2;
    for (rlim_t n = 3; n < 40; n++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            _exit(run_with_descriptors(n));
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 2;
        ck_assert_msg(code != 2, "%d descriptors: status %#x", (int)n, (unsigned)status);
        n_refused += code;
    }
    ck_assert_int_gt(n_refused, 3);
    ck_assert_int_eq(code, 0);
}
END_TEST

START_TEST(without_memory_everything_says_so)
{
    fault_arm(FAULT_ALLOC, 1, UINT64_MAX - 1);
    ck_assert_ptr_null(loop_new());
    ck_assert_int_eq(err_last()->status, MESH_ENOMEM);
    ck_assert_ptr_null(loop_timer_start(loop, 1, 0, stop, NULL));
    ck_assert_ptr_null(loop_watch_start(loop, 0, true, false, watched, NULL));
    ck_assert_ptr_null(loop_signal_start(loop, SIGUSR1, stop, NULL));
    ck_assert_int_eq(loop_post(loop, stop, NULL), MESH_ENOMEM);
    fault_disarm(FAULT_ALLOC);
    guard = loop_timer_stop(guard);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("loop");
    TCase *t = tcase_create("loop");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, timers_fire_by_their_time);
    tcase_add_test(t, a_repeating_timer_stops_in_its_own_callback);
    tcase_add_test(t, a_stopped_timer_never_fires);
    tcase_add_test(t, posts_of_four_threads_run_in_order);
    tcase_add_test(t, a_post_after_stop_still_runs_and_one_after_the_end_is_refused);
    tcase_add_test(t, a_loop_that_never_ran_runs_its_posts_when_freed);
    tcase_add_test(t, the_loops_own_thread_takes_no_signals);
    tcase_add_test(t, a_thread_that_stops_its_own_loop_is_joined_by_free);
    tcase_add_test(t, the_callers_signal_mask_is_as_before);
    tcase_add_test(t, a_descriptor_is_watched_for_what_was_asked);
    tcase_add_test(t, the_other_ends_close_makes_a_descriptor_readable);
    tcase_add_test(t, a_descriptor_that_is_none_is_refused);
    tcase_add_test(t, a_signal_becomes_a_call);
    tcase_add_test(t, without_memory_everything_says_so);
    suite_add_tcase(s, t);
    TCase *bare = tcase_create("without a loop of its own");
    tcase_add_test(bare, without_descriptors_there_is_a_sentence_not_an_abort);
    suite_add_tcase(s, bare);
    return s;
}
