/* client/ctl/run_job.h - the ranks of a job, started and watched until the last one has ended.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_RUN_JOB_H
#define CTL_RUN_JOB_H

#include "ctl/launch.h"
#include "ctl/run_create.h"
#include "ctl/supervise.h"

struct run_job_options {
    struct launch launch; /* job, address and folder are filled in when they are known */
    struct run_create_options create;
    struct supervise_limits limits;
    bool has_color[2]; /* tags in colour on standard output, standard error */
    bool is_verbose;   /* say how each rank ended */
};

/* Returns the exit code of `meshctl run`; no process of the job is left. */
int run_job(const struct run_job_options *options);

#endif
