/* daemon/diagnose_messages.c - ranks that wait in a send or receive: a finding each, for the rank at the other side.
 *
 * A message has no number, so nobody can say whether the other side means to answer it: only how long it waits and what the
 * other one does meanwhile.  Both in messages with each other: bytes may be moving.  From any rank: nobody is to blame.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/diagnose.h"

#include <stdio.h>

static bool is_open_message(const struct recorder_call *c)
{
    return !recorder_is_over(c) && (c->words.kind == MESH_COMM_SEND || c->words.kind == MESH_COMM_RECV);
}

/* The opposite of c, open on the other rank. */
static bool is_answered(const struct diagnose_rank *other, uint32_t rank, const struct recorder_call *c)
{
    for (size_t i = 0; other->image != NULL && i < other->image->n_calls; i++) {
        const struct recorder_call *d = &other->image->call[i];
        bool is_opposite = is_open_message(d) && d->group == c->group && d->words.kind != c->words.kind;
        if (is_opposite && (d->n_waited == 0 || d->waited[0] == rank)) {
            return true;
        }
    }
    return false;
}

static void add_finding(const struct diagnose_input *in, struct verdict *v, uint32_t rank,
                        const struct recorder_call *c, int64_t age_ms)
{
    uint32_t peer = c->waited[0];
    const struct recorder_group *g = recorder_find_group(in->rank[rank].image, c->group);
    struct finding *f = VEC_PUSH(&v->findings);
    if (f == NULL) {
        v->has_no_memory = true;
        return;
    }
    *f = (struct finding){ .kind = FINDING_STALL,
                           .has_evidence = diagnose_is_dead_weight(&in->rank[peer]),
                           .group = c->group,
                           .age_ms = age_ms };
    if (in->rank[peer].image == NULL && !f->has_evidence) {
        f->kind = FINDING_UNKNOWN;
    }
    snprintf(f->name, sizeof f->name, "%s", g != NULL ? g->name : "freed since");
    call_words_text(&c->words, f->call, sizeof f->call);
    rank_list_add(v, &f->entered, rank);
    rank_list_add(v, &f->waiting, rank);
    rank_list_add(v, &f->culprits, peer);
}

/* The oldest one of this rank that waits for one other rank: those begun later may wait for it. */
static void examine(const struct diagnose_input *in, struct verdict *v, uint32_t rank)
{
    const struct recorder_image *image = in->rank[rank].image;
    for (size_t i = 0; i < image->n_calls; i++) {
        const struct recorder_call *c = &image->call[i];
        if (!is_open_message(c) || c->n_waited == 0 || c->waited[0] >= in->n_ranks) {
            continue;
        }
        int64_t age_ms = c->queued_ns < in->now_ns ? (in->now_ns - c->queued_ns) / 1000000 : 0;
        const struct diagnose_rank *peer = &in->rank[c->waited[0]];
        bool is_old = age_ms >= in->after_ms || diagnose_is_dead_weight(peer);
        if (is_old && (diagnose_is_dead_weight(peer) || !is_answered(peer, rank, c))) {
            add_finding(in, v, rank, c, age_ms);
            return;
        }
    }
}

void diagnose_messages(const struct diagnose_input *in, struct verdict *v)
{
    for (uint32_t rank = 0; rank < in->n_ranks; rank++) {
        const struct diagnose_rank *r = &in->rank[rank];
        if (r->image != NULL && !diagnose_is_dead_weight(r)) {
            examine(in, v, rank);
        }
    }
}
