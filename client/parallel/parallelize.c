/* client/parallel/parallelize.c - applies a plan: checks every row on every module it names, then changes them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/parallel.h>

#include "base/alloc.h"
#include "base/error.h"
#include "core/scope.h"
#include "parallel/match.h"
#include "parallel/styles.h"

struct job { /* one module's part of the plan */
    mesh_module *module;
    const struct style_row *row;
    mesh_style style;
    int mesh_dim;
};
typedef VEC(struct job) job_list;

static int check_module(const struct style_row *row, mesh_module *m, const char *mesh_dim, int *ret_dim)
{
    struct parameter *weight = m->class_ == &linear_class ? module_own_parameter(m, "weight") : NULL;
    if (weight == NULL) {
        return err_set(MESH_EUNSUPPORTED, "the %s style is for linear layers; this module is a \"%s\"", row->name,
                       m->class_->name);
    }
    int d = mesh_dim_index(parameter_mesh(weight), mesh_dim);
    if (d < 0) {
        return (int)mesh_last_error()->status;
    }
    if (m->io[d].needed.kind != 0) {
        return err_set(MESH_ESTATE, "this module was parallelized on mesh dim \"%s\" before", mesh_dim);
    }
    *ret_dim = d;
    return 0;
}

static int add_jobs(mesh_module *root, const char *mesh_dim, const mesh_parallel_plan *p, job_list *jobs)
{
    module_list found = { .at = NULL };
    const struct style_row *row = style_find(&p->style);
    int r = row == NULL ? MESH_EINVAL : match_modules(root, p->module, &found);
    for (size_t i = 0; r == 0 && i < found.n; i++) {
        struct job job = { .module = found.at[i], .row = row, .style = p->style };
        r = check_module(row, job.module, mesh_dim, &job.mesh_dim);
        for (size_t j = 0; r == 0 && j < jobs->n; j++) {
            if (jobs->at[j].module == job.module) {
                r = err_set(MESH_ESTATE, "the plan names one module twice, at last as \"%s\"", p->module);
            }
        }
        struct job *at = r < 0 ? NULL : VEC_PUSH(jobs);
        if (at != NULL) {
            *at = job;
        } else if (r == 0) {
            r = err_no_memory(sizeof *at, "a parallel plan");
        }
    }
    VEC_FINI(&found);
    return r < 0 ? err_wrap(r, "\"%s\"", p->module) : 0;
}

static int lay_out(mesh_module *m, const char *name, int mesh_dim, mesh_placement wanted)
{
    struct parameter *p = module_own_parameter(m, name);
    if (p == NULL) {
        return 0; /* a layer without bias */
    }
    mesh_placements placements = *parameter_placements(p);
    placements.at[mesh_dim] = wanted;
    return parameter_lay_out(p, &placements);
}

static int run(const struct job *job)
{
    const struct style_row *row = job->row;
    int r = lay_out(job->module, "weight", job->mesh_dim, row->weight);
    r = r < 0 ? r : lay_out(job->module, "bias", job->mesh_dim, row->bias);
    if (r < 0) {
        return r;
    }
    job->module->io[job->mesh_dim] = (struct module_io){
        .input = job->style.input.kind != 0 ? job->style.input : row->input,
        .needed = row->needed,
        .output = job->style.output.kind != 0 ? job->style.output : row->output,
    };
    return 0;
}

static int apply(mesh_module *root, const char *mesh_dim, const mesh_parallel_plan *plan)
{
    job_list jobs = { .at = NULL };
    int r = 0;
    for (const mesh_parallel_plan *p = plan; r == 0 && p->module != NULL; p++) {
        r = add_jobs(root, mesh_dim, p, &jobs);
    }
    for (size_t i = 0; r == 0 && i < jobs.n; i++) {
        r = run(&jobs.at[i]);
    }
    VEC_FINI(&jobs);
    return r;
}

MESH_API int mesh_parallelize_with(mesh_module *root, const char *mesh_dim, const mesh_parallel_plan *plan)
{
    if (!scope_enter(__func__)) {
        return (int)mesh_last_error()->status;
    }
    int r =
        root == NULL || mesh_dim == NULL || plan == NULL
            ? err_set(MESH_EINVAL, "the %s is NULL", root == NULL ? "module" : (mesh_dim == NULL ? "mesh dim" : "plan"))
            : apply(root, mesh_dim, plan);
    if (r < 0) {
        scope_fail(r);
    }
    return r;
}
