/* tests/harness/procs.c - fork, pipes, poll and wait for programs under test.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/procs.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_TIMEOUT_MS 20000
#define STOP_TIMEOUT_MS  10000

int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

const char *program_path(const char *variable)
{
    const char *path = getenv(variable);
    ck_assert_msg(path != NULL, "%s is not set: run the tests through meson", variable);
    return path;
}

/* Starting ----------------------------------------------------------------------------------------------------------- */

static void change_environment(const char *const *changes)
{
    for (size_t i = 0; changes != NULL && changes[i] != NULL; i++) {
        const char *equals = strchr(changes[i], '=');
        char name[128];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(changes[i], "="), changes[i]);
        if (equals != NULL) {
            (void)setenv(name, equals + 1, 1);
        } else {
            (void)unsetenv(name);
        }
    }
}

/* Check handles these by ending the whole test, which a child must not do before it has become another program. */
static sigset_t ending_signals(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    return set;
}

static _Noreturn void run_child(const struct proc_options *o, int input_fd, int out_fd, int err_fd)
{
    sigset_t ending = ending_signals();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    (void)sigprocmask(SIG_UNBLOCK, &ending, NULL);
    change_environment(o->environment);
    bool is_ready = dup2(input_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0 &&
                    dup2(err_fd, STDERR_FILENO) >= 0 && (o->folder == NULL || chdir(o->folder) == 0);
    if (is_ready) {
        (void)execvp(o->argv[0], (char *const *)o->argv);
    }
    (void)dprintf(STDERR_FILENO, "harness: cannot start %s: %s\n", o->argv[0], strerror(errno));
    _exit(127);
}

static void capture_init(struct capture *c, int fd)
{
    *c = (struct capture){ .fd = fd, .text = calloc(1, 1), .cap = 1 };
    ck_assert_ptr_nonnull(c->text);
    ck_assert_int_ge(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

void proc_start(struct proc *p, const struct proc_options *o)
{
    int out[2], err[2], in[2] = { -1, -1 };
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
    sigset_t ending = ending_signals();
    (void)sigprocmask(SIG_BLOCK, &ending, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        run_child(o, in[0], out[1], err[1]);
    }
    (void)sigprocmask(SIG_UNBLOCK, &ending, NULL);
    ck_assert_int_ge(pid, 0);
    (void)close(in[0]);
    (void)close(out[1]);
    (void)close(err[1]);
    *p = (struct proc){ .pid = pid, .input_fd = in[1] };
    if (!o->has_input) {
        (void)close(in[1]);
        p->input_fd = -1;
    }
    capture_init(&p->out, out[0]);
    capture_init(&p->err, err[0]);
}

/* Watching ----------------------------------------------------------------------------------------------------------- */

static void capture_read(struct capture *c)
{
    char chunk[16384];
    ssize_t n = read(c->fd, chunk, sizeof chunk);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        (void)close(c->fd);
        c->fd = -1;
        return;
    }
    ck_assert_msg(c->len + (size_t)n < PROC_MAX_OUTPUT, "a program under test writes without end");
    if (c->len + (size_t)n + 1 > c->cap) {
        c->cap = 2 * (c->len + (size_t)n + 1);
        c->text = realloc(c->text, c->cap);
        ck_assert_ptr_nonnull(c->text);
    }
    memcpy(c->text + c->len, chunk, (size_t)n);
    c->len += (size_t)n;
    c->text[c->len] = '\0';
}

static void reap(struct proc *p)
{
    int status = 0;
    if (!p->has_ended && waitpid(p->pid, &status, WNOHANG) == p->pid) {
        p->has_ended = true;
        p->wait_status = status;
    }
}

/* Waits for output or 5 ms, whichever comes first; then looks whether the process has ended. */
static void pump(struct proc *p)
{
    struct pollfd fds[2] = { { .fd = p->out.fd, .events = POLLIN }, { .fd = p->err.fd, .events = POLLIN } };
    struct capture *captures[2] = { &p->out, &p->err };
    (void)poll(fds, 2, 5);
    for (int i = 0; i < 2; i++) {
        if (captures[i]->fd >= 0 && fds[i].revents != 0) {
            capture_read(captures[i]);
        }
    }
    reap(p);
}

/* After the end of the process: what is in the pipes, but not what its own children may still write. */
static void drain(struct proc *p)
{
    struct capture *captures[2] = { &p->out, &p->err };
    for (int i = 0; i < 2; i++) {
        size_t before = SIZE_MAX;
        while (captures[i]->fd >= 0 && captures[i]->len != before) {
            before = captures[i]->len;
            capture_read(captures[i]);
        }
    }
}

bool proc_wait(struct proc *p, int64_t timeout_ms)
{
    int64_t end_ms = now_ms() + timeout_ms;
    while (!p->has_ended && now_ms() < end_ms) {
        pump(p);
    }
    if (p->has_ended) {
        drain(p);
    }
    return p->has_ended;
}

bool proc_wait_text(struct proc *p, const char *text, int64_t timeout_ms)
{
    int64_t end_ms = now_ms() + timeout_ms;
    for (;;) {
        if (strstr(p->out.text, text) != NULL || strstr(p->err.text, text) != NULL) {
            return true;
        }
        if (p->has_ended || now_ms() >= end_ms) {
            return false;
        }
        pump(p);
        if (p->has_ended) {
            drain(p);
        }
    }
}

void proc_signal(struct proc *p, int signal_number)
{
    if (!p->has_ended) {
        ck_assert_int_eq(kill(p->pid, signal_number), 0);
    }
}

int proc_code(const struct proc *p)
{
    ck_assert(p->has_ended);
    return WIFSIGNALED(p->wait_status) ? 128 + WTERMSIG(p->wait_status) : WEXITSTATUS(p->wait_status);
}

static void capture_fini(struct capture *c)
{
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    free(c->text);
    *c = (struct capture){ .fd = -1 };
}

void proc_fini(struct proc *p)
{
    if (p->pid > 0 && !p->has_ended) {
        (void)kill(p->pid, SIGKILL);
        (void)waitpid(p->pid, &p->wait_status, 0);
    }
    if (p->pid > 0) {
        capture_fini(&p->out);
        capture_fini(&p->err);
    }
    if (p->pid > 0 && p->input_fd >= 0) {
        (void)close(p->input_fd);
    }
    *p = (struct proc){ .input_fd = -1 };
}

void proc_run(struct proc *p, const struct proc_options *o, int64_t timeout_ms)
{
    proc_start(p, o);
    bool has_ended = proc_wait(p, timeout_ms);
    ck_assert_msg(has_ended, "%s has not ended after %lld ms; it said:\n%.3000s%.3000s", o->argv[0],
                  (long long)timeout_ms, p->out.text, p->err.text);
}

char process_state(pid_t pid)
{
    char path[64], line[512], state = 'X';
    FILE *file = NULL;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return 'X';
    }
    const char *text = fgets(line, sizeof line, file);
    const char *after = text != NULL ? strrchr(text, ')') : NULL;
    if (after != NULL && after[1] == ' ') {
        state = after[2];
    }
    (void)fclose(file);
    return state;
}

bool process_exists(pid_t pid)
{
    char state = process_state(pid);
    return state != 'X' && state != 'Z';
}

/* Folders and daemons ------------------------------------------------------------------------------------------------ */

void temp_folder_make(char *path, size_t cap)
{
    const char *parent = getenv("TMPDIR");
    /* A socket's path has at most 107 bytes. */
    parent = parent != NULL && parent[0] == '/' && strlen(parent) < 40 ? parent : "/tmp";
    (void)snprintf(path, cap, "%s/meshd-test-XXXXXX", parent);
    ck_assert_ptr_nonnull(mkdtemp(path));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st, (void)type, (void)where;
    (void)remove(path);
    return 0;
}

void temp_folder_remove(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void test_daemon_start(struct test_daemon *d)
{
    char socket[128];
    temp_folder_make(d->folder, sizeof d->folder);
    (void)snprintf(socket, sizeof socket, "%s/meshd.sock", d->folder);
    (void)snprintf(d->address, sizeof d->address, "unix:%.100s", socket);
    proc_start(&d->proc, &(struct proc_options){
                             .argv = (const char *[]){ program_path("MESHD_PROGRAM"), "--socket", socket, "--ready-fd",
                                                       "1", NULL },
                         });
    ck_assert_msg(proc_wait_text(&d->proc, "meshd.sock\n", START_TIMEOUT_MS), "meshd did not start: %.3000s",
                  d->proc.err.text);
}

void test_daemon_stop(struct test_daemon *d)
{
    if (d->proc.pid > 0) {
        proc_signal(&d->proc, SIGTERM);
        ck_assert_msg(proc_wait(&d->proc, STOP_TIMEOUT_MS), "meshd did not end on SIGTERM: %.3000s", d->proc.err.text);
        ck_assert_msg(proc_code(&d->proc) == 0, "meshd ended with %d: %.3000s", proc_code(&d->proc), d->proc.err.text);
        proc_fini(&d->proc);
    }
    temp_folder_remove(d->folder);
}
