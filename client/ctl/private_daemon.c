/* client/ctl/private_daemon.c - finds, starts and ends a meshd of our own.
 *
 * meshd is looked for beside meshctl, in the daemon/ folder of a build tree that meshctl is in, in ../sbin, in PATH.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/private_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "ctl/launch.h"
#include "ctl/run_folder.h"

#define READY_TIMEOUT_MS 10000
#define STOP_TIMEOUT_MS  3000

static int find_meshd(char *path, size_t cap)
{
    static const char *const beside[] = { "meshd", "../../daemon/meshd", "../sbin/meshd" };
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = NULL;
    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    for (size_t i = 0; i < ARRAY_SIZE(beside) && slash != NULL; i++) {
        int len = snprintf(path, cap, "%.*s/%s", (int)(slash - self), self, beside[i]);
        if (len > 0 && (size_t)len < cap && access(path, X_OK) == 0) {
            return 0;
        }
    }
    if (program_find("meshd", path, cap) == 0) {
        return 0;
    }
    return err_set(MESH_EDAEMON,
                   "no meshd runs here and the program 'meshd' was not found beside meshctl or in PATH, so "
                   "that none can be started");
}

/* Its log goes to a file, from which we quote when it does not start. */
static int open_log(const char *folder)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/log", folder);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void last_log_line(const char *folder, char *line, size_t cap)
{
    char path[128];
    char text[256];
    FILE *log = NULL;
    line[0] = '\0';
    (void)snprintf(path, sizeof path, "%s/log", folder);
    log = fopen(path, "re");
    while (log != NULL && fgets(text, sizeof text, log) != NULL) {
        (void)snprintf(line, cap, "%.*s", (int)strcspn(text, "\n"), text);
    }
    if (log != NULL) {
        (void)fclose(log);
    }
}

static _Noreturn void run_child(const struct private_daemon *d, const char *meshd, int ready_fd, int life_fd,
                                int log_fd)
{
    char ready[12], life[12];
    sigset_t none;
    char *const argv[] = { (char *)"meshd",
                           (char *)"--socket",
                           (char *)d->address.path,
                           (char *)"--ready-fd",
                           ready,
                           (char *)"--life-fd",
                           life,
                           NULL };
    (void)snprintf(ready, sizeof ready, "%d", ready_fd);
    (void)snprintf(life, sizeof life, "%d", life_fd);
    (void)setpgid(0, 0); /* Ctrl-C is for the job, not for its daemon */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    bool is_ready = input >= 0 && dup2(input, STDIN_FILENO) >= 0 && dup2(log_fd, STDERR_FILENO) >= 0 &&
                    dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 && fcntl(ready_fd, F_SETFD, 0) == 0 &&
                    fcntl(life_fd, F_SETFD, 0) == 0;
    if (is_ready) {
        (void)execv(meshd, argv);
    }
    _exit(127);
}

/* It writes a line when it listens; the pipe closes without one when it has ended. */
static bool wait_until_ready(int fd)
{
    int64_t deadline_ms = deadline_in(READY_TIMEOUT_MS);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char byte = 0;
    while (deadline_left(deadline_ms) > 0) {
        if (poll(&p, 1, (int)deadline_left(deadline_ms)) > 0) {
            return read(fd, &byte, 1) == 1;
        }
    }
    return false;
}

static void close_both(int fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
            fds[i] = -1;
        }
    }
}

static int start_process(struct private_daemon *d, const char *meshd, const char *folder, bool shows_log)
{
    int ready[2] = { -1, -1 }, life[2] = { -1, -1 };
    int log_fd = shows_log ? STDERR_FILENO : open_log(folder);
    if (log_fd >= 0 && pipe2(ready, O_CLOEXEC) == 0 && pipe2(life, O_CLOEXEC) == 0) {
        d->pid = fork();
    } else {
        d->pid = -1;
    }
    if (d->pid == 0) {
        run_child(d, meshd, ready[1], life[0], log_fd);
    }
    int r = d->pid > 0 ? 0 : err_set(MESH_EIO, "a private meshd cannot be started: %s", strerror(errno));
    if (log_fd >= 0 && !shows_log) {
        (void)close(log_fd);
    }
    if (r == 0) {
        (void)setpgid(d->pid, d->pid);
        (void)close(ready[1]);
        ready[1] = -1;
        d->life_fd = life[1];
        life[1] = -1;
        if (!wait_until_ready(ready[0])) {
            char line[160];
            last_log_line(folder, line, sizeof line);
            r = err_set(MESH_EDAEMON, "the private meshd (%.100s) did not start: %s", meshd,
                        line[0] != '\0' ? line : "it said nothing");
        }
    }
    close_both(ready);
    close_both(life);
    return r;
}

int private_daemon_start(struct private_daemon *ret_daemon, const char *folder, bool shows_log)
{
    struct private_daemon d = { .life_fd = -1, .address = { .is_unix = true } };
    char meshd[PATH_MAX];
    int n = snprintf(d.address.path, sizeof d.address.path, "%s/" RUN_SOCKET, folder);
    int r = n > 0 && (size_t)n < sizeof d.address.path ? 0 : err_set(MESH_ERANGE, "%.120s: too long a path", folder);
    r = r == 0 ? find_meshd(meshd, sizeof meshd) : r;
    r = r == 0 ? start_process(&d, meshd, folder, shows_log) : r;
    if (r != 0) {
        mesh_error why = *mesh_last_error();
        private_daemon_stop(&d);
        return err_restore(&why);
    }
    *ret_daemon = d;
    return 0;
}

static bool has_ended_within(pid_t pid, int64_t timeout_ms)
{
    int64_t deadline_ms = deadline_in(timeout_ms);
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        struct timespec pause = { .tv_nsec = 2000000 };
        if (deadline_left(deadline_ms) == 0) {
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

void private_daemon_stop(struct private_daemon *d)
{
    if (d->pid > 0) {
        (void)kill(d->pid, SIGTERM);
        if (!has_ended_within(d->pid, STOP_TIMEOUT_MS)) {
            (void)kill(d->pid, SIGKILL);
            (void)has_ended_within(d->pid, STOP_TIMEOUT_MS);
        }
        d->pid = 0;
    }
    if (d->life_fd >= 0) { /* after it: to meshd its end means that we were killed */
        (void)close(d->life_fd);
        d->life_fd = -1;
    }
}
