/* daemon/handle_look.c - requests that only look: what `meshctl` shows.
 * SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "daemon/handlers.h"
#include "daemon/reply.h"
#include "daemon/reply_joined.h"
#include "daemon/standings.h"

typedef Mesh__V1__DaemonMessage Message;

/* One job as it is told; [size] ranks of scratch for those missing, owned. */
struct job_view {
    Mesh__V1__JobInfo info;
    uint32_t *missing;
};

static int view_init(struct job_view *v, struct job *job, int64_t now_ms)
{
    const struct rendezvous *rendezvous = &job->rendezvous;
    const char *reason;
    mesh__v1__job_info__init(&v->info);
    v->missing = NULL;
    v->info.job = job->rendezvous.job;
    v->info.uid = job->uid;
    v->info.size = rendezvous->size;
    v->info.generation = rendezvous->running != 0 ? rendezvous->running : rendezvous->forming;
    v->info.state = (char *)job_state_name(job_state(job, &reason));
    v->info.reason = (char *)reason;
    v->info.age_ms = (uint64_t)(now_ms - job->created_ms);
    v->info.keys = job->store.entries.n;
    v->info.key_bytes = job->store.n_bytes;
    v->info.joined = job->liveness.n_alive > 0 ? job->liveness.n_alive : (uint32_t)rendezvous->waiting.n;
    if (job_state(job, &reason) != JOB_WAITING) {
        return 0;
    }
    v->missing = mem_new_array(uint32_t, rendezvous->size);
    if (v->missing == NULL) {
        return err_no_memory(rendezvous->size * sizeof *v->missing, "a list of ranks");
    }
    v->info.n_missing = rendezvous_missing(rendezvous, v->missing);
    v->info.missing = v->missing;
    return 0;
}

static void view_init_finished(struct job_view *v, struct finished_job *f, int64_t now_ms)
{
    mesh__v1__job_info__init(&v->info);
    v->missing = NULL;
    v->info.job = f->name;
    v->info.uid = f->uid;
    v->info.size = f->size;
    v->info.generation = f->generation;
    v->info.state = (char *)job_state_name(f->state);
    v->info.reason = f->reason;
    v->info.age_ms = (uint64_t)(now_ms - f->ended_ms);
}

int handle_ping(struct client *c, const Mesh__V1__ClientMessage *m)
{
    Mesh__V1__Pong body = MESH__V1__PONG__INIT;
    body.uptime_ms = (uint64_t)(clock_now_ms() - c->server->started_ms);
    Message reply = MESH__V1__DAEMON_MESSAGE__INIT;
    reply.body_case = MESH__V1__DAEMON_MESSAGE__BODY_PONG;
    reply.pong = &body;
    reply_message(c, m->request, &reply);
    return 0;
}

/* The jobs this client may see: those there are, then those that ended, the newest first. */
static int fill_views(struct client *c, struct job_view *view, size_t *ret_n)
{
    struct jobs *jobs = &c->server->jobs;
    int64_t now_ms = clock_now_ms();
    size_t n = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < jobs->list.n; i++) {
        if (client_may_see(c, jobs->list.at[i]->uid)) {
            r = view_init(&view[n++], jobs->list.at[i], now_ms);
        }
    }
    for (uint64_t i = 0; i < MIN(jobs->n_finished, MAX_FINISHED_JOBS); i++) {
        struct finished_job *f = &jobs->finished[(jobs->n_finished - 1 - i) % MAX_FINISHED_JOBS];
        if (client_may_see(c, f->uid)) {
            view_init_finished(&view[n++], f, now_ms);
        }
    }
    *ret_n = n;
    return r;
}

static void reply_views(struct client *c, uint64_t request, struct job_view *view, Mesh__V1__JobInfo **rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        rows[i] = &view[i].info;
    }
    Mesh__V1__StatusReply body = MESH__V1__STATUS_REPLY__INIT;
    body.software = "meshd " MESH_VERSION;
    body.pid = (uint32_t)getpid();
    body.uptime_ms = (uint64_t)(clock_now_ms() - c->server->started_ms);
    body.address = c->server->address;
    body.n_jobs = n;
    body.jobs = rows;
    Message reply = MESH__V1__DAEMON_MESSAGE__INIT;
    reply.body_case = MESH__V1__DAEMON_MESSAGE__BODY_STATUS_REPLY;
    reply.status_reply = &body;
    reply_message(c, request, &reply);
}

int handle_get_status(struct client *c, const Mesh__V1__ClientMessage *m)
{
    size_t n = c->server->jobs.list.n + MAX_FINISHED_JOBS;
    struct job_view *view = mem_zalloc(n * sizeof *view);
    Mesh__V1__JobInfo **rows = mem_new_array(Mesh__V1__JobInfo *, n);
    int r = 0;
    if (view == NULL || rows == NULL) {
        r = err_no_memory(n * sizeof *view, "the status");
        goto free_views;
    }
    r = fill_views(c, view, &n);
    if (r == 0) {
        reply_views(c, m->request, view, rows, n);
    }
    for (size_t i = 0; i < n; i++) {
        mem_free(view[i].missing);
    }
free_views:
    mem_free(rows);
    mem_free(view);
    return r;
}

static void fill_waiting(Mesh__V1__RankInfo *info, struct candidate *candidate, int64_t now_ms)
{
    struct member *member = &candidate->member;
    mesh__v1__rank_info__init(info);
    info->rank = member->wanted >= 0 ? (uint32_t)member->wanted : UINT32_MAX;
    info->host = member->host;
    info->pid = member->pid;
    info->state = "joining";
    info->n_address = member->n_addresses;
    info->address = member->address;
    info->age_ms = (uint64_t)(now_ms - candidate->begin_ms);
}

/* The running generation's ranks, then those that wait for the next. */
static int reply_ranks(struct client *c, uint64_t request, struct job *job, struct job_view *view)
{
    int r = 0;
    struct standing_row *standing = standings_new(c->server, job);
    int64_t now_ms = clock_now_ms();
    size_t n_table = job->rendezvous.table == NULL ? 0 : job->rendezvous.size;
    size_t n_waiting = job->rendezvous.waiting.n;
    Mesh__V1__RankInfo **table = rank_table_new(job, now_ms);
    Mesh__V1__RankInfo **rows = mem_new_array(Mesh__V1__RankInfo *, n_table + n_waiting);
    Mesh__V1__RankInfo *waiting = mem_new_array(Mesh__V1__RankInfo, n_waiting);
    if (table == NULL || rows == NULL || waiting == NULL || standing == NULL) {
        r = err_no_memory((n_table + n_waiting) * sizeof *waiting, "a list of ranks");
        goto free_rows;
    }
    for (size_t i = 0; i < n_table; i++) {
        rows[i] = table[i];
        rows[i]->standing = &standing[i].info;
    }
    for (size_t i = 0; i < n_waiting; i++) {
        fill_waiting(&waiting[i], &job->rendezvous.waiting.at[i], now_ms);
        rows[n_table + i] = &waiting[i];
    }
    Mesh__V1__RankList body = MESH__V1__RANK_LIST__INIT;
    body.job = &view->info;
    body.n_ranks = n_table + n_waiting;
    body.ranks = rows;
    Message reply = MESH__V1__DAEMON_MESSAGE__INIT;
    reply.body_case = MESH__V1__DAEMON_MESSAGE__BODY_RANKS;
    reply.ranks = &body;
    reply_message(c, request, &reply);
free_rows:
    mem_free(waiting);
    mem_free(rows);
    mem_free(table);
    mem_free(standing);
    return r;
}

int handle_list_ranks(struct client *c, const Mesh__V1__ClientMessage *m)
{
    struct job *job;
    int r = client_find_shown(c, m->list_ranks->job, &job);
    if (r < 0) {
        return r;
    }
    struct job_view view;
    r = view_init(&view, job, clock_now_ms());
    if (r == 0) {
        r = reply_ranks(c, m->request, job, &view);
    }
    mem_free(view.missing);
    return r;
}

static void fill_mesh(Mesh__V1__MeshInfo *info, struct agreement *a)
{
    mesh__v1__mesh_info__init(info);
    info->key = a->key;
    info->descriptor = (char *)agreement_descriptor(a);
    info->n_member = a->members.n;
    info->member = a->members.rank;
    info->agreed = (uint32_t)a->n_posted;
}

static void fill_group(Mesh__V1__GroupRecord *info, struct group_record *g)
{
    mesh__v1__group_record__init(info);
    info->group = g->group;
    info->name = g->name;
    info->n_member = g->members.n;
    info->member = g->members.rank;
}

static int reply_meshes(struct client *c, uint64_t request, struct job *job, struct job_view *view)
{
    size_t n_meshes = job->agreements.list.n;
    size_t n_groups = job->records.groups.n;
    Mesh__V1__MeshInfo *mesh = mem_new_array(Mesh__V1__MeshInfo, n_meshes);
    Mesh__V1__MeshInfo **mesh_rows = mem_new_array(Mesh__V1__MeshInfo *, n_meshes);
    Mesh__V1__GroupRecord *group = mem_new_array(Mesh__V1__GroupRecord, n_groups);
    Mesh__V1__GroupRecord **group_rows = mem_new_array(Mesh__V1__GroupRecord *, n_groups);
    int r = 0;
    if (mesh == NULL || mesh_rows == NULL || group == NULL || group_rows == NULL) {
        r = err_no_memory(n_meshes * sizeof *mesh + n_groups * sizeof *group, "a list of meshes");
        goto free_rows;
    }
    for (size_t i = 0; i < n_meshes; i++) {
        fill_mesh(mesh_rows[i] = &mesh[i], job->agreements.list.at[i]);
    }
    for (size_t i = 0; i < n_groups; i++) {
        fill_group(group_rows[i] = &group[i], &job->records.groups.at[i]);
    }
    Mesh__V1__MeshList body = MESH__V1__MESH_LIST__INIT;
    body.job = &view->info;
    body.n_meshes = n_meshes;
    body.meshes = mesh_rows;
    body.n_groups = n_groups;
    body.groups = group_rows;
    Message reply = MESH__V1__DAEMON_MESSAGE__INIT;
    reply.body_case = MESH__V1__DAEMON_MESSAGE__BODY_MESHES;
    reply.meshes = &body;
    reply_message(c, request, &reply);
free_rows:
    mem_free(group_rows);
    mem_free(group);
    mem_free(mesh_rows);
    mem_free(mesh);
    return r;
}

int handle_list_meshes(struct client *c, const Mesh__V1__ClientMessage *m)
{
    struct job *job;
    int r = client_find_shown(c, m->list_meshes->job, &job);
    if (r < 0) {
        return r;
    }
    struct job_view view;
    r = view_init(&view, job, clock_now_ms());
    if (r == 0) {
        r = reply_meshes(c, m->request, job, &view);
    }
    mem_free(view.missing);
    return r;
}
