/* client/ctl/run_output.h - carries what the ranks write to our own standard output and standard error.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_RUN_OUTPUT_H
#define CTL_RUN_OUTPUT_H

#include "ctl/lines.h"
#include "wire/loop.h"

struct run_output;

struct run_output_options {
    struct loop *loop;
    int n_ranks;
    bool is_tagged;    /* lines begin with "[rank] " */
    bool has_color[2]; /* on standard output, standard error */
    loop_fn broken;    /* our standard output takes nothing any more; called once */
    loop_fn ended;     /* the last of the ranks' streams has ended; called once */
    void *arg;
};

struct run_output *run_output_new(const struct run_output_options *options); /* NULL: error set */
/* Takes the two descriptors (standard output, standard error), non-blocking. */
int run_output_add(struct run_output *o, int rank, const int fds[2]);
bool run_output_has_ended(const struct run_output *o);
struct run_output *run_output_free(
    struct run_output *o); /* writes what is held; while the loop is there; returns NULL */

#endif
