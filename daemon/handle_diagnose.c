/* daemon/handle_diagnose.c - the request that asks who holds a job up.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "daemon/handlers.h"
#include "daemon/reply.h"
#include "daemon/sentence.h"
#include "daemon/snapshot.h"

typedef Mesh__V1__Finding Row;

static int fill_calls(Row *row, const struct finding *f)
{
    size_t n = f->calls.n;
    if (f->kind != FINDING_MISMATCH) {
        return 0;
    }
    Mesh__V1__DifferentCall **rows = mem_alloc(n * (sizeof *rows + sizeof **rows));
    if (rows == NULL) {
        return err_no_memory(n * sizeof **rows, "the calls of a mismatch");
    }
    Mesh__V1__DifferentCall *call = (Mesh__V1__DifferentCall *)(void *)(rows + n);
    for (size_t i = 0; i < n; i++) {
        rows[i] = &call[i];
        mesh__v1__different_call__init(rows[i]);
        call[i].call = f->calls.at[i].text;
        call[i].n_rank = f->calls.at[i].ranks.n;
        call[i].rank = f->calls.at[i].ranks.at;
    }
    row->n_calls = n;
    row->calls = rows;
    return 0;
}

static int fill_row(Row *row, struct finding *f)
{
    mesh__v1__finding__init(row);
    row->kind = (char *)finding_kind_name(f->kind);
    row->is_knock_on = f->is_knock_on;
    row->group = f->group;
    row->name = f->name;
    row->sequence = f->sequence;
    row->call = f->call;
    row->age_ms = (uint64_t)f->age_ms;
    row->n_entered = f->entered.n;
    row->entered = f->entered.at;
    row->n_waiting = f->waiting.n;
    row->waiting = f->waiting.at;
    row->n_culprit = f->culprits.n;
    row->culprit = f->culprits.at;
    row->n_line = f->lines.n;
    row->line = f->lines.at;
    return fill_calls(row, f);
}

static int reply_verdict(struct client *c, uint64_t request, struct job *job, struct verdict *v)
{
    size_t n = v->findings.n;
    Row *row = mem_zalloc(n * sizeof *row);
    Row **rows = mem_new_array(Row *, n);
    int r = row == NULL || rows == NULL ? err_no_memory(n * sizeof *row, "a verdict") : 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        rows[i] = &row[i];
        r = fill_row(rows[i], &v->findings.at[i]);
    }
    if (r == 0) {
        Mesh__V1__Diagnosis body = MESH__V1__DIAGNOSIS__INIT;
        Mesh__V1__DaemonMessage reply = MESH__V1__DAEMON_MESSAGE__INIT;
        body.job = job->rendezvous.job;
        body.is_well = v->is_well;
        body.sentence = v->sentence;
        body.n_findings = n;
        body.findings = rows;
        reply.body_case = MESH__V1__DAEMON_MESSAGE__BODY_DIAGNOSIS;
        reply.diagnosis = &body;
        reply_message(c, request, &reply);
    }
    for (size_t i = 0; row != NULL && i < n; i++) {
        mem_free((void *)row[i].calls);
    }
    mem_free((void *)rows);
    mem_free(row);
    return r;
}

/* No generation runs: who is not there yet. */
static int judge_waiting(const struct job *job, int64_t after_ms, struct verdict *ret_verdict)
{
    char ranks[100];
    uint32_t *missing = mem_new_array(uint32_t, job->rendezvous.size);
    if (missing == NULL) {
        return err_no_memory(job->rendezvous.size * sizeof *missing, "a list of ranks");
    }
    size_t n = rendezvous_missing(&job->rendezvous, missing);
    *ret_verdict = (struct verdict){ .is_well = clock_now_ms() - job->created_ms < after_ms };
    snprintf(ret_verdict->sentence, sizeof ret_verdict->sentence, "the job has not begun: it waits for %s to join",
             sentence_ranks(ranks, sizeof ranks, missing, n));
    mem_free(missing);
    return 0;
}

static int judge(const struct server *s, struct job *job, int64_t after_ms, struct verdict *ret_verdict)
{
    struct snapshot p;
    if (job->rendezvous.table == NULL) {
        return judge_waiting(job, after_ms, ret_verdict);
    }
    int r = snapshot_take(s, job, after_ms, &p);
    if (r == 0) {
        r = diagnose(&p.input, ret_verdict);
        snapshot_fini(&p);
    }
    return r;
}

int handle_diagnose(struct client *c, const Mesh__V1__ClientMessage *m)
{
    struct job *job;
    struct verdict v;
    int r = client_find_shown(c, m->diagnose->job, &job);
    if (r < 0) {
        return r;
    }
    uint64_t after_ms = m->diagnose->after_ms != 0 ? m->diagnose->after_ms : DEFAULT_AFTER_MS;
    r = judge(c->server, job, (int64_t)MIN(after_ms, (uint64_t)MAX_TIMEOUT_MS), &v);
    if (r == 0) {
        r = reply_verdict(c, m->request, job, &v);
        verdict_fini(&v);
    }
    return r;
}
