/* client/parallel/parallelize.c - applies a plan: checks every row on every module it names, then changes them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <mesh/parallel.h>

#include <string.h>

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

/* A module without parameters (dropout) is taken to live where those around it do. */
static mesh_device_mesh *mesh_of(mesh_module *root, mesh_module *m)
{
    mesh_module *owner = NULL;
    struct parameter *p = module_tree_parameter(m, 0, &owner);
    p = p != NULL ? p : module_tree_parameter(root, 0, &owner);
    if (p == NULL) {
        err_set(MESH_EINVAL, "no module below the root has a parameter, so its mesh is not known");
        return NULL;
    }
    return parameter_mesh(p);
}

static int check_module(mesh_module *root, mesh_module *m, const char *mesh_dim, int *ret_dim)
{
    mesh_device_mesh *mesh = mesh_of(root, m);
    int d = mesh == NULL ? -1 : mesh_dim_index(mesh, mesh_dim);
    if (d < 0) {
        return err_status();
    }
    if (m->io[d].needed.kind != 0 || m->io[d].output.kind != 0) {
        return err_set(MESH_ESTATE, "this module was parallelized on mesh dim \"%s\" before", mesh_dim);
    }
    *ret_dim = d;
    return 0;
}

static int add_jobs(mesh_module *root, const char *mesh_dim, const mesh_parallel_plan *p, job_list *jobs)
{
    module_list found = { .at = NULL };
    int r = match_modules(root, p->module, &found);
    for (size_t i = 0; r == 0 && i < found.n; i++) {
        struct job job = { .module = found.at[i], .row = style_find(&p->style, found.at[i]), .style = p->style };
        r = job.row == NULL ? err_status() : check_module(root, job.module, mesh_dim, &job.mesh_dim);
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

static int lay_out(struct parameter *p, int mesh_dim, mesh_placement wanted)
{
    if (wanted.kind == 0) {
        return 0;
    }
    mesh_placements placements = *parameter_placements(p);
    placements.at[mesh_dim] = wanted;
    return parameter_lay_out(p, &placements);
}

/* Parameters other than a bias are laid out like the weight: the sequence style's modules may have any. */
static int run(const struct job *job)
{
    mesh_module *m = job->module;
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->parameters.n; i++) {
        struct parameter *p = &m->parameters.at[i];
        r = lay_out(p, job->mesh_dim, strcmp(p->name, "bias") == 0 ? job->row->bias : job->row->weight);
    }
    if (r == 0) {
        m->io[job->mesh_dim] = style_io(job->row, &job->style);
    }
    return r;
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
        return err_status();
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
