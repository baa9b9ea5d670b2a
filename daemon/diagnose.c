/* daemon/diagnose.c - from snapshots of all ranks to findings about groups and ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/diagnose.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* One group as all ranks see it. */
struct scene {
    const struct diagnose_input *in;
    struct verdict *verdict;
    struct finding *finding;
    const uint32_t *member;
    size_t n_members;
    bool is_incomplete; /* the group has more members than are known */
};

struct standing { /* of one member in one group */
    bool is_known;
    uint64_t entered, finished, failed;
};

void rank_list_add(struct verdict *v, struct rank_list *list, uint32_t rank)
{
    uint32_t *place = VEC_PUSH(list);
    if (place == NULL) {
        v->has_no_memory = true;
        return;
    }
    size_t i = list->n - 1;
    for (; i > 0 && list->at[i - 1] > rank; i--) {
        list->at[i] = list->at[i - 1];
    }
    list->at[i] = rank;
}

bool rank_list_has(const struct rank_list *list, uint32_t rank)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i] == rank) {
            return true;
        }
    }
    return false;
}

static void finding_fini(struct finding *f)
{
    VEC_FINI(&f->entered);
    VEC_FINI(&f->waiting);
    VEC_FINI(&f->culprits);
    VEC_FINI(&f->blamed);
    for (size_t i = 0; i < f->calls.n; i++) {
        VEC_FINI(&f->calls.at[i].ranks);
    }
    VEC_FINI(&f->calls);
    for (size_t i = 0; i < f->lines.n; i++) {
        mem_free(f->lines.at[i]);
    }
    VEC_FINI(&f->lines);
}

void verdict_fini(struct verdict *v)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        finding_fini(&v->findings.at[i]);
    }
    VEC_FINI(&v->findings);
}

bool diagnose_is_dead_weight(const struct diagnose_rank *r)
{
    return r->life != LIFE_JOINED || r->process == PROCESS_STOPPED || r->process == PROCESS_GONE;
}

/* A group that was freed, or found no place, may still have calls in the ring. */
static struct standing standing_of(const struct diagnose_rank *r, uint64_t group)
{
    struct standing s = { .is_known = r->image != NULL };
    const struct recorder_group *place = s.is_known ? recorder_find_group(r->image, group) : NULL;
    if (place != NULL) {
        s.entered = place->entered;
        s.finished = place->finished;
        s.failed = place->failed;
        return s;
    }
    for (size_t i = 0; s.is_known && i < r->image->n_calls; i++) {
        const struct recorder_call *c = &r->image->call[i];
        if (c->group == group && c->sequence > s.entered) {
            s.entered = c->sequence;
            s.finished = recorder_is_over(c) ? c->sequence : s.finished;
        }
    }
    s.is_known = s.is_known && (s.entered > 0 || r->image->n_unnamed == 0); /* else it may be one without a place */
    return s;
}

/* The first call that is not well for this member; 0: none. */
static uint64_t trouble_of(const struct standing *s)
{
    return s->failed != 0 ? s->failed : s->entered > s->finished ? s->finished + 1 : 0;
}

static uint64_t first_trouble(const struct scene *s)
{
    uint64_t first = 0;
    for (size_t i = 0; i < s->n_members; i++) {
        struct standing standing = standing_of(&s->in->rank[s->member[i]], s->finding->group);
        uint64_t trouble = trouble_of(&standing);
        if (trouble != 0 && (first == 0 || trouble < first)) {
            first = trouble;
        }
    }
    return first;
}

static const struct recorder_call *call_of(const struct scene *s, uint32_t rank, uint64_t sequence)
{
    const struct recorder_image *image = s->in->rank[rank].image;
    return image != NULL ? recorder_find_call(image, s->finding->group, sequence) : NULL;
}

static const struct recorder_call *call_at(const struct scene *s, uint32_t rank)
{
    return call_of(s, rank, s->finding->sequence);
}

/* Mismatch --------------------------------------------------------------------------------------------------------- */

/* What all ranks must have in common. */
static bool is_same_call(const struct call_words *a, const struct call_words *b)
{
    bool has_own_counts = a->kind == MESH_COMM_ALL_TO_ALL;
    return a->kind == b->kind && a->dtype == b->dtype && a->op == b->op && a->root == b->root &&
           a->splits == b->splits && (a->count == b->count || has_own_counts);
}

static void add_call(struct scene *s, uint32_t rank, const struct call_words *words)
{
    struct finding *f = s->finding;
    char text[sizeof f->calls.at[0].text];
    call_words_text(words, text, sizeof text);
    for (size_t i = 0; i < f->calls.n; i++) {
        const struct recorder_call *other = call_at(s, f->calls.at[i].ranks.at[0]);
        if (other != NULL && is_same_call(&other->words, words)) {
            rank_list_add(s->verdict, &f->calls.at[i].ranks, rank);
            return;
        }
    }
    struct different_call *d = VEC_PUSH(&f->calls);
    if (d == NULL) {
        s->verdict->has_no_memory = true;
        return;
    }
    *d = (struct different_call){ 0 };
    snprintf(d->text, sizeof d->text, "%s", text);
    rank_list_add(s->verdict, &d->ranks, rank);
    if (d->ranks.n == 0) { /* a call of nobody would not be found again */
        f->calls.n--;
    }
}

/* Majority first; among equals the one of the lowest rank. */
static void sort_calls(struct finding *f)
{
    for (size_t i = 1; i < f->calls.n; i++) {
        struct different_call d = f->calls.at[i];
        size_t k = i;
        for (; k > 0 && f->calls.at[k - 1].ranks.n < d.ranks.n; k--) {
            f->calls.at[k] = f->calls.at[k - 1];
        }
        f->calls.at[k] = d;
    }
}

static void collect_calls(struct scene *s)
{
    struct finding *f = s->finding;
    for (size_t i = 0; i < s->n_members; i++) {
        const struct recorder_call *c = call_at(s, s->member[i]);
        if (c != NULL) {
            add_call(s, s->member[i], &c->words);
        }
    }
    sort_calls(f);
    if (f->calls.n > 0) {
        snprintf(f->call, sizeof f->call, "%s", f->calls.at[0].text);
    }
}

static void blame_minority(struct scene *s)
{
    struct finding *f = s->finding;
    bool has_majority = f->calls.at[0].ranks.n > f->calls.at[1].ranks.n;
    for (size_t i = has_majority; i < f->calls.n; i++) {
        for (size_t k = 0; k < f->calls.at[i].ranks.n; k++) {
            rank_list_add(s->verdict, &f->culprits, f->calls.at[i].ranks.at[k]);
        }
    }
}

/* Who is where ----------------------------------------------------------------------------------------------------- */

static void note_age(struct scene *s, uint32_t rank, uint64_t sequence)
{
    const struct recorder_call *c = call_of(s, rank, sequence);
    int64_t since_ns = c != NULL ? (c->started_ns != 0 ? c->started_ns : c->queued_ns) : s->in->now_ns;
    int64_t age_ms = since_ns <= s->in->now_ns ? (s->in->now_ns - since_ns) / 1000000 : 0;
    s->finding->age_ms = age_ms > s->finding->age_ms ? age_ms : s->finding->age_ms;
}

struct lists {
    struct rank_list missing, silent, dead; /* not entered; nothing known; entered, and dead or stopped in it */
    bool has_failed;
};

static void place_member(struct scene *s, uint32_t rank, struct lists *l)
{
    struct finding *f = s->finding;
    const struct diagnose_rank *r = &s->in->rank[rank];
    struct standing standing = standing_of(r, f->group);
    if (!standing.is_known) {
        rank_list_add(s->verdict, &l->silent, rank);
        f->has_evidence = f->has_evidence || diagnose_is_dead_weight(r);
    } else if (standing.entered < f->sequence) {
        rank_list_add(s->verdict, &l->missing, rank);
        f->has_evidence = f->has_evidence || diagnose_is_dead_weight(r);
    } else {
        rank_list_add(s->verdict, &f->entered, rank);
        uint64_t trouble = trouble_of(&standing);
        l->has_failed = l->has_failed || standing.failed != 0;
        if (standing.finished < f->sequence && diagnose_is_dead_weight(r)) {
            rank_list_add(s->verdict, &l->dead, rank);
            f->has_evidence = true;
        } else if (trouble != 0) { /* in this call, or in a later one that needs the same ranks */
            rank_list_add(s->verdict, &f->waiting, rank);
            note_age(s, rank, trouble);
        }
    }
}

static void move(struct rank_list *to, struct rank_list *from)
{
    VEC_FINI(to);
    *to = *from;
    *from = (struct rank_list){ 0 };
}

/* What the lists amount to; false: all is well here. */
static bool judge(struct scene *s, struct lists *l)
{
    struct finding *f = s->finding;
    bool is_old = f->age_ms >= s->in->after_ms || l->has_failed || f->has_evidence;
    if (f->calls.n > 1) {
        f->kind = FINDING_MISMATCH;
        blame_minority(s);
        return true;
    }
    if (f->waiting.n == 0 && l->dead.n == 0) {
        return false; /* who entered is through, and nobody is held up by the rest */
    }
    if (l->missing.n > 0 || l->dead.n > 0) {
        f->kind = FINDING_STALL;
        for (size_t i = 0; i < l->dead.n; i++) {
            rank_list_add(s->verdict, &l->missing, l->dead.at[i]);
        }
        move(&f->culprits, &l->missing);
        return is_old;
    }
    if (l->silent.n > 0) {
        f->kind = f->has_evidence ? FINDING_STALL : FINDING_UNKNOWN;
        move(&f->culprits, &l->silent);
        return is_old;
    }
    f->kind = l->has_failed ? FINDING_FAILED : s->is_incomplete ? FINDING_UNKNOWN : FINDING_SLOW;
    return is_old;
}

static void examine(struct scene *s)
{
    struct finding *f = s->finding;
    f->sequence = first_trouble(s);
    if (f->sequence == 0 || (s->n_members < 2 && !s->is_incomplete)) {
        f->group = 0;
        return;
    }
    struct lists l = { 0 };
    collect_calls(s);
    for (size_t i = 0; i < s->n_members; i++) {
        place_member(s, s->member[i], &l);
    }
    if (!judge(s, &l)) {
        f->group = 0;
    }
    VEC_FINI(&l.missing);
    VEC_FINI(&l.silent);
    VEC_FINI(&l.dead);
}

/* Groups ----------------------------------------------------------------------------------------------------------- */

static void examine_group(struct scene s, uint64_t id, const char *name)
{
    struct verdict *v = s.verdict;
    struct finding f = { .group = id };
    snprintf(f.name, sizeof f.name, "%s", name);
    s.finding = &f;
    examine(&s);
    struct finding *place = f.group != 0 ? VEC_PUSH(&v->findings) : NULL;
    if (place == NULL) {
        v->has_no_memory = v->has_no_memory || f.group != 0;
        finding_fini(&f);
        return;
    }
    *place = f;
}

static bool is_recorded(const struct diagnose_input *in, uint64_t id)
{
    for (size_t i = 0; i < in->n_groups; i++) {
        if (in->group[i].group == id) {
            return true;
        }
    }
    return false;
}

/* Whom this rank waited for in calls of the group: members as well. */
static void add_waited(const struct diagnose_input *in, struct verdict *v, const struct recorder_image *image,
                       uint64_t group, struct rank_list *members)
{
    for (size_t i = 0; i < image->n_calls; i++) {
        const struct recorder_call *c = &image->call[i];
        for (size_t k = 0; c->group == group && k < c->n_waited; k++) {
            if (c->waited[k] < in->n_ranks && !rank_list_has(members, c->waited[k])) {
                rank_list_add(v, members, c->waited[k]);
            }
        }
    }
}

/* A group that its first member has not told of, perhaps because that one has not made it yet: its members are those
 * that have it and those they wait for. */
static void examine_untold(const struct diagnose_input *in, struct verdict *v, uint32_t first,
                           const struct recorder_group *g)
{
    struct rank_list members = { 0 };
    bool is_first = true; /* else it was looked at before */
    for (uint32_t rank = 0; rank < in->n_ranks; rank++) {
        const struct recorder_image *image = in->rank[rank].image;
        if (image == NULL || recorder_find_group(image, g->id) == NULL) {
            continue;
        }
        is_first = is_first && rank >= first;
        if (!rank_list_has(&members, rank)) {
            rank_list_add(v, &members, rank);
        }
        add_waited(in, v, image, g->id, &members);
    }
    if (is_first) {
        examine_group((struct scene){ .in = in,
                                      .verdict = v,
                                      .member = members.at,
                                      .n_members = members.n,
                                      .is_incomplete = members.n < g->size },
                      g->id, g->name);
    }
    VEC_FINI(&members);
}

static void examine_groups(const struct diagnose_input *in, struct verdict *v)
{
    for (size_t i = 0; i < in->n_groups; i++) {
        const struct members *m = &in->group[i].members;
        examine_group((struct scene){ .in = in, .verdict = v, .member = m->rank, .n_members = m->n },
                      in->group[i].group, in->group[i].name);
    }
    for (uint32_t rank = 0; rank < in->n_ranks; rank++) {
        const struct recorder_image *image = in->rank[rank].image;
        for (size_t i = 0; image != NULL && i < image->n_groups; i++) {
            if (!is_recorded(in, image->group[i].id)) {
                examine_untold(in, v, rank, &image->group[i]);
            }
        }
    }
}

/* Ranks for which nobody waits ------------------------------------------------------------------------------------- */

static bool is_blamed(const struct verdict *v, uint32_t rank)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        if (rank_list_has(&v->findings.at[i].culprits, rank)) {
            return true;
        }
    }
    return false;
}

static void examine_ranks(const struct diagnose_input *in, struct verdict *v)
{
    for (uint32_t rank = 0; rank < in->n_ranks; rank++) {
        const struct diagnose_rank *r = &in->rank[rank];
        bool is_dead = r->life == LIFE_DEAD || (r->life == LIFE_JOINED && r->process == PROCESS_GONE);
        bool is_stopped = r->life == LIFE_JOINED && r->process == PROCESS_STOPPED;
        if ((!is_dead && !is_stopped) || is_blamed(v, rank)) {
            continue;
        }
        struct finding *f = VEC_PUSH(&v->findings);
        if (f == NULL) {
            v->has_no_memory = true;
            return;
        }
        *f = (struct finding){ .kind = is_dead ? FINDING_DEAD : FINDING_STOPPED };
        rank_list_add(v, &f->culprits, rank);
    }
}

static void write_lines(const struct diagnose_input *in, struct verdict *v)
{
    char text[400];
    for (size_t i = 0; i < v->findings.n; i++) {
        struct finding *f = &v->findings.at[i];
        for (size_t k = 0; k < f->culprits.n; k++) {
            char **place = VEC_PUSH(&f->lines);
            char *line = mem_strdup(diagnose_rank_line(in, f->culprits.at[k], f->group, text, sizeof text));
            if (place == NULL || line == NULL) {
                f->lines.n -= place != NULL;
                mem_free(line);
                v->has_no_memory = true;
                return;
            }
            *place = line;
        }
    }
}

int diagnose(const struct diagnose_input *in, struct verdict *ret_verdict)
{
    struct verdict v = { .is_well = true };
    examine_groups(in, &v);
    diagnose_messages(in, &v);
    examine_ranks(in, &v);
    diagnose_causes(&v);
    write_lines(in, &v);
    if (v.has_no_memory) {
        verdict_fini(&v);
        return err_no_memory(sizeof v, "the diagnosis of a job");
    }
    for (size_t i = 0; i < v.findings.n; i++) {
        v.is_well = v.is_well && v.findings.at[i].kind == FINDING_SLOW;
    }
    diagnose_sentence(in, &v);
    *ret_verdict = v;
    return 0;
}

const char *finding_kind_name(enum finding_kind k)
{
    static const char *const names[N_FINDING_KINDS] = {
        [FINDING_MISMATCH] = "mismatch", [FINDING_STALL] = "stall",     [FINDING_CIRCLE] = "circle",
        [FINDING_DEAD] = "dead",         [FINDING_STOPPED] = "stopped", [FINDING_FAILED] = "failed",
        [FINDING_UNKNOWN] = "unknown",   [FINDING_SLOW] = "slow",
    };
    return names[k];
}

const char *process_state_name(enum process_state s)
{
    static const char *const names[] = {
        [PROCESS_UNKNOWN] = "unknown",
        [PROCESS_RUNS] = "running",
        [PROCESS_STOPPED] = "stopped",
        [PROCESS_GONE] = "gone",
    };
    return names[s];
}
