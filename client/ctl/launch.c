/* client/ctl/launch.c - fork, environment, exec of one rank.
 *
 * The child reports what went wrong before or in exec through a pipe that exec closes: an empty pipe means that it
 * runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ctl/launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "ctl/exit_codes.h"

/* Finding ---------------------------------------------------------------------------------------------------------- */

static int check_program(const char *name, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        (void)err_set(MESH_ENOTFOUND, "the program '%.120s' was not found (%s)", name, strerror(errno));
        return errno == EACCES ? EXIT_CANNOT_EXECUTE : EXIT_PROGRAM_NOT_FOUND;
    }
    if (S_ISDIR(st.st_mode)) {
        (void)err_set(MESH_EINVAL, "'%.120s' is a folder, not a program", name);
        return EXIT_CANNOT_EXECUTE;
    }
    if (access(path, X_OK) != 0) {
        (void)err_set(MESH_EAUTH, "'%.120s' is not executable: try 'chmod +x %.100s'", name, path);
        return EXIT_CANNOT_EXECUTE;
    }
    return EXIT_OK;
}

static bool join_path(char *buf, size_t cap, const char *folder, size_t folder_len, const char *name)
{
    int n = folder_len > 0 ? snprintf(buf, cap, "%.*s/%s", (int)folder_len, folder, name)
                           : snprintf(buf, cap, "./%s", name);
    return n > 0 && (size_t)n < cap;
}

int program_find(const char *name, char *ret_path, size_t cap)
{
    int code = EXIT_PROGRAM_NOT_FOUND;
    if (strchr(name, '/') != NULL) {
        int n = snprintf(ret_path, cap, "%s", name);
        return n >= 0 && (size_t)n < cap ? check_program(name, ret_path) : EXIT_PROGRAM_NOT_FOUND;
    }
    const char *path = getenv("PATH");
    path = path != NULL ? path : "/usr/local/bin:/usr/bin:/bin";
    for (const char *at = path; name[0] != '\0';) {
        size_t len = strcspn(at, ":");
        struct stat st;
        if (join_path(ret_path, cap, at, len, name) && stat(ret_path, &st) == 0) {
            code = check_program(name, ret_path);
            if (code == EXIT_OK) {
                return EXIT_OK;
            }
        }
        if (at[len] == '\0') {
            break;
        }
        at += len + 1;
    }
    if (code == EXIT_PROGRAM_NOT_FOUND) {
        (void)err_set(MESH_ENOTFOUND, "the program '%.120s' was not found in PATH; one in this folder is './%.60s'",
                      name, name);
    }
    return code;
}

struct rlimit launch_raise_limit(void)
{
    struct rlimit before = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
    if (getrlimit(RLIMIT_NOFILE, &before) == 0 && before.rlim_cur < before.rlim_max) {
        struct rlimit raised = { .rlim_cur = before.rlim_max, .rlim_max = before.rlim_max };
        (void)setrlimit(RLIMIT_NOFILE, &raised); /* refused: fewer ranks can be started, which is said then */
    }
    return before;
}

int free_port(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    int port = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
        getsockname(fd, (struct sockaddr *)&a, &len) == 0) {
        port = ntohs(a.sin_port);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return port;
}

/* The child -------------------------------------------------------------------------------------------------------- */

enum source { FROM_ADDRESS, FROM_JOB, FROM_FOLDER, FROM_RANK, FROM_SIZE, FROM_PORT, FROM_TAG, FROM_TEXT };

/* clang-format off */
static const struct {
    const char *name;
    enum source source;
    const char *text;
    bool        is_default; /* only when not set */
} environment[] = {
    { "MESH_ADDRESS",          FROM_ADDRESS, NULL, false },
    { "MESH_JOB",              FROM_JOB,     NULL, false },
    { "MESH_RUN_DIR",          FROM_FOLDER,  NULL, false },
    { "MESH_RANK",             FROM_RANK,    NULL, false },
    { "MESH_WORLD_SIZE",       FROM_SIZE,    NULL, false },
    { "MESH_LOCAL_RANK",       FROM_RANK,    NULL, false },
    { "MESH_LOCAL_WORLD_SIZE", FROM_SIZE,    NULL, false },
    { "MESH_NODE_RANK",        FROM_TEXT,    "0",  false },
    { "MESH_NNODES",           FROM_TEXT,    "1",  false },
    { "MESH_TAGGED",           FROM_TAG,     NULL, false },
    { "RANK",                  FROM_RANK,    NULL, false },
    { "WORLD_SIZE",            FROM_SIZE,    NULL, false },
    { "LOCAL_RANK",            FROM_RANK,    NULL, false },
    { "LOCAL_WORLD_SIZE",      FROM_SIZE,    NULL, false },
    { "GROUP_RANK",            FROM_TEXT,    "0",  false },
    { "MASTER_ADDR",           FROM_TEXT,    "127.0.0.1", false },
    { "MASTER_PORT",           FROM_PORT,    NULL, false },
    { "OPENBLAS_NUM_THREADS",  FROM_TEXT,    "1",  true },
    { "OMP_NUM_THREADS",       FROM_TEXT,    "1",  true },
};
/* clang-format on */

bool launch_sets(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_SIZE(environment); i++) {
        const char *ours = environment[i].name;
        if (!environment[i].is_default && strlen(ours) == len && memcmp(ours, name, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool set_environment(const struct launch *l, int rank)
{
    bool is_set = true;
    for (size_t i = 0; i < l->environment->n; i++) {
        char name[256];
        const char *equals = strchr(l->environment->at[i], '=');
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - l->environment->at[i]), l->environment->at[i]);
        is_set = is_set && setenv(name, equals + 1, 1) == 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(environment); i++) {
        char number[16];
        const char *text = number;
        int n = 0;
        switch (environment[i].source) {
        case FROM_ADDRESS:
            text = l->address;
            break;
        case FROM_JOB:
            text = l->job;
            break;
        case FROM_FOLDER:
            text = l->folder;
            break;
        case FROM_TAG:
            text = l->is_tagged ? "1" : "";
            break;
        case FROM_TEXT:
            text = environment[i].text;
            break;
        case FROM_RANK:
            n = rank;
            break;
        case FROM_SIZE:
            n = l->n_ranks;
            break;
        case FROM_PORT:
            n = l->master_port;
            break;
        }
        (void)snprintf(number, sizeof number, "%d", n);
        is_set = is_set && setenv(environment[i].name, text, !environment[i].is_default) == 0;
    }
    return is_set;
}

static void reset_signals(void)
{
    sigset_t none;
    for (int n = 1; n < NSIG; n++) {
        (void)signal(n, SIG_DFL); /* fails for KILL, STOP and those the C library keeps: as it should */
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

struct child_pipes {
    int output[2][2]; /* standard output, standard error; [0] read by us */
    int failure[2];   /* errno of what went wrong */
};

static _Noreturn void run_child(const struct launch *l, int rank, const struct child_pipes *p, pid_t parent)
{
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)setpgid(0, 0);
    (void)setrlimit(RLIMIT_NOFILE, &l->files);
    bool is_ready = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && set_environment(l, rank) &&
                    input >= 0 && dup2(input, STDIN_FILENO) >= 0 && dup2(p->output[0][1], STDOUT_FILENO) >= 0 &&
                    dup2(p->output[1][1], STDERR_FILENO) >= 0;
    reset_signals();
    if (is_ready) {
        (void)execv(l->path, l->argv);
    }
    int why = errno;
    ssize_t written = write(p->failure[1], &why, sizeof why);
    _exit(written > 0 ? EXIT_CANNOT_EXECUTE : EXIT_LAUNCHER);
}

/* The parent ------------------------------------------------------------------------------------------------------- */

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static bool open_pipes(struct child_pipes *p)
{
    bool is_open = true;
    *p = (struct child_pipes){ .output = { { -1, -1 }, { -1, -1 } }, .failure = { -1, -1 } };
    for (int i = 0; i < 2 && is_open; i++) {
        is_open = pipe2(p->output[i], O_CLOEXEC) == 0 && fcntl(p->output[i][0], F_SETFL, O_NONBLOCK) == 0;
    }
    return is_open && pipe2(p->failure, O_CLOEXEC) == 0;
}

static void close_pipes(struct child_pipes *p, bool keep_ours)
{
    for (int i = 0; i < 2; i++) {
        close_fd(&p->output[i][1]);
        if (!keep_ours) {
            close_fd(&p->output[i][0]);
        }
    }
    close_fd(&p->failure[0]);
    close_fd(&p->failure[1]);
}

/* errno of the child's failure; 0: it runs.  Ends when exec closes the pipe, or the child is gone. */
static int wait_for_exec(struct child_pipes *p)
{
    int why = 0;
    ssize_t n = 0;
    close_fd(&p->failure[1]);
    do {
        n = read(p->failure[0], &why, sizeof why);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof why ? (why != 0 ? why : ECHILD) : 0;
}

int launch_rank(const struct launch *l, int rank, struct rank_process *ret_process)
{
    struct child_pipes p;
    pid_t parent = getpid();
    pid_t pid = open_pipes(&p) ? fork() : -1;
    if (pid < 0) {
        (void)err_set(MESH_EIO, "rank %d cannot be started: %s", rank, strerror(errno));
        close_pipes(&p, false);
        return EXIT_LAUNCHER;
    }
    if (pid == 0) {
        run_child(l, rank, &p, parent);
    }
    (void)setpgid(pid, pid); /* the child does so too: whoever comes first */
    int why = wait_for_exec(&p);
    close_pipes(&p, why == 0);
    if (why != 0) {
        (void)err_set(MESH_EIO, "'%.120s' cannot be executed: %s", l->argv[0], strerror(why));
        return why == ENOENT ? EXIT_PROGRAM_NOT_FOUND : EXIT_CANNOT_EXECUTE;
    }
    *ret_process = (struct rank_process){ .pid = pid, .output = { p.output[0][0], p.output[1][0] } };
    return EXIT_OK;
}
