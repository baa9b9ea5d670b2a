/* daemon/jobs.c - all jobs of this daemon.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "daemon/sentence.h"

static struct job *job_new(const char *name, uint32_t size, uid_t uid, int64_t now_ms)
{
    struct job *job = mem_new(struct job);
    if (job == NULL) {
        err_no_memory(sizeof *job, "a job");
        return NULL;
    }
    rendezvous_init(&job->rendezvous, name, size);
    store_init(&job->store);
    job->uid = uid;
    job->created_ms = now_ms;
    return job;
}

static void job_free(struct job *job)
{
    barrier_fini(&job->barriers);
    agree_fini(&job->agreements);
    records_fini(&job->records);
    store_fini(&job->store);
    liveness_fini(&job->liveness);
    rendezvous_fini(&job->rendezvous);
    explicit_bzero(job->rendezvous.secret, SECRET_BYTES);
    mem_free(job);
}

void jobs_init(struct jobs *j, size_t max_per_uid)
{
    *j = (struct jobs){ .max_per_uid = max_per_uid };
}

void jobs_fini(struct jobs *j)
{
    for (size_t i = 0; i < j->list.n; i++) {
        job_free(j->list.at[i]);
    }
    VEC_FINI(&j->list);
}

static struct job *find(const struct jobs *j, const char *name)
{
    for (size_t i = 0; i < j->list.n; i++) {
        if (strcmp(j->list.at[i]->rendezvous.job, name) == 0) {
            return j->list.at[i];
        }
    }
    return NULL;
}

int jobs_find(const struct jobs *j, const char *name, uid_t uid, struct job **ret_job)
{
    struct job *job = find(j, name);
    if (job == NULL) {
        return err_set(MESH_ENOTFOUND, "no job %.60s runs; `meshctl status` lists those there are and were", name);
    }
    if (uid != 0 && job->uid != uid) {
        return err_set(MESH_EAUTH, "job %.60s belongs to another user (uid %u)", name, job->uid);
    }
    *ret_job = job;
    return 0;
}

static int check_quota(const struct jobs *j, uid_t uid)
{
    size_t n = 0;
    for (size_t i = 0; i < j->list.n; i++) {
        n += j->list.at[i]->uid == uid;
    }
    if (n >= j->max_per_uid) {
        return err_set(MESH_ETOOLARGE, "uid %u has %zu jobs already, as many as it may have", uid, n);
    }
    return 0;
}

static void make_name(struct jobs *j, char *buf, size_t cap)
{
    do {
        snprintf(buf, cap, "job-%" PRIu64, ++j->n_named);
    } while (find(j, buf) != NULL);
}

int jobs_create(struct jobs *j, const char *name, uint32_t size, uid_t uid, int64_t now_ms, struct job **ret_job)
{
    char made_up[40];
    if (name[0] == 0) {
        make_name(j, made_up, sizeof made_up);
        name = made_up;
    }
    int r = name_check("job name", name, false);
    if (r < 0) {
        return r;
    }
    if (size < 1 || size > MAX_RANKS) {
        return err_set(MESH_EINVAL, "job %.60s: a job has 1 to %d ranks, not %u", name, MAX_RANKS, size);
    }
    if (find(j, name) != NULL) {
        return err_set(MESH_EEXIST, "there is a job %.60s already; end it or take another name", name);
    }
    r = check_quota(j, uid);
    if (r < 0) {
        return r;
    }
    struct job *job = job_new(name, size, uid, now_ms);
    struct job **place = job != NULL ? VEC_PUSH(&j->list) : NULL;
    if (place == NULL) {
        if (job != NULL) {
            job_free(job);
        }
        return err_no_memory(sizeof *job, "a job");
    }
    job->number = ++j->n_created;
    *place = *ret_job = job;
    return 0;
}

const char *job_state_name(enum job_state s)
{
    static const char *const names[] = {
        [JOB_WAITING] = "waiting", [JOB_RUNNING] = "running", [JOB_DEGRADED] = "degraded",
        [JOB_DONE] = "done",       [JOB_FAILED] = "failed",
    };
    return names[s];
}

enum job_state job_state(const struct job *job, const char **ret_reason)
{
    const struct liveness *l = &job->liveness;
    *ret_reason = job->reason[0] != 0 ? job->reason : l->first_death;
    if (l->n_alive > 0) {
        return l->n_dead > 0 ? JOB_DEGRADED : JOB_RUNNING;
    }
    if (job->rendezvous.running == 0 || job->rendezvous.waiting.n > 0) {
        return !job->is_ended ? JOB_WAITING : job->reason[0] != 0 ? JOB_FAILED : JOB_DONE;
    }
    return l->n_dead > 0 || job->reason[0] != 0 ? JOB_FAILED : JOB_DONE;
}

static void remember(struct jobs *j, const struct job *job, int64_t now_ms)
{
    struct finished_job *f = &j->finished[j->n_finished++ % MAX_FINISHED_JOBS];
    const char *reason;
    *f = (struct finished_job){ .uid = job->uid,
                                .size = job->rendezvous.size,
                                .generation = job->rendezvous.running,
                                .state = job_state(job, &reason),
                                .ended_ms = now_ms };
    snprintf(f->name, sizeof f->name, "%s", job->rendezvous.job);
    if (f->state == JOB_WAITING) {
        f->state = JOB_FAILED;
        reason = "it was given up before all ranks had joined";
    }
    snprintf(f->reason, sizeof f->reason, "%s", reason);
}

static bool has_nobody(const struct job *job)
{
    return job->liveness.n_alive == 0 && job->rendezvous.waiting.n == 0 && job->n_attached == 0;
}

static bool is_over(const struct job *job, int64_t now_ms)
{
    if (job->is_ended) {
        return job->liveness.n_alive == 0 && job->rendezvous.waiting.n == 0;
    }
    return has_nobody(job) && (job->rendezvous.running != 0 || now_ms >= job->keep_until_ms);
}

bool jobs_drop_if_over(struct jobs *j, struct job *job, int64_t now_ms, struct actions *ret)
{
    if (!is_over(job, now_ms)) {
        return false;
    }
    job_stop(job, "the job is over", ret);
    remember(j, job, now_ms);
    for (size_t i = 0; i < j->list.n; i++) {
        if (j->list.at[i] == job) {
            memmove(&j->list.at[i], &j->list.at[i + 1], (j->list.n - i - 1) * sizeof *j->list.at);
            j->list.n--;
            break;
        }
    }
    job_free(job);
    return true;
}

/* Nothing of an older generation is visible in a new one. */
static void form(struct job *job, const uint8_t *secret, int64_t now_ms, struct actions *ret)
{
    bool had_one = job->rendezvous.running > 0;
    if (secret != NULL && rendezvous_form(&job->rendezvous, &job->liveness, secret, now_ms, ret) && had_one) {
        store_forget(&job->store);
        barrier_stop(&job->barriers, "a new generation of the job began", ret);
        agree_fini(&job->agreements);
        records_clear(&job->records);
    }
}

int job_join(struct job *job, const struct join_call *c, const uint8_t *secret, struct actions *ret)
{
    if (job->is_ended) {
        return err_set(MESH_ESTALE, "join: job %.60s was ended: %s", job->rendezvous.job, job->reason);
    }
    int r = rendezvous_join(&job->rendezvous, c, &job->liveness);
    if (r == 0) {
        form(job, secret, c->now_ms, ret);
        rendezvous_give_up(&job->rendezvous, &job->liveness, ret);
    }
    return r;
}

int job_rank_ended(struct job *job, const struct ended_rank *e, struct actions *ret)
{
    int r = rendezvous_rank_ended(&job->rendezvous, e);
    if (r == 0) {
        char how[sizeof e->words + 32];
        bool has_returned = strncmp(e->words, "exited", strlen("exited")) == 0;
        snprintf(how, sizeof how, "%s%s", e->words, has_returned ? " without mesh_finalize()" : "");
        liveness_process_ended(&job->liveness, e->rank, e->pid, how);
        rendezvous_give_up(&job->rendezvous, &job->liveness, ret);
    }
    return r;
}

static void rank_gone(struct job *job, int rank, struct actions *ret)
{
    char fate[200];
    liveness_fate(&job->liveness, (uint32_t)rank, fate, sizeof fate);
    barrier_rank_gone(&job->barriers, (uint32_t)rank, fate, ret);
    agree_rank_gone(&job->agreements, (uint32_t)rank, fate, ret);
}

int job_leave(struct job *job, uint64_t client, const uint8_t *secret, int64_t now_ms, struct actions *ret)
{
    struct ticket waits;
    if (rendezvous_withdraw(&job->rendezvous, client, &waits)) {
        actions_error(ret, waits, MESH_EABORTED, "join: given up, because this connection asked to leave");
        return 0;
    }
    int rank = liveness_gone(&job->liveness, client, false, ret);
    if (rank < 0) {
        return err_set(MESH_ESTATE, "leave: this connection is no rank of job %.60s", job->rendezvous.job);
    }
    rank_gone(job, rank, ret);
    form(job, secret, now_ms, ret);
    rendezvous_give_up(&job->rendezvous, &job->liveness, ret);
    return 0;
}

void job_client_gone(struct job *job, uint64_t client, const uint8_t *secret, int64_t now_ms, struct actions *ret)
{
    struct ticket nobody;
    store_client_gone(&job->store, client);
    rendezvous_withdraw(&job->rendezvous, client, &nobody);
    int rank = liveness_gone(&job->liveness, client, true, ret);
    if (rank >= 0) {
        rank_gone(job, rank, ret);
        form(job, secret, now_ms, ret);
    }
    rendezvous_give_up(&job->rendezvous, &job->liveness, ret);
}

void job_end(struct job *job, const char *reason, struct actions *ret)
{
    char sentence[256];
    job->is_ended = true;
    snprintf(job->reason, sizeof job->reason, "%s", reason);
    snprintf(sentence, sizeof sentence, "job %.60s was ended%s%s", job->rendezvous.job, reason[0] != 0 ? ": " : "",
             reason);
    rendezvous_stop(&job->rendezvous, sentence, ret);
    liveness_end(&job->liveness, MESH_EABORTED, sentence, ret);
}

void job_tick(struct job *job, int64_t now_ms, struct actions *ret)
{
    rendezvous_tick(&job->rendezvous, now_ms, &job->liveness, ret);
    store_tick(&job->store, now_ms, ret);
    barrier_tick(&job->barriers, now_ms, ret);
    agree_tick(&job->agreements, now_ms, ret);
}

void job_stop(struct job *job, const char *why, struct actions *ret)
{
    rendezvous_stop(&job->rendezvous, why, ret);
    store_stop(&job->store, why, ret);
    barrier_stop(&job->barriers, why, ret);
    agree_stop(&job->agreements, why, ret);
}

int64_t job_next_deadline(const struct job *job)
{
    int64_t next_ms = MIN(rendezvous_next_deadline(&job->rendezvous), job->store.next_deadline_ms);
    next_ms = MIN(next_ms, barrier_next_deadline(&job->barriers));
    if (has_nobody(job) && job->rendezvous.running == 0) {
        next_ms = MIN(next_ms, job->keep_until_ms);
    }
    return MIN(next_ms, agree_next_deadline(&job->agreements));
}
