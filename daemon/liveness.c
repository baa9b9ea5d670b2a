/* daemon/liveness.c - lives and deaths of ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/liveness.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"
#include "daemon/bounds.h"

int liveness_begin(struct liveness *l, const struct member *table, uint32_t n, int64_t now_ms)
{
    struct liveness fresh = { .table = table, .n = n, .n_alive = n, .rank_of = MAP_INIT, .watcher = l->watcher };
    fresh.of = mem_new_array(struct life_of, n);
    if (fresh.of == NULL) {
        return err_no_memory(n * sizeof *fresh.of, "the lives of ranks");
    }
    for (uint32_t i = 0; i < n; i++) {
        fresh.of[i] = (struct life_of){ .state = LIFE_JOINED, .last_ms = now_ms };
        void *value = (void *)(uintptr_t)(i + 1);
        int r = map_set(&fresh.rank_of, &table[i].client, sizeof table[i].client, value, NULL);
        if (r < 0) {
            liveness_fini(&fresh);
            return r;
        }
    }
    liveness_fini(l);
    *l = fresh;
    return 0;
}

void liveness_fini(struct liveness *l)
{
    mem_free(l->of);
    map_fini(&l->rank_of);
    *l = (struct liveness){ .rank_of = MAP_INIT };
}

int liveness_rank_of(const struct liveness *l, uint64_t client)
{
    return (int)(uintptr_t)map_get(&l->rank_of, &client, sizeof client) - 1;
}

uint64_t liveness_client_of(const struct liveness *l, uint32_t rank)
{
    return rank < l->n ? l->table[rank].client : 0;
}

bool liveness_is_alive(const struct liveness *l, uint32_t rank)
{
    return rank < l->n && l->of[rank].state == LIFE_JOINED;
}

void liveness_seen(struct liveness *l, uint64_t client, int64_t now_ms)
{
    int rank = liveness_rank_of(l, client);
    if (rank >= 0) {
        l->of[rank].last_ms = now_ms;
    }
}

static void tell_others(const struct liveness *l, uint32_t but, const struct notice *n, const char *sentence,
                        struct actions *ret)
{
    if (l->watcher != 0) { /* first: it must hear of a death before the end of those who hear of it */
        actions_notice(ret, (struct ticket){ .client = l->watcher }, n, sentence);
    }
    for (uint32_t i = 0; i < l->n; i++) {
        if (i != but && l->of[i].state == LIFE_JOINED) {
            actions_notice(ret, (struct ticket){ .client = l->table[i].client }, n, sentence);
        }
    }
}

void liveness_process_ended(struct liveness *l, uint32_t rank, uint32_t pid, const char *how)
{
    if (liveness_is_alive(l, rank) && l->table[rank].pid == pid) {
        snprintf(l->of[rank].end, sizeof l->of[rank].end, "%s", how);
    }
}

const char *liveness_fate(const struct liveness *l, uint32_t rank, char *buf, size_t cap)
{
    char name[120];
    member_name(&l->table[rank], name, sizeof name);
    const char *death = l->of[rank].end[0] != 0 ? l->of[rank].end : "died";
    snprintf(buf, cap, "%s %s", name, l->of[rank].state == LIFE_DEAD ? death : "left");
    return buf;
}

int liveness_gone(struct liveness *l, uint64_t client, bool died, struct actions *ret)
{
    int rank = liveness_rank_of(l, client);
    if (rank < 0 || l->of[rank].state != LIFE_JOINED) {
        return -1;
    }
    l->of[rank].state = died ? LIFE_DEAD : LIFE_LEFT;
    l->n_alive--;
    l->n_dead += died;
    char sentence[200];
    liveness_fate(l, (uint32_t)rank, sentence, sizeof sentence);
    if (died && l->first_death[0] == 0) {
        snprintf(l->first_death, sizeof l->first_death, "%s", sentence);
    }
    const struct notice n = { .kind = died ? NOTICE_RANK_DIED : NOTICE_RANK_LEFT,
                              .rank = rank,
                              .culprit = rank,
                              .status = died ? MESH_EPEER : MESH_OK };
    tell_others(l, (uint32_t)rank, &n, sentence, ret);
    return rank;
}

int liveness_report(struct liveness *l, struct ticket who, const struct report *r, struct actions *ret)
{
    int rank = liveness_rank_of(l, who.client);
    if (rank < 0 || l->of[rank].state != LIFE_JOINED) {
        return err_set(MESH_ESTATE, "report: this connection has not joined a job");
    }
    if (l->of[rank].n_reports >= MAX_REPORTS_PER_RANK) {
        return err_set(MESH_ETOOLARGE, "report: rank %d sent %u reports already", rank, l->of[rank].n_reports);
    }
    l->of[rank].n_reports++;
    const struct notice n = { .kind = NOTICE_REPORT,
                              .rank = rank,
                              .culprit = r->culprit < 0 ? rank : r->culprit,
                              .status = r->status,
                              .group = r->group,
                              .sequence = r->sequence };
    tell_others(l, (uint32_t)rank, &n, r->sentence, ret);
    if (who.request != 0) {
        actions_notice(ret, who, &n, r->sentence);
    }
    return 0;
}

void liveness_end(struct liveness *l, int status, const char *why, struct actions *ret)
{
    const struct notice n = { .kind = NOTICE_REPORT, .rank = -1, .culprit = -1, .status = status };
    tell_others(l, UINT32_MAX, &n, why, ret);
}
