/* daemon/barrier.c - named barriers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/barrier.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "daemon/sentence.h"

static void barrier_free(struct barrier *b)
{
    if (b != NULL) {
        members_fini(&b->members);
        mem_free(b->arrived);
        mem_free(b);
    }
}

static struct barrier *find(struct barriers *b, const char *name, const struct members *m, size_t *ret_index)
{
    for (size_t i = 0; i < b->open.n; i++) {
        struct barrier *barrier = b->open.at[i];
        if (strcmp(barrier->name, name) == 0 && members_equal(&barrier->members, m)) {
            *ret_index = i;
            return barrier;
        }
    }
    return NULL;
}

/* Takes the members on success. */
static int open_new(struct barriers *b, const struct barrier_call *c, struct members *m, struct barrier **ret_barrier)
{
    if (b->open.n >= MAX_BARRIERS) {
        return err_set(MESH_ETOOLARGE, "barrier %s: %zu barriers are open in this job already", c->name, b->open.n);
    }
    struct barrier *barrier = mem_new(struct barrier);
    struct ticket *arrived = mem_zalloc(m->n * sizeof *arrived);
    struct barrier **place = barrier != NULL && arrived != NULL ? VEC_PUSH(&b->open) : NULL;
    if (place == NULL) {
        mem_free(arrived);
        mem_free(barrier);
        return err_no_memory(m->n * sizeof *arrived, "a barrier");
    }
    snprintf(barrier->name, sizeof barrier->name, "%s", c->name);
    barrier->members = *m;
    barrier->arrived = arrived;
    barrier->begin_ms = c->now_ms;
    barrier->deadline_ms = c->deadline_ms;
    *m = (struct members){ .rank = NULL };
    *place = *ret_barrier = barrier;
    return 0;
}

static void close_at(struct barriers *b, size_t index)
{
    barrier_free(b->open.at[index]);
    VEC_REMOVE(&b->open, index);
}

static void answer_all(const struct barrier *b, int status, const char *sentence, struct actions *ret)
{
    for (size_t i = 0; i < b->members.n; i++) {
        if (b->arrived[i].client != 0) {
            actions_error(ret, b->arrived[i], status, "%s", sentence);
        }
    }
}

static int check_alive(const struct members *m, const char *name, const struct liveness *l)
{
    for (size_t i = 0; i < m->n; i++) {
        if (!liveness_is_alive(l, m->rank[i])) {
            char fate[200];
            liveness_fate(l, m->rank[i], fate, sizeof fate);
            return err_set_about(MESH_EPEER, (int)m->rank[i], "barrier %s: %s", name, fate);
        }
    }
    return 0;
}

static int arrive(struct barriers *b, const struct barrier_call *c, struct members *m, struct actions *ret)
{
    size_t place;
    if (!members_index(m, c->rank, &place)) {
        return err_set(MESH_ENOTMEMBER, "barrier %s: rank %u is not among its members", c->name, c->rank);
    }
    size_t index = b->open.n;
    struct barrier *barrier = find(b, c->name, m, &index);
    if (barrier == NULL) {
        int r = open_new(b, c, m, &barrier);
        if (r < 0) {
            return r;
        }
    }
    if (barrier->arrived[place].client != 0) {
        return err_set(MESH_ESTATE, "barrier %s: rank %u waits at it already", c->name, c->rank);
    }
    barrier->arrived[place] = c->who;
    barrier->n_arrived++;
    barrier->deadline_ms = MIN(barrier->deadline_ms, c->deadline_ms);
    if (barrier->n_arrived == barrier->members.n) {
        answer_all(barrier, MESH_OK, "", ret);
        close_at(b, index);
    }
    return 0;
}

int barrier_arrive(struct barriers *b, const struct barrier_call *c, const struct liveness *l, struct actions *ret)
{
    int r = name_check("barrier name", c->name, true);
    if (r < 0) {
        return r;
    }
    struct members m;
    r = members_init(&m, c->member, c->n_members, l->n);
    if (r < 0) {
        return r;
    }
    r = check_alive(&m, c->name, l);
    if (r == 0) {
        r = arrive(b, c, &m, ret);
    }
    members_fini(&m);
    return r;
}

void barrier_rank_gone(struct barriers *b, uint32_t rank, const char *fate, struct actions *ret)
{
    for (size_t i = b->open.n; i-- > 0;) {
        struct barrier *barrier = b->open.at[i];
        size_t place;
        if (!members_index(&barrier->members, rank, &place)) {
            continue;
        }
        char sentence[256];
        snprintf(sentence, sizeof sentence, "barrier %.40s: %.200s", barrier->name, fate);
        barrier->arrived[place].client = 0;
        answer_all(barrier, MESH_EPEER, sentence, ret);
        close_at(b, i);
    }
}

static void time_out(const struct barrier *b, struct actions *ret)
{
    uint32_t *missing = mem_new_array(uint32_t, b->members.n);
    char ranks[120] = "ranks";
    size_t n = 0;
    for (size_t i = 0; missing != NULL && i < b->members.n; i++) {
        if (b->arrived[i].client == 0) {
            missing[n++] = b->members.rank[i];
        }
    }
    if (missing != NULL) {
        sentence_ranks(ranks, sizeof ranks, missing, n);
    }
    char sentence[256];
    snprintf(sentence, sizeof sentence, "barrier %.40s: %s did not arrive within %" PRId64 " ms (%zu of %zu are there)",
             b->name, ranks, b->deadline_ms - b->begin_ms, b->n_arrived, b->members.n);
    answer_all(b, MESH_ETIMEDOUT, sentence, ret);
    mem_free(missing);
}

void barrier_tick(struct barriers *b, int64_t now_ms, struct actions *ret)
{
    for (size_t i = b->open.n; i-- > 0;) {
        if (b->open.at[i]->deadline_ms <= now_ms) {
            time_out(b->open.at[i], ret);
            close_at(b, i);
        }
    }
}

int64_t barrier_next_deadline(const struct barriers *b)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < b->open.n; i++) {
        next_ms = MIN(next_ms, b->open.at[i]->deadline_ms);
    }
    return next_ms;
}

void barrier_stop(struct barriers *b, const char *why, struct actions *ret)
{
    while (b->open.n > 0) {
        answer_all(b->open.at[b->open.n - 1], MESH_EABORTED, why, ret);
        close_at(b, b->open.n - 1);
    }
}

void barrier_fini(struct barriers *b)
{
    while (b->open.n > 0) {
        close_at(b, b->open.n - 1);
    }
    VEC_FINI(&b->open);
}
