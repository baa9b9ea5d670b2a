/* tests/truth/conformance_processes.c - a group of cases on ranks that are processes, linked by TCP.
 *
 *     the group's process --FOLDER/cases--> meshctl run -n RANKS -- conformance --rank FOLDER FOLDER/cases
 *                         <--FOLDER/RANK--- one outcome after the other, each written when its case has ended
 *
 * So a rank that crashes or hangs takes the outcomes of one case with it, not those before.
 * Nothing waits longer than, from the inside out: a wait between ranks, meshctl run, the group's process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/conformance.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANK_TIME_MS 20000
#define RUN_TIME     "60s"
#define WAIT_MS      90000
#define POLL_MS      2

enum { PATH_BYTES = 256, CODE_NOT_STARTED = 127 };

/* --- a rank -------------------------------------------------------------------------------------------------------- */

static void path_of_rank(const char *folder, int rank, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%d", folder, rank);
}

static int run_joined(struct group *g, const char *folder)
{
    char path[PATH_BYTES];
    path_of_rank(folder, mesh_rank(), path);
    g->file = fopen(path, "we");
    if (g->file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return MESH_EIO;
    }
    int r = group_run_rank(g);
    fclose(g->file);
    return r;
}

int processes_rank(const struct test_case *cases, int n, const char *folder)
{
    struct group g = { .cases = cases, .n = n };
    int r = mesh_init(.join_timeout_ms = RANK_TIME_MS, .timeout_ms = RANK_TIME_MS);
    if (r < 0 || n == 0) {
        mesh_perror("conformance: mesh_init");
        return EXIT_FAILURE;
    }
    int n_outcomes = n * cases[0].n_ranks;
    g.outcomes = calloc((size_t)n_outcomes, sizeof *g.outcomes);
    r = g.outcomes == NULL ? MESH_ENOMEM : run_joined(&g, folder);
    for (int i = 0; g.outcomes != NULL && i < n_outcomes; i++) {
        outcome_fini(&g.outcomes[i]);
    }
    free(g.outcomes);
    int left = mesh_finalize();
    return r < 0 || left < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- the group's process: outcomes --------------------------------------------------------------------------------- */

/* false: the rank ended before it had written all of it; then it counts as not run. */
static bool outcome_read(struct outcome *o, FILE *file)
{
    bool is_whole = fread(o, sizeof *o, 1, file) == 1 && o->n_captured >= 0 && o->n_captured <= CASE_MAX_CAPTURED;
    int n_captured = is_whole ? o->n_captured : 0;
    o->n_captured = 0;
    for (int i = 0; i < n_captured && is_whole; i++) {
        size_t bytes = (size_t)numel(o->captured[i].shape) * item_bytes(o->captured[i].dtype);
        o->captured[i].data = malloc(bytes + 1);
        o->n_captured++;
        is_whole = o->captured[i].data != NULL && fread(o->captured[i].data, 1, bytes, file) == bytes;
    }
    o->was_run = is_whole && o->was_run;
    o->status = is_whole ? o->status : 0;
    return is_whole;
}

static void read_outcomes(struct group *g, const char *folder, int rank)
{
    char path[PATH_BYTES];
    path_of_rank(folder, rank, path);
    FILE *file = fopen(path, "re");
    bool is_there = file != NULL;
    for (int i = 0; i < g->n && is_there; i++) {
        is_there = outcome_read(&g->outcomes[i * g->cases[0].n_ranks + rank], file);
    }
    if (file != NULL) {
        fclose(file);
    }
    unlink(path);
}

/* --- the group's process: ranks ------------------------------------------------------------------------------------ */

static bool write_cases(const struct group *g, const char *path)
{
    FILE *file = fopen(path, "we");
    bool is_written = file != NULL;
    for (int i = 0; i < g->n && is_written; i++) {
        is_written = fprintf(file, "%s\n", g->cases[i].line) > 0;
    }
    return file != NULL && fclose(file) == 0 && is_written;
}

/* $MESHCTL_PROGRAM, else client/ctl/meshctl of the build folder in which this program is tests/truth/conformance. */
static void find_programs(char self[PATH_MAX], char meshctl[PATH_MAX + 32])
{
    const char *named = getenv("MESHCTL_PROGRAM");
    ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
    self[n > 0 ? n : 0] = '\0';
    if (named != NULL) {
        snprintf(meshctl, PATH_MAX, "%s", named);
    } else {
        const char *slash = strrchr(self, '/');
        snprintf(meshctl, PATH_MAX + 32, "%.*s/../../client/ctl/meshctl", (int)(slash != NULL ? slash - self : 0),
                 self);
    }
}

/* The job and its meshd are the group's own. */
static void set_environment(void)
{
    static const char *const others[] = { "MESH_ADDRESS", "MESH_JOB", "MESH_RANK", "MESH_WORLD_SIZE",
                                          "XDG_RUNTIME_DIR" };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        unsetenv(others[i]);
    }
    setenv("MESH_LINK", "tcp", 1);
}

static _Noreturn void become_meshctl(int n_ranks, const char *folder, const char *cases)
{
    char self[PATH_MAX], meshctl[PATH_MAX + 32], count[16];
    find_programs(self, meshctl);
    snprintf(count, sizeof count, "%d", n_ranks);
    set_environment();
    dup2(STDERR_FILENO, STDOUT_FILENO); /* standard output is for the report */
    prctl(PR_SET_PDEATHSIG, SIGTERM);   /* it ends its ranks when it is told to */
    execl(meshctl, meshctl, "run", "-n", count, "--timeout", RUN_TIME, "--grace", "1s", "--", self, "--rank", folder,
          cases, (char *)NULL);
    fprintf(stderr, "conformance: %s: %s\n", meshctl, strerror(errno));
    _exit(CODE_NOT_STARTED);
}

/* Its wait status; killed when it is too late. */
static int wait_for(pid_t child)
{
    int status = 0;
    for (int waited_ms = 0; waited_ms < WAIT_MS; waited_ms += POLL_MS) {
        if (waitpid(child, &status, WNOHANG) != 0) {
            return status;
        }
        nanosleep(&(struct timespec){ .tv_nsec = POLL_MS * 1000000L }, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return status;
}

static void run_in_folder(struct group *g, const char *folder)
{
    char cases[PATH_BYTES];
    snprintf(cases, sizeof cases, "%s/cases", folder);
    pid_t child = write_cases(g, cases) ? fork() : -1;
    if (child == 0) {
        become_meshctl(g->cases[0].n_ranks, folder, cases);
    }
    if (child < 0) {
        snprintf(g->failure, sizeof g->failure, "no cases written or no process started: %s", strerror(errno));
    } else {
        int status = wait_for(child);
        if (status != 0) {
            snprintf(g->failure, sizeof g->failure, "meshctl run ended with %s %d",
                     WIFSIGNALED(status) ? "signal" : "code",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
    }
    unlink(cases);
}

void processes_run(struct group *g)
{
    const char *place = getenv("TMPDIR");
    char folder[PATH_BYTES - 32];
    snprintf(folder, sizeof folder, "%s/conformance-XXXXXX", place != NULL ? place : "/tmp");
    if (mkdtemp(folder) == NULL) {
        snprintf(g->failure, sizeof g->failure, "%s: %s", folder, strerror(errno));
        return;
    }
    run_in_folder(g, folder);
    for (int rank = 0; rank < g->cases[0].n_ranks; rank++) {
        read_outcomes(g, folder, rank);
    }
    rmdir(folder);
}
