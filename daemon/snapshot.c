/* daemon/snapshot.c - what is known of all ranks of a job at this moment.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/snapshot.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "daemon/client_conn.h"
#include "daemon/process.h"
#include "daemon/rings.h"
#include "daemon/sentence.h"

static const char *waits_in_barrier(const struct job *job, uint64_t client, char *buf, size_t cap)
{
    for (size_t i = 0; i < job->barriers.open.n; i++) {
        const struct barrier *b = job->barriers.open.at[i];
        for (size_t k = 0; k < b->members.n; k++) {
            if (b->arrived[k].client == client) {
                snprintf(buf, cap, "barrier %.100s (%zu of %zu have come)", b->name, b->n_arrived, b->members.n);
                return buf;
            }
        }
    }
    return buf;
}

static const char *waits_in_agreement(const struct job *job, uint64_t client, char *buf, size_t cap)
{
    for (size_t i = 0; i < job->agreements.list.n; i++) {
        const struct agreement *a = job->agreements.list.at[i];
        for (size_t k = 0; a->state == AGREE_OPEN && k < a->members.n; k++) {
            if (a->who[k].client == client) {
                snprintf(buf, cap, "all to make %.100s (%zu of %zu have)", a->key, a->n_posted, a->members.n);
                return buf;
            }
        }
    }
    return buf;
}

static void find_elsewhere(const struct job *job, uint64_t client, char *buf, size_t cap)
{
    if (store_waits_for(&job->store, client, buf, cap)[0] == 0 && waits_in_barrier(job, client, buf, cap)[0] == 0) {
        waits_in_agreement(job, client, buf, cap);
    }
}

struct diagnose_rank snapshot_look(const struct server *s, const struct job *job, uint32_t rank,
                                   struct recorder_image *image, char *elsewhere)
{
    const struct member *m = &job->rendezvous.table[rank];
    const struct client *c = server_client(s, m->client);
    enum life life = job->liveness.of[rank].state;
    bool is_known = image != NULL && rings_read(s, job, rank, image) == 0;
    if (!is_known) {
        log_debug("daemon", "job %s: rank %u: %s", job->rendezvous.job, rank, mesh_last_error()->message);
    }
    find_elsewhere(job, m->client, elsewhere, ELSEWHERE_BYTES);
    return (struct diagnose_rank){
        .life = life,
        .process = life == LIFE_JOINED && c != NULL ? process_look(c->pid, c->uid) : PROCESS_UNKNOWN,
        .host = m->host,
        .pid = m->pid,
        .image = is_known ? image : NULL,
        .elsewhere = elsewhere,
    };
}

int snapshot_take(const struct server *s, struct job *job, int64_t after_ms, struct snapshot *ret_snapshot)
{
    struct snapshot p = { .n = job->rendezvous.table != NULL ? job->rendezvous.size : 0 };
    p.rank = mem_zalloc(p.n * sizeof *p.rank);
    p.image = mem_zalloc(p.n * sizeof *p.image);
    p.elsewhere = mem_zalloc(p.n * sizeof *p.elsewhere);
    if (p.rank == NULL || p.image == NULL || p.elsewhere == NULL) {
        p.n = p.image != NULL ? p.n : 0;
        snapshot_fini(&p);
        return err_no_memory(p.n * sizeof *p.elsewhere, "a look at all ranks");
    }
    for (uint32_t rank = 0; rank < p.n; rank++) {
        p.image[rank] = mem_alloc(sizeof *p.image[rank]); /* NULL: its calls are not known */
        p.rank[rank] = snapshot_look(s, job, rank, p.image[rank], p.elsewhere[rank]);
    }
    err_clear();
    p.input = (struct diagnose_input){ .now_ns = clock_now_ns(),
                                       .after_ms = after_ms,
                                       .rank = p.rank,
                                       .n_ranks = p.n,
                                       .group = job->records.groups.at,
                                       .n_groups = job->records.groups.n };
    *ret_snapshot = p;
    return 0;
}

void snapshot_fini(struct snapshot *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        mem_free(p->image[i]);
    }
    mem_free(p->rank);
    mem_free((void *)p->image);
    mem_free(p->elsewhere);
}

static void log_findings(const struct job *job, const struct verdict *v)
{
    log_warn("daemon", "job %s: %s", job->rendezvous.job, v->sentence);
    for (size_t i = 0; i < v->findings.n; i++) {
        for (size_t k = 0; k < v->findings.at[i].lines.n; k++) {
            log_info("daemon", "job %s: %s", job->rendezvous.job, v->findings.at[i].lines.at[k]);
        }
    }
}

void snapshot_log_verdict(const struct server *s, struct job *job)
{
    struct snapshot p;
    struct verdict v;
    if (job->judged == job->rendezvous.running || snapshot_take(s, job, DEFAULT_AFTER_MS, &p) < 0) {
        return;
    }
    job->judged = job->rendezvous.running;
    if (diagnose(&p.input, &v) == 0) {
        if (!v.is_well) {
            log_findings(job, &v);
        }
        verdict_fini(&v);
    }
    snapshot_fini(&p);
}

/* Where the reporter waits in that call: the calls of a group are told apart by number, its messages by who waits. */
static const struct finding *find_reported(const struct verdict *v, const struct report *r, uint32_t reporter)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        const struct finding *f = &v->findings.at[i];
        bool is_it = f->group == r->group && f->sequence == r->sequence;
        if (is_it && (r->sequence != 0 || rank_list_has(&f->waiting, reporter))) {
            return f;
        }
    }
    return NULL;
}

/* All that wait in a circle. */
static void say_circle(struct verdict *v, char *words, size_t cap)
{
    char ranks[80];
    struct rank_list all = { 0 };
    for (size_t i = 0; i < v->findings.n; i++) {
        const struct finding *f = &v->findings.at[i];
        for (size_t k = 0; f->kind == FINDING_CIRCLE && k < f->waiting.n; k++) {
            if (!rank_list_has(&all, f->waiting.at[k])) {
                rank_list_add(v, &all, f->waiting.at[k]);
            }
        }
    }
    snprintf(words, cap, "%s wait for each other in a circle", sentence_ranks(ranks, sizeof ranks, all.at, all.n));
    VEC_FINI(&all);
}

/* The line about one of the culprits. */
static const char *line_about(const struct finding *f, uint32_t rank)
{
    for (size_t i = 0; i < f->lines.n; i++) {
        if (f->culprits.at[i] == rank) {
            return f->lines.at[i];
        }
    }
    return "";
}

static struct blame blame_root(struct verdict *v, const struct finding *root, const struct report *r)
{
    const struct rank_list *blamed = &root->blamed;
    struct blame b = { .group = r->group, .culprit = -1 };
    if (root->kind == FINDING_CIRCLE) {
        say_circle(v, b.words, sizeof b.words);
    } else if (root->kind == FINDING_STALL && blamed->n > 0) {
        bool is_among = r->culprit >= 0 && rank_list_has(blamed, (uint32_t)r->culprit);
        b.culprit = is_among ? r->culprit : (int32_t)blamed->at[0];
        snprintf(b.words, sizeof b.words, "%s", line_about(root, (uint32_t)b.culprit));
    }
    return b;
}

bool snapshot_find_cause(const struct server *s, struct job *job, const struct report *r, uint32_t reporter,
                         struct blame *ret_blame)
{
    struct snapshot p;
    struct verdict v;
    bool is_found = false;
    if (snapshot_take(s, job, 0, &p) < 0) {
        return false;
    }
    if (diagnose(&p.input, &v) == 0) {
        const struct finding *f = find_reported(&v, r, reporter);
        struct blame b = f != NULL ? blame_root(&v, diagnose_root(&v, f), r) : (struct blame){ .words = "" };
        is_found = b.words[0] != 0 && b.culprit != (int32_t)reporter;
        if (is_found) {
            *ret_blame = b;
            ret_blame->generation = job->rendezvous.running;
        }
        verdict_fini(&v);
    }
    snapshot_fini(&p);
    return is_found;
}
