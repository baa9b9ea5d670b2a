/* tests/cases/case_processes.c - the rows of a file of cases on this process as one rank of a job: meshctl run -n 4 -- PROGRAM.
 *
 * Rows for another number of ranks are passed over.  Rank 0 ends with "N passed, N failed".
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "case_list.h"

enum { TIME_MS = 20000 };

static int run_rows(void)
{
    int n_run = 0;
    for (int i = 0; i < cases.n; i++) {
        const struct case_row *row = &cases.rows[i];
        if (row->n_ranks != 0 && row->n_ranks != mesh_world_size()) {
            continue;
        }
        if (row->on(NULL) < 0) {
            fprintf(stderr, "%s: %s\n", row->name, ranks_complaint());
            printf("%d passed, 1 failed\n", n_run);
            return -1;
        }
        n_run++;
    }
    if (mesh_rank() == 0) {
        printf("%d passed, 0 failed\n", n_run);
    }
    return n_run > 0 ? 0 : -1;
}

int main(void)
{
    if (mesh_init(.join_timeout_ms = TIME_MS, .timeout_ms = TIME_MS) < 0) {
        mesh_perror("mesh_init");
        return EXIT_FAILURE;
    }
    int r = run_rows();
    int left = mesh_finalize();
    if (left < 0) {
        mesh_perror("mesh_finalize");
    }
    return r < 0 || left < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
