/* daemon/agree.c - agreements.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/agree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "daemon/descriptor.h"
#include "daemon/sentence.h"

static void agreement_free(struct agreement *a)
{
    if (a == NULL) {
        return;
    }
    for (size_t i = 0; a->posted != NULL && i < a->members.n; i++) {
        mem_free(a->posted[i]);
    }
    mem_free(a->posted);
    mem_free(a->who);
    mem_free(a->key);
    members_fini(&a->members);
    mem_free(a);
}

static void drop_at(struct agreements *a, size_t index)
{
    agreement_free(a->list.at[index]);
    memmove(&a->list.at[index], &a->list.at[index + 1], (a->list.n - index - 1) * sizeof *a->list.at);
    a->list.n--;
}

static int make_room(struct agreements *a, const char *key)
{
    if (a->list.n < MAX_AGREEMENTS) {
        return 0;
    }
    for (size_t i = 0; i < a->list.n; i++) {
        if (a->list.at[i]->state != AGREE_OPEN) {
            drop_at(a, i);
            return 0;
        }
    }
    return err_set(MESH_ETOOLARGE, "%s: %zu agreements are open in this job already", key, a->list.n);
}

/* Takes the members on success. */
static int open_new(struct agreements *a, const struct agree_call *c, struct members *m, struct agreement **ret)
{
    int r = make_room(a, c->key);
    if (r < 0) {
        return r;
    }
    struct agreement *agreement = mem_new(struct agreement);
    if (agreement == NULL) {
        return err_no_memory(sizeof *agreement, "an agreement");
    }
    agreement->key = mem_strdup(c->key);
    agreement->posted = mem_zalloc(m->n * sizeof *agreement->posted);
    agreement->who = mem_zalloc(m->n * sizeof *agreement->who);
    struct agreement **place = NULL;
    if (agreement->key != NULL && agreement->posted != NULL && agreement->who != NULL) {
        place = VEC_PUSH(&a->list);
    }
    if (place == NULL) {
        agreement_free(agreement);
        return err_no_memory(m->n * sizeof *agreement->who, "an agreement");
    }
    agreement->members = *m;
    agreement->begin_ms = c->now_ms;
    agreement->deadline_ms = c->deadline_ms;
    *m = (struct members){ .rank = NULL };
    *place = *ret = agreement;
    return 0;
}

static void answer_waiting(struct agreement *a, struct actions *ret)
{
    for (size_t i = 0; i < a->members.n; i++) {
        if (a->who[i].client != 0) {
            actions_error(ret, a->who[i], a->status, "%s", a->sentence);
            a->who[i].client = 0;
        }
    }
}

static void fail(struct agreement *a, int status, const char *sentence, struct actions *ret)
{
    a->state = AGREE_FAILED;
    a->status = status;
    snprintf(a->sentence, sizeof a->sentence, "%s", sentence);
    answer_waiting(a, ret);
}

/* The agreement that this post belongs to: the latest under the key that has the rank's place open. */
static struct agreement *find(const struct agreements *a, const char *key, const struct members *m, uint32_t rank)
{
    for (size_t i = a->list.n; i-- > 0;) {
        struct agreement *agreement = a->list.at[i];
        size_t place;
        if (strcmp(agreement->key, key) != 0 || !members_overlap(&agreement->members, m)) {
            continue;
        }
        if (agreement->state == AGREE_OPEN) {
            return agreement;
        }
        bool is_late = agreement->state == AGREE_FAILED && members_index(&agreement->members, rank, &place) &&
                       agreement->posted[place] == NULL;
        return is_late ? agreement : NULL;
    }
    return NULL;
}

/* The closed agreement that a new one of the same key and members replaces. */
static void drop_predecessor(struct agreements *a, const char *key, const struct members *m)
{
    for (size_t i = a->list.n; i-- > 0;) {
        struct agreement *agreement = a->list.at[i];
        if (agreement->state != AGREE_OPEN && strcmp(agreement->key, key) == 0 &&
            members_equal(&agreement->members, m)) {
            drop_at(a, i);
        }
    }
}

/* "device_mesh/0: shape differs: rank 3 has 4x2, ranks 0-2 have 2x4" over all that were posted. */
static void fail_descriptors(struct agreement *a, size_t odd, size_t reference, struct actions *ret)
{
    struct difference d;
    if (!descriptor_differs(a->posted[odd], a->posted[reference], &d)) {
        return;
    }
    uint32_t *like = mem_new_array(uint32_t, a->members.n);
    size_t n = 0;
    for (size_t i = 0; like != NULL && i < a->members.n; i++) {
        if (a->posted[i] != NULL && strcmp(a->posted[i], a->posted[reference]) == 0) {
            like[n++] = a->members.rank[i];
        }
    }
    char ranks[64] = "the others";
    if (like != NULL) {
        sentence_ranks(ranks, sizeof ranks, like, n);
    }
    char sentence[256];
    snprintf(sentence, sizeof sentence, "%.40s: %s differs: rank %u has %s, %s %s %s", a->key, d.field,
             a->members.rank[odd], d.a, ranks, n == 1 ? "has" : "have", d.b);
    mem_free(like);
    fail(a, MESH_EMISMATCH, sentence, ret);
}

/* The post names other members than those before it: fails it and them. */
static int fail_members(struct agreement *a, const struct agree_call *c, const struct members *m, struct actions *ret)
{
    char mine[70], theirs[70], sentence[256];
    sentence_ranks(mine, sizeof mine, m->rank, m->n);
    sentence_ranks(theirs, sizeof theirs, a->members.rank, a->members.n);
    snprintf(sentence, sizeof sentence, "%.40s: members differ: rank %u named %s, others %s", a->key, c->rank, mine,
             theirs);
    if (a->state == AGREE_OPEN) {
        fail(a, MESH_EMISMATCH, sentence, ret);
    }
    size_t place;
    if (members_index(&a->members, c->rank, &place) && a->posted[place] == NULL) {
        a->posted[place] = mem_strdup(c->descriptor);
        a->n_posted += a->posted[place] != NULL;
    }
    actions_error(ret, c->who, MESH_EMISMATCH, "%s", sentence);
    return 0;
}

static int post_at(struct agreement *a, size_t place, const struct agree_call *c, struct actions *ret)
{
    if (a->posted[place] != NULL) {
        return err_set(MESH_ESTATE, "%s: rank %u waits for this agreement already", a->key, c->rank);
    }
    a->posted[place] = mem_strdup(c->descriptor);
    if (a->posted[place] == NULL) {
        return err_no_memory(strlen(c->descriptor), "a descriptor");
    }
    a->n_posted++;
    a->who[place] = c->who;
    if (a->state == AGREE_FAILED) {
        answer_waiting(a, ret);
        return 0;
    }
    a->deadline_ms = MIN(a->deadline_ms, c->deadline_ms);
    for (size_t i = 0; i < a->members.n; i++) {
        if (a->posted[i] != NULL && strcmp(a->posted[i], c->descriptor) != 0) {
            fail_descriptors(a, place, i, ret);
            return 0;
        }
    }
    if (a->n_posted == a->members.n) {
        a->state = AGREE_AGREED;
        answer_waiting(a, ret);
    }
    return 0;
}

/* A new agreement with a member that is gone already fails like one whose member goes. */
static void check_alive(struct agreement *a, const struct liveness *l, struct actions *ret)
{
    for (size_t i = 0; i < a->members.n && a->state == AGREE_OPEN; i++) {
        if (!liveness_is_alive(l, a->members.rank[i])) {
            char fate[200], sentence[256];
            liveness_fate(l, a->members.rank[i], fate, sizeof fate);
            snprintf(sentence, sizeof sentence, "%.40s: %s", a->key, fate);
            fail(a, MESH_EPEER, sentence, ret);
        }
    }
}

static int post(struct agreements *a, const struct agree_call *c, struct members *m, const struct liveness *l,
                struct actions *ret)
{
    size_t place;
    if (!members_index(m, c->rank, &place)) {
        return err_set(MESH_ENOTMEMBER, "%s: rank %u is not among its members", c->key, c->rank);
    }
    struct agreement *agreement = find(a, c->key, m, c->rank);
    if (agreement != NULL && !members_equal(&agreement->members, m)) {
        return fail_members(agreement, c, m, ret);
    }
    if (agreement == NULL) {
        drop_predecessor(a, c->key, m);
        int r = open_new(a, c, m, &agreement);
        if (r < 0) {
            return r;
        }
    }
    int r = post_at(agreement, place, c, ret);
    if (r == 0) {
        check_alive(agreement, l, ret);
    }
    return r;
}

int agree_post(struct agreements *a, const struct agree_call *c, const struct liveness *l, struct actions *ret)
{
    int r = name_check("agreement key", c->key, true);
    if (r < 0) {
        return r;
    }
    if (strlen(c->descriptor) > MAX_DESCRIPTOR_BYTES) {
        return err_set(MESH_ETOOLARGE, "%s: the descriptor has %zu bytes; at most %d are allowed", c->key,
                       strlen(c->descriptor), MAX_DESCRIPTOR_BYTES);
    }
    struct members m;
    r = members_init(&m, c->member, c->n_members, l->n);
    if (r < 0) {
        return r;
    }
    r = post(a, c, &m, l, ret);
    members_fini(&m);
    return r;
}

void agree_rank_gone(struct agreements *a, uint32_t rank, const char *fate, struct actions *ret)
{
    for (size_t i = 0; i < a->list.n; i++) {
        struct agreement *agreement = a->list.at[i];
        size_t place;
        if (agreement->state != AGREE_OPEN || !members_index(&agreement->members, rank, &place)) {
            continue;
        }
        agreement->who[place].client = 0;
        char sentence[256];
        snprintf(sentence, sizeof sentence, "%.40s: %.200s", agreement->key, fate);
        fail(agreement, MESH_EPEER, sentence, ret);
    }
}

static void time_out(struct agreement *a, struct actions *ret)
{
    uint32_t *missing = mem_new_array(uint32_t, a->members.n);
    char ranks[120] = "ranks";
    size_t n = 0;
    for (size_t i = 0; missing != NULL && i < a->members.n; i++) {
        if (a->posted[i] == NULL) {
            missing[n++] = a->members.rank[i];
        }
    }
    if (missing != NULL) {
        sentence_ranks(ranks, sizeof ranks, missing, n);
    }
    mem_free(missing);
    char sentence[256];
    snprintf(sentence, sizeof sentence, "%.40s: %s did not call within %" PRId64 " ms (%zu of %zu did)", a->key, ranks,
             a->deadline_ms - a->begin_ms, a->n_posted, a->members.n);
    fail(a, MESH_ETIMEDOUT, sentence, ret);
}

void agree_tick(struct agreements *a, int64_t now_ms, struct actions *ret)
{
    for (size_t i = 0; i < a->list.n; i++) {
        struct agreement *agreement = a->list.at[i];
        if (agreement->state == AGREE_OPEN && agreement->deadline_ms <= now_ms) {
            time_out(agreement, ret);
        }
    }
}

int64_t agree_next_deadline(const struct agreements *a)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < a->list.n; i++) {
        if (a->list.at[i]->state == AGREE_OPEN) {
            next_ms = MIN(next_ms, a->list.at[i]->deadline_ms);
        }
    }
    return next_ms;
}

void agree_stop(struct agreements *a, const char *why, struct actions *ret)
{
    for (size_t i = 0; i < a->list.n; i++) {
        if (a->list.at[i]->state == AGREE_OPEN) {
            fail(a->list.at[i], MESH_EABORTED, why, ret);
        }
    }
}

void agree_fini(struct agreements *a)
{
    while (a->list.n > 0) {
        drop_at(a, a->list.n - 1);
    }
    VEC_FINI(&a->list);
}

const char *agreement_descriptor(const struct agreement *a)
{
    for (size_t i = 0; i < a->members.n; i++) {
        if (a->posted[i] != NULL) {
            return a->posted[i];
        }
    }
    return "";
}
