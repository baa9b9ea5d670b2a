/* daemon/standings.c - where each rank of a job stands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "daemon/standings.h"

#include "base/alloc.h"
#include "base/error.h"

static void fill_call(struct standing_row *row, const struct snapshot *p, struct recorder_image *image)
{
    Mesh__V1__RankStanding *info = &row->info;
    const struct recorder_call *latest = recorder_latest(image);
    if (latest == NULL) {
        return;
    }
    struct recorder_call *c = &image->call[latest - image->call];
    const struct recorder_group *g = recorder_find_group(image, c->group);
    int64_t since_ns = recorder_since_ns(c), now_ns = p->input.now_ns;
    info->group = g != NULL ? image->group[g - image->group].name : "";
    info->sequence = c->sequence;
    info->call = (char *)call_words_text(&c->words, row->call, sizeof row->call);
    info->call_state = (char *)recorder_state_name(c->state);
    info->call_age_ms = since_ns < now_ns ? (uint64_t)(now_ns - since_ns) / 1000000 : 0;
    if (!recorder_is_over(c)) {
        info->n_waits_for = c->n_waited;
        info->waits_for = c->waited;
    }
}

static void fill(struct standing_row *row, const struct snapshot *p, uint32_t rank)
{
    mesh__v1__rank_standing__init(&row->info);
    row->info.process = (char *)process_state_name(p->rank[rank].process);
    row->info.is_recorded = p->image[rank] != NULL;
    row->info.elsewhere = p->elsewhere[rank];
    if (p->image[rank] != NULL) {
        fill_call(row, p, p->image[rank]);
    }
}

int standings_take(const struct server *s, struct job *job, struct standings *ret_standings)
{
    struct standings t;
    int r = snapshot_take(s, job, 0, &t.snapshot);
    if (r < 0) {
        return r;
    }
    t.row = mem_new_array(struct standing_row, t.snapshot.n);
    if (t.row == NULL) {
        snapshot_fini(&t.snapshot);
        return err_no_memory(t.snapshot.n * sizeof *t.row, "where the ranks stand");
    }
    for (uint32_t i = 0; i < t.snapshot.n; i++) {
        fill(&t.row[i], &t.snapshot, i);
    }
    *ret_standings = t;
    return 0;
}

void standings_fini(struct standings *t)
{
    mem_free(t->row);
    snapshot_fini(&t->snapshot);
}
