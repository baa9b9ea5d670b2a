/* tests/truth/conformance.c - runs files of cases with known answers on worlds of ranks.
 *
 *     conformance [--processes N] [--sample K] FILE...
 *                              one JSON object per line; the format stands in tests/data/oracle/README.md
 *
 * Cases on the same mesh share one world, in a child process of their own: a crash or a hang is the failure of
 * one case, not the end of the run.
 *
 *     group --> child: world runs all cases, child sends verdicts in order
 *       fewer verdicts than cases, child well     a case failed and may have spoilt the world: the rest in a new child
 *       no verdict, child dead or over its time   each case of the group in a child of its own; then that case failed
 *
 * Prints each failure, then the operators that have no row, and ends with "N passed, N failed, N skipped".
 * Exit status: 0; 1 a case failed or a line does not parse; 2 usage.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/conformance.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GROUP_MAX_CASES 64
#define GROUP_TIME_MS   120000

struct skipped {
    char name[64];
    int n;
};

static struct {
    struct test_case *cases;
    int n_cases, cap;
    struct skipped *skipped;
    int n_skipped_names;
    int n_passed, n_failed, n_skipped, n_unreadable;
} all;

static struct {
    int n_processes;         /* 0: ranks are simulated; else no case may need more */
    int n_sampled;           /* 0: all cases are run */
    const char *rank_folder; /* not NULL: this process is a rank, started by conformance_processes.c */
} options;

/* --- files --------------------------------------------------------------------------------------------------------- */

static void *grown(void *items, int n, size_t item)
{
    void *more = n & (n - 1) ? items : realloc(items, (size_t)(n == 0 ? 1 : 2 * n) * item); /* at powers of two */
    if (more == NULL) {
        fprintf(stderr, "conformance: out of memory\n");
        exit(EXIT_FAILURE);
    }
    return more;
}

static void skip(const char *name)
{
    all.n_skipped++;
    for (int i = 0; i < all.n_skipped_names; i++) {
        if (strcmp(all.skipped[i].name, name) == 0) {
            all.skipped[i].n++;
            return;
        }
    }
    all.skipped = grown(all.skipped, all.n_skipped_names, sizeof *all.skipped);
    struct skipped *s = &all.skipped[all.n_skipped_names++];
    snprintf(s->name, sizeof s->name, "%s", name);
    s->n = 1;
}

static const char *read_line(const char *line)
{
    json_error_t error;
    const char *why = NULL;
    json_t *object = json_loads(line, 0, &error);
    const char *op = json_string_value(json_object_get(object, "op"));
    if (object == NULL) {
        why = "not JSON";
    } else if (op == NULL) {
        why = "there is no \"op\"";
    } else if (op_row_find(op) == NULL) {
        skip(op);
    } else {
        all.cases = grown(all.cases, all.n_cases, sizeof *all.cases);
        struct test_case *c = &all.cases[all.n_cases];
        if (case_read(object, op_row_find(op), c, &why)) {
            c->order = all.n_cases++;
            c->line = strdup(line);
        }
    }
    json_decref(object);
    return why;
}

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t\r\n")] == '\0';
}

static void read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        all.n_unreadable++;
        return;
    }
    for (int number = 1; getline(&line, &cap, file) >= 0; number++) {
        const char *why = is_blank(line) ? NULL : read_line(line);
        if (why != NULL) {
            fprintf(stderr, "%s:%d: %s\n", path, number, why);
            all.n_unreadable++;
        }
    }
    if (ferror(file)) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        all.n_unreadable++;
    }
    free(line);
    fclose(file);
}

/* --- groups, in the parent ----------------------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The next verdict; false at the end of the stream, or when the time is over. */
static bool next_verdict(int fd, int64_t deadline_ms, struct verdict *ret_verdict)
{
    size_t have = 0;
    while (have < sizeof *ret_verdict) {
        int64_t left = deadline_ms - now_ms();
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (left <= 0 || poll(&p, 1, (int)left) <= 0) {
            return false;
        }
        ssize_t n = read(fd, (char *)ret_verdict + have, sizeof *ret_verdict - have);
        if (n <= 0) {
            return false;
        }
        have += (size_t)n;
    }
    return true;
}

static void report(const struct test_case *c, const struct verdict *v)
{
    all.n_passed += v->has_passed;
    all.n_failed += !v->has_passed;
    if (!v->has_passed) {
        printf("FAILED %s: %s\n", c->id, v->why);
    }
}

/* How a child ended that did not say so itself. */
static void say_end(int wait_status, bool is_late, struct verdict *ret_verdict)
{
    ret_verdict->has_passed = false;
    if (is_late) {
        snprintf(ret_verdict->why, TEXT_BYTES, "did not end within %d s", GROUP_TIME_MS / 1000);
    } else if (WIFSIGNALED(wait_status)) {
        snprintf(ret_verdict->why, TEXT_BYTES, "the process was ended by signal %d (%s)", WTERMSIG(wait_status),
                 strsignal(WTERMSIG(wait_status)));
    } else {
        snprintf(ret_verdict->why, TEXT_BYTES, "the process ended with status %d", WEXITSTATUS(wait_status));
    }
}

static pid_t fork_child(struct group *g, int *ret_fd)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return -1;
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        exit(group_run(g, ends[1]));
    }
    close(ends[1]);
    *ret_fd = ends[0];
    return child;
}

/* Runs the cases and reports verdicts; returns how many cases are done.  0: the child died before it could say which one
 * failed, and there are several. */
static int run_group(const struct test_case *cases, int n)
{
    struct group g = { .cases = cases, .n = n, .has_processes = options.n_processes > 0 };
    struct verdict v;
    int fd = -1, n_done = 0, wait_status = 0;
    int64_t deadline = now_ms() + GROUP_TIME_MS;
    pid_t child = fork_child(&g, &fd);
    if (child < 0) {
        fprintf(stderr, "conformance: fork: %s\n", strerror(errno));
        exit(EXIT_FAILURE);
    }
    while (n_done < n && next_verdict(fd, deadline, &v)) {
        report(&cases[n_done++], &v);
    }
    bool is_late = n_done == 0 && now_ms() >= deadline;
    if (is_late) {
        kill(child, SIGKILL);
    }
    close(fd);
    waitpid(child, &wait_status, 0);
    if (n_done == 0 && n == 1) {
        say_end(wait_status, is_late, &v);
        report(&cases[n_done++], &v);
    } else if (n_done > 0 && wait_status != 0) { /* e.g. a leak found by a sanitizer at exit */
        say_end(wait_status, false, &v);
        printf("FAILED after %s: %s\n", cases[n_done - 1].id, v.why);
        all.n_failed++;
    }
    return n_done;
}

static bool has_mesh_of(const struct test_case *a, const struct test_case *b)
{
    bool are_equal = a->mesh.ndim == b->mesh.ndim;
    for (int m = 0; are_equal && m < a->mesh.ndim; m++) {
        are_equal = a->mesh.dim[m] == b->mesh.dim[m];
    }
    return are_equal;
}

static int group_end(int begin)
{
    int end = begin + 1;
    while (end < all.n_cases && end - begin < GROUP_MAX_CASES && has_mesh_of(&all.cases[begin], &all.cases[end])) {
        end++;
    }
    return end;
}

static void run_all(void)
{
    int alone_until = 0; /* cases before it run one by one */
    for (int begin = 0; begin < all.n_cases;) {
        int end = begin < alone_until ? begin + 1 : group_end(begin);
        int n_done = run_group(&all.cases[begin], end - begin);
        alone_until = n_done == 0 ? end : alone_until;
        begin += n_done;
    }
}

/* Cases on the same mesh next to each other, else in the order of the files. */
static int by_mesh(const void *a_, const void *b_)
{
    const struct test_case *a = a_, *b = b_;
    for (int m = 0; m < MESH_MAX_MESH_NDIM; m++) {
        int64_t x = m < a->mesh.ndim ? a->mesh.dim[m] : 0, y = m < b->mesh.ndim ? b->mesh.dim[m] : 0;
        if (x != y) {
            return x < y ? -1 : 1;
        }
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Keeps n of the cases, evenly over the files. */
static void sample(int n)
{
    int n_kept = 0;
    for (int i = 0; i < all.n_cases; i++) {
        bool is_kept = (int64_t)(i + 1) * n / all.n_cases > (int64_t)i * n / all.n_cases;
        if (is_kept) {
            all.cases[n_kept++] = all.cases[i];
        } else {
            case_fini(&all.cases[i]);
        }
    }
    all.n_cases = n_kept;
}

static bool has_enough_processes(void)
{
    for (int i = 0; i < all.n_cases && options.n_processes > 0; i++) {
        if (all.cases[i].n_ranks > options.n_processes) {
            fprintf(stderr, "conformance: %s needs %d ranks: --processes %d is too few\n", all.cases[i].id,
                    all.cases[i].n_ranks, options.n_processes);
            return false;
        }
    }
    return true;
}

static void sum_up(void)
{
    for (int i = 0; i < all.n_skipped_names; i++) {
        printf("no row for %s (%d case%s)\n", all.skipped[i].name, all.skipped[i].n, all.skipped[i].n == 1 ? "" : "s");
    }
    printf("%d passed, %d failed, %d skipped\n", all.n_passed, all.n_failed, all.n_skipped);
}

static void fini(void)
{
    for (int i = 0; i < all.n_cases; i++) {
        case_fini(&all.cases[i]);
    }
    free(all.cases);
    free(all.skipped);
}

/* The files are read; returns the exit status. */
static int run(void)
{
    if (options.rank_folder != NULL) {
        return processes_rank(all.cases, all.n_cases, options.rank_folder);
    }
    if (options.n_sampled > 0 && options.n_sampled < all.n_cases) {
        sample(options.n_sampled);
    }
    if (!has_enough_processes()) {
        return 2;
    }
    if (all.n_cases > 0) {
        qsort(all.cases, (size_t)all.n_cases, sizeof *all.cases, by_mesh);
    }
    run_all();
    sum_up();
    return all.n_failed > 0 || all.n_unreadable > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool read_count(const char *text, int *ret_count)
{
    char *end = NULL;
    errno = 0;
    long n = strtol(text, &end, 10);
    *ret_count = (int)n;
    return errno == 0 && end != text && *end == '\0' && n >= 1 && n <= INT_MAX;
}

/* Returns the index of the first file; 0: usage. */
static int read_options(int argc, char **argv)
{
    static const struct option names[] = {
        { "processes", required_argument, NULL, 'p' },
        { "sample", required_argument, NULL, 's' },
        { "rank", required_argument, NULL, 'r' },
        { 0 },
    };
    int letter;
    bool is_good = true;
    while (is_good && (letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (letter == 'r') {
            options.rank_folder = optarg;
        } else {
            is_good = (letter == 'p' && read_count(optarg, &options.n_processes)) ||
                      (letter == 's' && read_count(optarg, &options.n_sampled));
        }
    }
    return is_good && optind < argc ? optind : 0;
}

int main(int argc, char **argv)
{
    int first = read_options(argc, argv);
    if (first == 0) {
        fprintf(stderr,
                "usage: conformance [--processes N] [--sample K] FILE...\n"
                "  --processes N  on processes linked by TCP, at most N at once, started with meshctl run\n"
                "                 ($MESHCTL_PROGRAM, else that of the build folder); by default on simulated ranks\n"
                "  --sample K     only K of the cases, evenly over all files\n");
        return 2;
    }
    for (int i = first; i < argc; i++) {
        read_file(argv[i]);
    }
    int status = run();
    fini();
    return status;
}
