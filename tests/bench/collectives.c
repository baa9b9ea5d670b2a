/* tests/bench/collectives.c - how long our collectives take, in the rows of rows.h.
 *
 *   meshctl run -n N -- collectives [OPTIONS]                     N processes, linked as MESH_LINK says
 *   collectives --ranks N [--link sim|unix|tcp] [OPTIONS]         N threads of this process: for profiles, not for comparisons
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/mesh.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"
#include "ctl/bench_calls.h"
#include "rows.h"

struct options {
    struct rows rows;
    int n_ranks; /* 0: this process is one rank of a job */
    enum link_kind link;
    const char *mode;
};

static int run_rank(void *arg)
{
    const struct options *o = arg;
    struct bench_library library = bench_own_library(o->mode);
    return rows_run(&o->rows, &library);
}

static int run_process(struct options *o)
{
    int r = mesh_init();
    r = r < 0 ? r : run_rank(o);
    int left = r < 0 ? 0 : mesh_finalize();
    return r < 0 ? r : left;
}

static bool read_link(struct options *o, const char *name)
{
    static const char *const names[] = { [LINK_SIM] = "sim", [LINK_TCP] = "tcp", [LINK_UNIX] = "unix" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i] != NULL && strcmp(names[i], name) == 0) {
            o->link = (enum link_kind)i;
            o->mode = names[i];
            return true;
        }
    }
    return false;
}

static bool read_option(struct options *o, const char *name, const char *value)
{
    if (strcmp(name, "--ranks") == 0) {
        o->n_ranks = atoi(value);
        return o->n_ranks > 0;
    }
    return strcmp(name, "--link") == 0 ? read_link(o, value) : rows_option(&o->rows, name, value);
}

int main(int argc, char **argv)
{
    const char *link = getenv("MESH_LINK");
    struct options o = { .link = LINK_UNIX, .mode = link != NULL ? link : "auto" };
    rows_init(&o.rows);
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc || !read_option(&o, argv[i], argv[i + 1])) {
            (void)fprintf(stderr, "usage: collectives [--ranks N] [--link sim|unix|tcp] " ROWS_OPTIONS "\n");
            return 2;
        }
    }
    int r = o.n_ranks > 0 ? world_run_linked(o.n_ranks, o.link, 0, run_rank, &o) : run_process(&o);
    if (r != 0) {
        mesh_perror("collectives");
    }
    return r != 0;
}
