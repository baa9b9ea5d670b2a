/* tests/truth/conformance_group.c - runs a group of cases in one world, in the group's own process, and sends the verdicts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "truth/conformance.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_run_well(const struct outcome *o)
{
    return o->was_run && o->status == 0;
}

/* Pointers in it mean nothing to the reader, who finds the data behind it. */
static bool outcome_write(const struct outcome *o, FILE *file)
{
    bool is_written = fwrite(o, sizeof *o, 1, file) == 1;
    for (int i = 0; i < o->n_captured; i++) {
        const struct captured *c = &o->captured[i];
        size_t bytes = (size_t)numel(c->shape) * item_bytes(c->dtype);
        is_written = is_written && fwrite(c->data, 1, bytes, file) == bytes;
    }
    return fflush(file) == 0 && is_written;
}

int group_run_rank(struct group *g)
{
    int rank = mesh_rank(), n_ranks = g->cases[0].n_ranks;
    mesh_device_mesh *mesh = mesh_init_device_mesh("cpu", g->cases[0].mesh, NULL);
    if (mesh == NULL) {
        return (int)mesh_last_error()->status;
    }
    for (int i = 0; i < g->n; i++) {
        struct outcome *o = &g->outcomes[i * n_ranks + rank];
        bool is_supported = g->cases[i].unsupported[0] == '\0';
        if (is_supported) {
            case_run(&g->cases[i], mesh, rank, o);
        }
        if (g->file != NULL && !outcome_write(o, g->file)) {
            return MESH_EIO;
        }
        if (is_supported && !has_run_well(o)) {
            return o->status;
        }
    }
    return 0;
}

static int run_simulated(void *g)
{
    return group_run_rank(g);
}

static void run_world(struct group *g)
{
    if (g->has_processes) {
        processes_run(g);
        return;
    }
    int r = mesh_world_run(g->cases[0].n_ranks, run_simulated, g);
    if (r < 0) {
        snprintf(g->failure, sizeof g->failure, "%s", mesh_status_name((mesh_status)r));
    }
}

static bool all_ranks_ran_well(const struct group *g, int i)
{
    int n_ranks = g->cases[0].n_ranks;
    bool is_well = true;
    for (int rank = 0; rank < n_ranks; rank++) {
        is_well = is_well && has_run_well(&g->outcomes[i * n_ranks + rank]);
    }
    return is_well || g->cases[i].unsupported[0] != '\0';
}

/* Whether a rank can say itself what happened. */
static bool has_sentence(const struct group *g, int i)
{
    int n_ranks = g->cases[0].n_ranks;
    bool has_one = false;
    for (int rank = 0; rank < n_ranks; rank++) {
        has_one = has_one || g->outcomes[i * n_ranks + rank].status < 0;
    }
    return has_one;
}

static int send_verdicts(const struct group *g, int fd)
{
    int n_ranks = g->cases[0].n_ranks;
    for (int i = 0; i < g->n; i++) {
        struct verdict v = { 0 };
        v.has_passed = case_check(&g->cases[i], &g->outcomes[i * n_ranks], v.why);
        bool is_world_well = all_ranks_ran_well(g, i);
        if (!is_world_well && g->failure[0] != '\0' && !has_sentence(g, i)) {
            size_t length = strlen(v.why);
            snprintf(v.why + length, sizeof v.why - length, ": %s", g->failure);
        }
        if (write(fd, &v, sizeof v) != (ssize_t)sizeof v) {
            return EXIT_FAILURE;
        }
        if (!is_world_well) {
            return EXIT_SUCCESS;
        }
    }
    return g->failure[0] == '\0' ? EXIT_SUCCESS : EXIT_FAILURE;
}

int group_run(struct group *g, int fd)
{
    int n_outcomes = g->n * g->cases[0].n_ranks;
    g->outcomes = calloc((size_t)n_outcomes, sizeof *g->outcomes);
    if (g->outcomes == NULL) {
        return EXIT_FAILURE;
    }
    run_world(g);
    int status = send_verdicts(g, fd);
    for (int i = 0; i < n_outcomes; i++) {
        outcome_fini(&g->outcomes[i]);
    }
    free(g->outcomes);
    return status;
}
