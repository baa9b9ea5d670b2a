/* daemon/standings.c - where each rank of a job stands; the recorders are read one after the other into one memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/standings.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"

static void fill_call(struct standing_row *row, const struct recorder_image *image)
{
    Mesh__V1__RankStanding *info = &row->info;
    const struct recorder_call *c = recorder_latest(image);
    if (c == NULL) {
        return;
    }
    const struct recorder_group *g = recorder_find_group(image, c->group);
    int64_t age_ns = clock_now_ns() - recorder_since_ns(c);
    snprintf(row->group, sizeof row->group, "%s", g != NULL ? g->name : "");
    memcpy(row->waited, c->waited, sizeof row->waited);
    info->group = row->group;
    info->sequence = c->sequence;
    info->call = (char *)call_words_text(&c->words, row->call, sizeof row->call);
    info->call_state = (char *)recorder_state_name(c->state);
    info->call_age_ms = (uint64_t)(MAX(age_ns, 0) / 1000000);
    info->n_waits_for = recorder_is_over(c) ? 0 : c->n_waited;
    info->waits_for = row->waited;
}

struct standing_row *standings_new(const struct server *s, const struct job *job)
{
    uint32_t n = job->rendezvous.table != NULL ? job->rendezvous.size : 0;
    struct standing_row *row = mem_zalloc(n * sizeof *row);
    struct recorder_image *image = mem_alloc(sizeof *image);
    if (row == NULL || image == NULL) {
        mem_free(row);
        mem_free(image);
        err_no_memory(n * sizeof *row + sizeof *image, "where the ranks stand");
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct diagnose_rank rank = snapshot_look(s, job, i, image, row[i].elsewhere);
        mesh__v1__rank_standing__init(&row[i].info);
        row[i].info.process = (char *)process_state_name(rank.process);
        row[i].info.is_recorded = rank.image != NULL;
        row[i].info.elsewhere = row[i].elsewhere;
        if (rank.image != NULL) {
            fill_call(&row[i], rank.image);
        }
    }
    mem_free(image);
    err_clear();
    return row;
}
