/* client/dtensor/watch.c - refuses implicit communication, and compares replicas after each operator.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtensor/watch.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "comm/collective.h"

_Thread_local struct watch watch;

bool mesh_explicit(bool on)
{
    bool was = watch.is_explicit;
    watch.is_explicit = on;
    return was;
}

bool mesh_check_replicas(bool on)
{
    bool was = watch.checks_replicas;
    watch.checks_replicas = on;
    return was;
}

int watch_implicit(const char *op, int argument, const mesh_dtensor *x, const mesh_placements *to)
{
    struct move_list moves = { .n = 0 };
    char is[64], needed[64], plan[96];
    int64_t bytes = 0;
    int r = redistribute_recall(x, to, &moves);
    for (int i = 0; r == 0 && i < moves.n; i++) {
        bytes += moves.at[i].bytes;
    }
    if (r < 0 || bytes == 0) {
        return r;
    }
    return err_set(MESH_EPLACEMENT,
                   "%s: argument %d is %s and would be redistributed to %s (%s): call mesh_redistribute() yourself, "
                   "explicit mode is on",
                   op, argument, mesh_placements_text(x->placements, is, sizeof is),
                   mesh_placements_text(*to, needed, sizeof needed),
                   redistribute_text(&moves, x->mesh, plan, sizeof plan));
}

/* The place of the replica of the place-th rank that comes first. */
static int first_replica(const mesh_dtensor *y, int place)
{
    const mesh_device_mesh *m = y->mesh;
    int c[MESH_MAX_MESH_NDIM], first = 0;
    mesh_coordinate_of(m, place, c);
    for (int i = 0; i < m->ndim; i++) {
        first = first * m->size[i] + (y->placements.at[i].kind == MESH_IS_REPLICATE ? 0 : c[i]);
    }
    return first;
}

static int compare(const char *op, const mesh_dtensor *y, const uint64_t *hashes)
{
    char text[DTENSOR_TEXT_BYTES];
    for (int k = 0; k < y->mesh->n_ranks; k++) {
        int first = first_replica(y, k);
        if (hashes[k] != hashes[first]) {
            return err_set(MESH_EMISMATCH,
                           "%s: its result %.120s has diverged: ranks %d and %d should hold the same bits", op,
                           dtensor_text(y, text, sizeof text), y->mesh->ranks[first], y->mesh->ranks[k]);
        }
    }
    return 0;
}

int watch_replicas(const char *op, const mesh_dtensor *y)
{
    const mesh_device_mesh *m = y->mesh;
    bool has_replicas = false;
    for (int i = 0; i < m->ndim; i++) {
        has_replicas = has_replicas || (y->placements.at[i].kind == MESH_IS_REPLICATE && m->size[i] > 1);
    }
    if (!has_replicas || !m->is_member) {
        return 0;
    }
    uint64_t *hashes = mem_new_array(uint64_t, (size_t)m->n_ranks);
    if (!hashes) {
        return err_no_memory((size_t)m->n_ranks * sizeof *hashes, "the hashes of all ranks");
    }
    uint64_t mine = hash_bytes(y->local->data, tensor_bytes(y->local), 1);
    struct collective_call call = {
        .kind = MESH_COMM_ALL_GATHER, .dtype = MESH_U8, .count = sizeof mine, .in = &mine, .out = hashes
    };
    int r = collective_run(m->whole, &call);
    r = r < 0 ? r : compare(op, y, hashes);
    mem_free(hashes);
    return r;
}
